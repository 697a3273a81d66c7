"""Random commands and values of every type, by the layouts of the codec."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from brokerapp.openwire.commands import WireThrowable
from brokerapp.openwire.commands.connections import MAGIC
from brokerapp.openwire.commands.data_types import FIRST_VERSIONS, MAX_VERSION, MIN_VERSION
from brokerapp.openwire.commands.wire_fields import Kind, WireField
from brokerapp.openwire.encoding.table import CLASSES, Layout, layout

VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)
#: Everything that one, two, three and six bytes of modified UTF-8 stand for, and what is next to a limit.
LETTERS = "aZ09 .:-/\0\x7f\x80ß\u07ff\u0800€\uffff\U00010000😀\U0010ffff"
#: Classes that a Java client has, and that can be made of a message.
THROWABLES = ("java.lang.IllegalStateException", "javax.jms.JMSException", "java.io.IOException")
#: What Java encodes with a value of its own where there is none.
FILLED_BY_JAVA = frozenset({"mime_type", "subscribed_destination", "network_consumer_path"})
#: How deeply commands hold others.
DEPTH = 3


def types_of(version: int) -> list[int]:
    """Return the types that a version has."""
    return [each for each in sorted(CLASSES) if FIRST_VERSIONS.get(each, MIN_VERSION) <= version]


def random_command(random: Random, data_type: int, version: int, *, depth: int = DEPTH, causes: bool = False) -> Any:
    """Return a command of a type with the fields that the version has; `causes`: its exceptions have causes."""
    of = layout(data_type, version)
    fields = {name: _field(random, of, name, wire, version, depth, causes) for name, wire in of.on_wire}
    numbers = {each.name: data_type for each in of.fields if each.wire is None}
    return of.cls(**fields, **numbers)


def random_text(random: Random, longest: int = 12) -> str:
    """Return a text that Java can hold."""
    return "".join(random.choices(LETTERS, k=random.randint(0, longest)))


def _field(random: Random, of: Layout, name: str, wire: WireField, version: int, depth: int, causes: bool) -> object:
    if name == "priority":  # Java brings what a message has within these
        return random.randint(0, 9)
    if make := _SIMPLE.get(wire.kind):
        return make(random)
    if name == "physical_name":  # Java cannot do without, and takes commas and question marks apart
        return "".join(random.choices("abc.>*", k=8))
    if name not in FILLED_BY_JAVA and random.random() < 0.3:
        return None
    match wire.kind:
        case Kind.STRING:
            return random_text(random)
        case Kind.BYTES:
            return random.randbytes(random.choice((0, 1, 30)))
        case Kind.THROWABLE:
            return _throwable(random, causes)
    return None if depth == 0 else _nested_field(random, name, wire, version, depth, causes)


def _nested_field(random: Random, name: str, wire: WireField, version: int, depth: int, causes: bool) -> object:
    if wire.kind is Kind.ARRAY:
        count = random.randint(name in FILLED_BY_JAVA, 3)
        items = (_nested(random, wire, version, depth, causes) for _ in range(count))
        return tuple(each if random.random() < 0.9 else None for each in items)
    return _nested(random, wire, version, depth, causes)


def _nested(random: Random, wire: WireField, version: int, depth: int, causes: bool) -> object:
    known = types_of(version)
    types = [each for each in wire.nested_types or known if each in known]
    return random_command(random, random.choice(types), version, depth=depth - 1, causes=causes)


def _integer(random: Random, bits: int) -> int:
    return random.choice((0, 1, -1, 2**bits - 1, -(2**bits), random.randint(-(2**bits), 2**bits - 1)))


def _throwable(random: Random, causes: bool) -> WireThrowable:
    cause = _throwable(random, causes) if causes and random.random() < 0.5 else None
    return WireThrowable(random.choice(THROWABLES), random_text(random), cause=cause)


_SIMPLE: dict[Kind, Callable[[Random], object]] = {
    Kind.BOOLEAN: lambda random: random.random() < 0.5,
    Kind.BYTE: lambda random: random.randint(-128, 127),
    Kind.INT: lambda random: _integer(random, 31),
    Kind.LONG: lambda random: _integer(random, 63),
    Kind.MAGIC: lambda _random: MAGIC,
}
