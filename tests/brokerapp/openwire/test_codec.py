"""Test the codec of OpenWire with random commands of every type and version, and with damaged bytes."""

import struct
import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.errors import OpenWireError, ProtocolError
from brokerapp.openwire import commands as c
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.encoding.loose_decoding import MAX_DEPTH, MAX_KNOWN, loose_decoders
from brokerapp.openwire.encoding.table import CLASSES, layout
from brokerapp.openwire.encoding.throwables import MAX_CAUSES, MAX_MESSAGE_CHARACTERS
from tests.brokerapp.openwire.random_commands import VERSIONS, RandomCommands, types_of

PRODUCER = c.ProducerId("ID:host-1-2-0:1", 3, 2)


def body(data: bytes) -> bytes:
    """What is behind the number of bytes."""
    (size,) = struct.unpack_from(">I", data)
    assert size == len(data) - 4
    return data[4:]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
@given(random=st.randoms(use_true_random=True), causes=st.booleans())
@settings(max_examples=2)
def test_a_command_of_any_type_is_the_same_after_encoding_and_decoding(version, tight, cached, random, causes):
    ours = Codec(version, stack_trace_enabled=causes, tight=tight, cached=cached)
    theirs = Codec(version, stack_trace_enabled=causes, tight=tight, cached=cached)
    for command in RandomCommands(random, version, causes).one_of_each():
        decoded = theirs.decode(body(ours.encode(command)))
        assert repr(decoded) == repr(command)
        assert type(decoded) is type(command)


def test_every_type_has_a_class_whose_number_it_is():
    numbers = {value for name, value in vars(t).items() if name.isupper() and isinstance(value, int)}
    assert set(CLASSES) == numbers - {t.NULL}
    for data_type in CLASSES:
        command = RandomCommands(Random(data_type), t.MAX_VERSION).command(data_type)
        assert command.data_type == data_type


def test_a_message_has_thirty_fields_besides_those_of_every_command():
    assert len(layout(t.TEXT_MESSAGE, 12).on_wire) == 32
    assert len(layout(t.TEXT_MESSAGE, 1).on_wire) == 27
    assert len(layout(t.BLOB_MESSAGE, 12).on_wire) == 35


def test_a_field_of_a_later_version_is_not_sent_and_has_its_default_where_it_arrives():
    command = c.ConnectionInfo(client_id="a", client_master=False, client_ip="10.0.0.1")
    assert Codec(8).decode(body(Codec(8).encode(command))) == command
    old = Codec(1).decode(body(Codec(1).encode(command)))
    assert (old.client_id, old.client_master, old.client_ip) == ("a", True, None)


def test_the_bytes_are_those_of_the_documented_encoding():
    command = c.ProducerInfo(7, True, PRODUCER, c.OpenWireDestination(t.TOPIC, "é\0"), None, True, 258)
    assert Codec(12).encode(command) == (
        b"\0\0\0\x39\x06\0\0\0\x07\x01"
        b"\x01\x7b\x01\0\x0fID:host-1-2-0:1\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02"
        b"\x01\x65\x01\0\x04\xc3\xa9\xc0\x80"
        b"\0\x01\0\0\x01\x02"
    )


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("version", [1, 9, 12])
def test_a_frame_that_ends_anywhere_before_its_end_is_refused_whatever_was_decoded_before(version, tight):
    codec = Codec(version, tight=tight)
    commands = RandomCommands(Random(version), version)
    for data_type in types_of(version):
        frame = body(codec.encode(commands.command(data_type, depth=2)))
        codec.decode(frame)
        for size in [
            *range(len(frame)),
            *range(len(frame)),
        ]:  # what is remembered of the first must not help the second
            with pytest.raises(OpenWireError):
                codec.decode(frame[:size])
        with pytest.raises(OpenWireError, match="1 bytes follow a"):
            codec.decode(frame + b"\0")


