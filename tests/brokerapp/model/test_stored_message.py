"""Test that damage to a stored message is detected when it is read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.model.message import Message
from brokerapp.model.stored_message import DAMAGED_HEADER, load_stored

PLAIN = Message("ID:a:1", b"message-id:ID\\ca\\c1\nk:v\n", b"the body", True, 4, 0, 1_700_000_000_000_000)
TRAVELLED = replace(PLAIN, deliveries=2, path=("one", "two"), held=("queue://a b",), body=b"\x00\xff")
#: How versions before checksums wrote these.
FORMER = {
    b"1 4 0 1700000000000000\nmessage-id:ID\\ca\\c1\nk:v\n\nthe body": PLAIN,
    b"1 4 0 1700000000000000 2\nmessage-id:ID\\ca\\c1\nk:v\n\nthe body": replace(PLAIN, deliveries=2),
    b"1 4 0 1700000000000000 0 one,two\nmessage-id:ID\\ca\\c1\nk:v\n\nthe body": replace(PLAIN, path=("one", "two")),
    b"1 4 0 1700000000000000 2 one,two queue%3A%2F%2Fa%20b\nmessage-id:ID\\ca\\c1\nk:v\n\n\x00\xff": TRAVELLED,
}


@pytest.mark.parametrize("message", [PLAIN, TRAVELLED, replace(PLAIN, body=b""), replace(PLAIN, body=b"x" * 100_000)])
def test_what_was_not_changed_is_as_it_was(message):
    loaded = load_stored(message.stored())
    assert (loaded, loaded.is_damaged) == (message, False)


@pytest.mark.parametrize(("stored", "message"), FORMER.items())
def test_messages_without_a_checksum_are_read_as_before(stored, message):
    loaded = load_stored(stored)
    assert (loaded, loaded.is_damaged) == (message, False)


@given(message=st.sampled_from([PLAIN, TRAVELLED]), at=st.integers(0, 10_000), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed_wherever_it_is(message, at, change):
    stored = bytearray(message.stored())
    stored[at % len(stored)] ^= change
    loaded = load_stored(bytes(stored))
    assert loaded.is_damaged
    assert loaded.headers[DAMAGED_HEADER] == "true"
    assert b"\0" not in loaded.head


@given(message=st.sampled_from([PLAIN, TRAVELLED]), cut=st.integers(1, 10_000))
def test_a_missing_end_is_noticed(message, cut):
    stored = message.stored()
    assert load_stored(stored[: -(cut % len(stored)) or None][: len(stored) - 1]).is_damaged


def test_what_can_be_read_of_a_damaged_message_is_kept():
    loaded = load_stored(PLAIN.stored().replace(b"body", b"b0dy"))
    assert (loaded.id, loaded.body, loaded.headers["k"]) == ("ID:a:1", b"the b0dy", "v")
    unreadable = PLAIN.stored().replace(b"message-id", b"message\0id")
    assert load_stored(unreadable).body == unreadable
    assert load_stored(load_stored(unreadable).stored()).is_damaged is False
