"""Test the size limits of messages for the other broker of a bridge."""

import pytest

from brokerapp.errors import ProtocolError
from brokerapp.network.options import size_limits
from brokerapp.network.options.size_limits import FrameLimits, read_limits
from brokerapp.stomp.frames import CLIENT_LIMITS, FrameParser, encode

HEADERS = {"destination": "/queue/ä\n:", "receipt": "out:1"}


def is_taken(limit, headers, body):
    parser = FrameParser(limit.body or 10**9, limit.frame or None)
    try:
        return bool(list(parser.feed(encode("SEND", {**headers, "content-length": str(len(body))}, body))))
    except ProtocolError:
        return False


@pytest.mark.parametrize("room", [-1, 0, 1])
def test_exactly_what_the_other_broker_would_not_take_is_too_long(room):
    headers, body = {**HEADERS, "content-length": "50"}, b"x" * 50
    lines = ("SEND", r"destination:/queue/ä\n\c", r"receipt:out\c1", "content-length:50")
    frame = len("".join(lines).encode()) + 50
    for limit in (FrameLimits(frame=frame + room), FrameLimits(body=50 + room)):
        assert bool(limit.exceeded_by(headers, body, 50)) is (room < 0)
        assert is_taken(limit, headers, body) is (room >= 0)


def test_who_tells_no_limits_takes_all():
    assert FrameLimits().exceeded_by(HEADERS, b"x" * 10_000, 10_000) == ""


def test_a_packed_body_counts_as_long_as_it_will_be():
    assert FrameLimits(body=100).exceeded_by({}, b"packed", 101).startswith("its body has 101 bytes, more than 100")


def test_a_message_far_from_the_limit_is_not_written_to_be_counted(monkeypatch):
    monkeypatch.setattr(size_limits, "encode", None)
    assert FrameLimits(frame=1_000).exceeded_by(HEADERS, b"x" * 700, 700) == ""


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "1,x", "-1,2", "1, 2", "1" * 19 + ",0"])
def test_a_header_that_is_not_two_numbers_is_told(text):
    with pytest.raises(ValueError, match="is not two numbers of bytes"):
        read_limits(text)


def test_both_limits_are_read():
    assert read_limits("10,0") == FrameLimits(10, 0)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"long": "x" * 10_234}, ""),
        ({"long": "x" * 10_236}, "its header 'long' has 10,241 bytes, more than 10,240"),
        ({"long": "\\" * 6_000}, "its header 'long' has 12,005 bytes, more than 10,240"),
        ({str(number): "" for number in range(1_001)}, "it has 1,001 headers, more than 1,000"),
    ],
    ids=["as long as may be", "too long", "too long when escaped", "too many"],
)
def test_headers_that_an_activemq_does_not_take_are_too_long_for_it(headers, why):
    assert FrameLimits(heads=CLIENT_LIMITS).exceeded_by(headers, b"", 0) == why
    assert FrameLimits().exceeded_by(headers, b"", 0) == ""