CODECS = st.builds(
    Codec,
    st.sampled_from(VERSIONS),
    stack_trace_enabled=st.booleans(),
    tight=st.booleans(),
    cached=st.booleans(),
)


@given(data=st.binary(max_size=200), codec=CODECS)
@settings(max_examples=200)
def test_any_bytes_are_a_command_or_an_error_of_the_protocol(data, codec):
    decode_anything(codec, data)


@given(random=st.randoms(use_true_random=True), codec=CODECS)
@settings(max_examples=200)
def test_a_command_of_which_some_bytes_changed_is_a_command_or_an_error_of_the_protocol(random, codec):
    frame = bytearray(body(codec.encode(RandomCommands(random, codec.version).any())))
    for _ in range(random.randint(1, 4)):
        frame[random.randrange(len(frame))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    decode_anything(codec, bytes(frame))


def decode_anything(codec, data):
    """Decode what may be damaged; what can be decoded can be encoded."""
    try:
        command = codec.decode(data)
    except OpenWireError:
        return
    codec.encode(command)


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"", "a frame is empty"),
        (b"\x00", "type 0 does not exist in version 12"),
        (b"\x0d\0\0\0\0\0", "type 13 does not exist in version 12"),
        (b"\x0a\0\0\0\1", "a KeepAliveInfo ends too early: it is longer than its frame of 5 bytes"),
        (b"\x0a\0\0\0\1\0\0\0", "2 bytes follow a KeepAliveInfo in its frame of 8 bytes"),
        (b"\x04\0\0\0\1\0\1\x7b", r"field session_id holds a value of type 123 (ProducerId), which it cannot"),
        (b"\x03\0\0\0\1\0\0\0\0\0\1\xff\xff", "a list has -1 elements"),
        (b"\x0e\0\0\0\1\0\1\0\2\xff\xff", "a text of 2 bytes is not UTF-8: invalid start byte at byte 0"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said(frame, sentence):
    with pytest.raises(OpenWireError) as raised:
        Codec(12).decode(frame)
    assert str(raised.value) == sentence
    assert isinstance(raised.value, ProtocolError)


def test_bytes_of_a_negative_number_are_refused():
    token = b"\x12" + b"\0" * 10 + b"\0\0\0\1" + b"\xff\xff\xff\xff"
    with pytest.raises(OpenWireError, match="a ConnectionControl ends too early"):
        Codec(12).decode(token + b"\0" * 50)


@pytest.mark.parametrize("version", [0, 13, -1])
def test_an_unknown_version_is_refused(version):
    with pytest.raises(OpenWireError, match="is not supported: expected 1 to 12"):
        Codec(version)


def test_a_type_is_refused_in_a_version_before_it():
    with pytest.raises(OpenWireError, match="type 20 does not exist in version 1"):
        Codec(1).encode(c.MessagePull())
    with pytest.raises(OpenWireError, match="type 29 does not exist in version 2"):
        Codec(2).decode(b"\x1d")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (c.IntegerResponse(result=2**31), "IntegerResponse holds a value that does not fit"),
        (c.ControlCommand(command="x" * 65536), "has 65536 bytes: at most 65535 are allowed here"),
        (c.ConsumerInfo(destination=c.ConsumerId("a")), "field destination cannot hold a:0:0"),
        (c.DataArrayResponse(data=(None,) * 40_000), "DataArrayResponse holds a value that does not fit"),
        (c.DestinationInfo(destination=c.OpenWireDestination(104, "a")), "field destination cannot hold 104://a"),
    ],
)
def test_what_cannot_be_encoded_is_said(command, sentence):
    with pytest.raises(OpenWireError, match=sentence):
        Codec(12).encode(command)


def test_a_command_longer_than_the_limit_is_not_encoded():
    codec = Codec(12, max_frame_size=100)
    with pytest.raises(OpenWireError, match=r"a frame of \d+ bytes exceeds the limit of 100 bytes"):
        codec.encode(c.MessageCommand(content=b"x" * 100))
    assert codec.encode(c.KeepAliveInfo())


