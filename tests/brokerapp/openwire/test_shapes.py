"""Commands that come often are encoded and decoded by functions for their shape: to the same bytes and values."""

from dataclasses import replace
from random import Random

import pytest

from brokerapp.errors import OpenWireError
from brokerapp.openwire import codec as codecs
from brokerapp.openwire import commands as c
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.shapes import known_shapes
from brokerapp.openwire.shapes.known_shapes import COMMANDS_TO_COMPILE, KnownShapes, Unsuitable
from tests.brokerapp.openwire.random_commands import VERSIONS, RandomCommands

CACHED = [False, True]


@pytest.fixture
def compiling_at_once(monkeypatch):
    """Let the first command of a shape compile its functions, and no others be known."""
    monkeypatch.setattr(known_shapes, "COMMANDS_TO_COMPILE", 1)
    monkeypatch.setattr(known_shapes, "MAX_SHAPES", 100_000)
    _forget_shapes()
    yield
    _forget_shapes()


def _forget_shapes():
    codecs._shape_decoders.cache_clear()
    codecs._shape_encoders.cache_clear()


class NoShapes(KnownShapes):
    """Compiles nothing."""

    def note(self, shape, compile_function):
        return None


def without_shapes(version, cached):
    """Return a codec that encodes each command as if it were the first of its shape."""
    codec = Codec(version, tight=True, cached=cached)
    codec._shape_encoders = NoShapes()
    return codec


@pytest.mark.parametrize("cached", CACHED)
@pytest.mark.parametrize("version", VERSIONS)
def test_any_command_that_comes_again_is_the_same(version, cached, compiling_at_once):
    ours, theirs = (Codec(version, tight=True, cached=cached) for _ in range(2))
    plain, random = without_shapes(version, cached), RandomCommands(Random(version), version)
    for command in random.one_of_each(rounds=3):
        for _ in range(3):
            frame = ours.encode(command)
            assert frame == plain.encode(command)
            assert theirs.decode(frame[4:]) == command
    assert codecs._shape_encoders(version, cached).functions
    assert codecs._shape_decoders(version, cached).functions


def message(**fields):
    producer = c.ProducerId("ID:a", 1, 1)
    return c.MessageCommand(
        command_id=5, producer_id=producer, destination=c.OpenWireDestination(physical_name="q"),
        message_id=c.MessageId(None, producer, 1, 1), timestamp=2**40, content=b"body",
        data_type=t.TEXT_MESSAGE, **fields,
    )  # fmt: skip


OTHERS = [
    {"expiration": 1}, {"timestamp": 0}, {"timestamp": 1}, {"timestamp": 2**20}, {"timestamp": -1},
    {"persistent": True},
    {"content": None}, {"content": b""}, {"content": bytes(300)}, {"group_id": "g"}, {"data_type": t.BYTES_MESSAGE},
    {"reply_to": c.OpenWireDestination(t.QUEUE, "r")}, {"reply_to": c.OpenWireDestination(t.TOPIC, "r")},
    {"producer_id": c.ProducerId("ID:b", 1, 1)}, {"producer_id": None}, {"message_id": None}, {"type": "ü"},
    {"message_id": c.MessageId("ID:text", c.ProducerId("ID:a", 1, 1), 1, 70_000)},
]  # fmt: skip


@pytest.mark.parametrize("cached", CACHED)
@pytest.mark.parametrize("fields", OTHERS, ids=range(len(OTHERS)))
def test_a_message_of_another_shape_is_what_it_is(fields, cached, compiling_at_once):
    ours, theirs, plain = Codec(tight=True, cached=cached), Codec(tight=True, cached=cached), without_shapes(12, cached)
    for each in (message(), message(), replace(message(), **fields), message(), replace(message(), **fields)):
        dispatch = c.MessageDispatch(consumer_id=c.ConsumerId("ID:c", 1, 1), message=each)
        frame = ours.encode(dispatch)
        assert frame == plain.encode(dispatch)
        assert theirs.decode(frame[4:]) == dispatch


def test_a_value_that_does_not_fit_and_a_frame_that_is_too_long_are_refused(compiling_at_once):
    ours = Codec(tight=True, max_frame_size=200)
    for _ in range(3):
        ours.encode(message())
    with pytest.raises(OpenWireError, match="does not fit"):
        ours.encode(replace(message(), command_id=2**31))
    with pytest.raises(OpenWireError, match="exceeds the limit of 200 bytes"):
        ours.encode(replace(message(), content=bytes(201)))


def test_a_number_that_was_not_sent_before_is_refused_by_the_function_of_a_shape(compiling_at_once):
    ours, theirs, others = (Codec(tight=True, cached=True) for _ in range(3))
    for _ in range(3):
        frame = ours.encode(message())[4:]
        theirs.decode(frame)
    with pytest.raises(OpenWireError, match="field producer_id holds the value number 0, which was not sent before"):
        others.decode(frame)


def test_a_function_is_compiled_for_what_comes_often_and_few_of_them():
    known, compiled = KnownShapes(), []

    def compile_function():
        compiled.append(1)
        return len

    for _ in range(COMMANDS_TO_COMPILE - 1):
        assert known.note("a", compile_function) is None
    assert known.note("a", compile_function) is len
    assert known.functions == {"a": len}
    for shape in range(2 * known_shapes.MAX_SHAPES):
        for _ in range(COMMANDS_TO_COMPILE):
            known.note(shape, compile_function)
    assert len(known.functions) == len(compiled) == known_shapes.MAX_SHAPES


def test_what_cannot_be_compiled_is_not_tried_again():
    known, tried = KnownShapes(), []

    def compile_function():
        tried.append(1)
        raise Unsuitable

    for _ in range(3 * COMMANDS_TO_COMPILE):
        assert known.note("a", compile_function) is None
    assert tried == [1]
