"""Test the caches of values of a connection, and what the tight encoding refuses."""

import pytest

from brokerapp.errors import OpenWireError
from brokerapp.openwire import commands as c
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.encoding.tight_texts import MAX_BIT_BYTES, decode_bits, encode_bits
from brokerapp.openwire.encoding.value_cache import CACHE_SIZE, MAX_RECEIVED_BYTES, ReceivedValues

TIGHT = [False, True]


def session(number):
    """A command with one value that is cached."""
    return c.SessionInfo(session_id=c.SessionId("ID:a", number))


@pytest.mark.parametrize("tight", TIGHT)
def test_a_value_that_was_sent_before_is_sent_by_its_number(tight):
    ours, theirs = Codec(tight=tight, cached=True), Codec(tight=tight, cached=True)
    first, second = ours.encode(session(1)), ours.encode(session(1))
    assert len(second) < len(first) - 5
    assert theirs.decode(first[4:]) == theirs.decode(second[4:]) == session(1)


@pytest.mark.parametrize("tight", TIGHT)
def test_more_values_than_there_are_numbers_are_sent_and_understood(tight):
    ours, theirs = Codec(tight=tight, cached=True), Codec(tight=tight, cached=True)
    for number in [*range(CACHE_SIZE + 200), 0, CACHE_SIZE, 100, 5000]:
        assert theirs.decode(ours.encode(session(number))[4:]) == session(number)


@pytest.mark.parametrize("tight", TIGHT)
def test_what_was_not_sent_has_no_number_afterwards(tight):
    ours, theirs = (Codec(tight=tight, cached=True, max_frame_size=500) for _ in range(2))
    destination, too_long = c.OpenWireDestination(t.QUEUE, "q"), "x" * 70_000
    for command in (
        c.ConsumerInfo(destination=destination, selector=too_long),
        c.MessageDispatch(destination=destination, redelivery_counter=2**31),
        c.MessageCommand(destination=destination, content=bytes(600)),
    ):
        with pytest.raises(OpenWireError):
            ours.encode(command)
    info = c.ProducerInfo(destination=destination)
    assert theirs.decode(ours.encode(info)[4:]) == info


@pytest.mark.parametrize("tight", TIGHT)
def test_a_number_that_was_not_sent_before_is_refused(tight):
    ours, theirs = Codec(tight=tight, cached=True), Codec(tight=tight, cached=True)
    ours.encode(session(1))
    with pytest.raises(OpenWireError, match="field session_id holds the value number 0, which was not sent before"):
        theirs.decode(ours.encode(session(1))[4:])


def test_a_number_of_a_value_of_another_type_is_refused():
    codec = Codec(cached=True)
    codec.decode(b"\x04\0\0\0\1\0" + b"\1\0\7\1\x79\0" + bytes(8))
    with pytest.raises(OpenWireError, match="field producer_id holds the value number 7, which it cannot: None:0"):
        codec.decode(b"\x06\0\0\0\1\0" + b"\0\0\7" + bytes(10))


def test_what_a_peer_has_remembered_is_bounded():
    values = ReceivedValues()
    values.put(0, "first", MAX_RECEIVED_BYTES)
    values.put(0, "another instead", MAX_RECEIVED_BYTES)
    with pytest.raises(OpenWireError, match=f"values to be remembered exceed {MAX_RECEIVED_BYTES} bytes"):
        values.put(1, "one more", 1)
    with pytest.raises(OpenWireError, match=f"a value has the number {CACHE_SIZE}"):
        ReceivedValues().put(CACHE_SIZE, "beyond", 1)


@pytest.mark.parametrize("count", [0, 1, 8, 63 * 8, 63 * 8 + 1, 255 * 8, 255 * 8 + 1, MAX_BIT_BYTES * 8])
def test_any_number_of_truth_values_is_the_same_after_encoding_and_decoding(count):
    values = [index % 3 == 1 for index in range(count)]
    encoded = encode_bits(values)
    bits, end = decode_bits(encoded, 0)
    assert (list(bits)[:count], end) == (values, len(encoded))


def test_more_truth_values_than_java_can_count_are_refused():
    with pytest.raises(OpenWireError, match="a command has 262137 truth values: at most 262136 are allowed"):
        encode_bits([True] * (MAX_BIT_BYTES * 8 + 1))
    with pytest.raises(OpenWireError, match="a frame has 32768 bytes of truth values: at most 32767 are allowed"):
        decode_bits(b"\x80\x80\0", 0)


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"\x0a\1\0\0\0\0\1", None),
        (b"\x0a\2\0\0\0\0\0\1", "a KeepAliveInfo has more truth values than its fields"),
        (b"\x0a\0\0\0\0\1", "a KeepAliveInfo ends too early"),
        (b"\x0a", "a KeepAliveInfo ends too early"),
        (b"\x0a\xc0", "a KeepAliveInfo ends too early"),
        (b"\x15\1\x18\0\0\0\1\x17", "field message holds a command with bits of its own"),
        (b"\0", "type 0 does not exist"),
    ],
)
def test_what_is_wrong_with_a_tight_frame_is_said(frame, sentence):
    codec = Codec(tight=True)
    if sentence is None:
        assert codec.decode(frame) == c.KeepAliveInfo(1)
    else:
        with pytest.raises(OpenWireError, match=sentence):
            codec.decode(frame)


def test_a_text_that_java_cannot_encode_tightly_is_refused():
    codec = Codec(tight=True)
    fits, too_long = "é" * 16383, "é" * 16384
    assert codec.decode(codec.encode(c.ControlCommand(command=fits))[4:]).command == fits
    with pytest.raises(OpenWireError, match="has 32768 bytes: at most 32766 are allowed here"):
        codec.encode(c.ControlCommand(command=too_long))


def test_the_first_command_is_loose_with_any_codec():
    info = c.WireFormatInfo(version=12, marshalled_properties=b"\0\0\0\0")
    assert Codec(tight=True, cached=True).encode(info) == Codec(1).encode(info)
    assert Codec(tight=True, cached=True).decode(Codec(1).encode(info)[4:]) == info
