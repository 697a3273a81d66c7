"""Test that commands with large arguments are the same bytes, of which the large ones are not copied."""

import hiredis
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.store.client.connection import LARGE_BYTES, pack

LARGE = b"x" * LARGE_BYTES
ARGUMENTS = st.one_of(
    st.just(LARGE), st.just(LARGE + b"\r\n$3"), st.binary(max_size=9), st.text(max_size=9), st.integers()
)


@given(st.lists(ARGUMENTS, min_size=1, max_size=9))
def test_a_command_is_the_same_bytes_whatever_is_large(args):
    assert b"".join(pack(args)) == hiredis.pack_command(tuple(args))


def test_large_arguments_are_not_copied_and_small_ones_are_one_piece():
    assert any(piece is LARGE for piece in pack(("SET", "key", LARGE)))
    assert len(pack(["RPUSH", "key", *map(str, range(1000))])) == 1