def test_commands_that_are_nested_too_deeply_are_refused():
    command = None
    for _ in range(MAX_DEPTH + 1):
        command = c.DataResponse(data=command)
    codec = Codec(12)
    assert codec.decode(body(codec.encode(command))) == command
    level = b"\x20\0\0\0\0\0\0\0\0\0\1"
    for levels in (MAX_DEPTH + 2, 200_000):
        with pytest.raises(OpenWireError, match=f"commands are nested more than {MAX_DEPTH} times"):
            codec.decode(level * levels)


def test_an_exception_with_too_many_causes_is_refused():
    one = b"\0\0\0\0\1"
    with pytest.raises(OpenWireError, match=f"more than {MAX_CAUSES} causes"):
        Codec(12, stack_trace_enabled=True).decode(b"\x1f" + b"\0" * 9 + b"\1" + one * 1_000_000)


@pytest.mark.parametrize("tight", [False, True])
def test_a_stack_trace_is_read_and_dropped_and_its_cause_kept(tight):
    error = c.WireThrowable(
        "a.B", "why", (c.StackElement("a.B", "run", None, -1), c.StackElement(None, None, "B.java", 7)),
        cause=c.WireThrowable("a.C", None),
    )  # fmt: skip
    with_traces, without = Codec(12, stack_trace_enabled=True, tight=tight), Codec(12, tight=tight)
    decoded = with_traces.decode(body(with_traces.encode(c.ExceptionResponse(1, False, 5, error))))
    assert decoded.exception == c.WireThrowable("a.B", "why", cause=c.WireThrowable("a.C", None))
    decoded = without.decode(body(without.encode(c.ExceptionResponse(1, False, 5, error))))
    assert decoded.exception == c.WireThrowable("a.B", "why")


def test_the_message_of_an_exception_is_cut_so_that_it_can_be_sent():
    codec = Codec(12)
    decoded = codec.decode(body(codec.encode(c.ConnectionError(exception=c.WireThrowable("a.B", "😀" * 70_000)))))
    assert decoded.exception.message == "😀" * MAX_MESSAGE_CHARACTERS


def test_a_count_that_no_frame_can_hold_costs_no_memory():
    frames = [
        b"\x03\0\0\0\1\0\0\0\0\0\1\x7f\xff",
        b"\x12" + b"\0" * 10 + b"\0\0\0\1" + b"\x7f\xff\xff\xff",
    ]
    tracemalloc.start()
    try:
        for frame in frames:
            with pytest.raises(OpenWireError):
                Codec(12).decode(frame)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_ids_that_are_remembered_are_bounded_and_each_is_of_its_own_type():
    codec, known = Codec(12), loose_decoders(12, False).known
    for number in range(MAX_KNOWN + 10):
        session = c.SessionInfo(session_id=c.SessionId("ID:a", number))
        assert codec.decode(body(codec.encode(session))) == session
    assert 0 < len(known) <= MAX_KNOWN
    before = len(known)
    long = c.SessionInfo(session_id=c.SessionId("x" * 10_000, 1))
    assert codec.decode(body(codec.encode(long))) == long
    assert len(known) == before
    consumer = body(codec.encode(c.ConsumerInfo(consumer_id=c.ConsumerId("ID:a", 1, 2))))
    codec.decode(consumer)
    with pytest.raises(OpenWireError, match="field producer_id holds a value of type 122"):
        codec.decode(b"\x06" + consumer[1:])


def test_a_frame_may_be_any_kind_of_bytes_and_its_command_does_not_refer_to_them():
    codec = Codec(12)
    frame = bytearray(body(codec.encode(c.MessageCommand(content=b"abc"))))
    command = codec.decode(memoryview(frame))
    frame[:] = bytes(len(frame))
    assert command.content == b"abc"
    assert type(command.content) is bytes
