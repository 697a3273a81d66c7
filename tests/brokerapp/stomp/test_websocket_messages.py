"""Test how output is divided into WebSocket messages, and which pages may connect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.stomp.frames import encode
from brokerapp.stomp.transport.websocket import is_origin_allowed, split_frames

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
FRAMES = st.one_of(
    st.just(b"\n"),
    st.builds(lambda headers: encode("RECEIPT", headers), st.dictionaries(TEXT, TEXT, max_size=3)),
    st.builds(
        lambda headers, body: encode("MESSAGE", {**headers, "content-length": str(len(body)), "last": "1"}, body),
        st.dictionaries(TEXT.filter(lambda name: name != "content-length"), TEXT, max_size=3),
        st.binary(max_size=50),
    ),
    st.builds(lambda body: encode("MESSAGE", {"x": "content-length:3"}, body.encode()), TEXT),
)


@given(st.lists(FRAMES, max_size=6))
def test_every_frame_and_every_heart_beat_is_a_message(written):
    assert list(split_frames(b"".join(written))) == written


@pytest.mark.parametrize(
    ("origin", "here", "allowed", "open_to_all", "admitted"),
    [
        (None, "127.0.0.1", None, True, True),
        ("http://localhost:3000", "127.0.0.1", None, True, True),
        ("http://127.0.0.1:8000", "::1", None, True, True),
        ("https://elsewhere.example", "127.0.0.1", None, True, False),
        ("https://localhost.elsewhere.example", "127.0.0.1", None, True, False),
        ("null", "127.0.0.1", None, True, False),
        ("http://[", "127.0.0.1", None, True, False),
        ("https://elsewhere.example", "127.0.0.1", None, False, True),
        ("https://elsewhere.example", "10.0.0.1", None, True, True),
        ("https://elsewhere.example", "127.0.0.1", frozenset({"https://elsewhere.example"}), True, True),
        ("https://elsewhere.example", "127.0.0.1", frozenset({"*"}), True, True),
        ("http://localhost:3000", "127.0.0.1", frozenset({"https://elsewhere.example"}), False, False),
        (None, "127.0.0.1", frozenset(), False, True),
    ],
)
def test_pages_from_elsewhere_do_not_reach_a_broker_that_is_open_because_it_is_local(
    origin, here, allowed, open_to_all, admitted
):
    assert is_origin_allowed(origin, here, allowed, open_to_all) is admitted
