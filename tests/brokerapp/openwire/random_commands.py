"""Random commands and values of every type, by the layouts of the codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from brokerapp.openwire.commands import WireThrowable
from brokerapp.openwire.commands.connections import MAGIC
from brokerapp.openwire.commands.data_types import FIRST_VERSIONS, MAX_VERSION, MIN_VERSION
from brokerapp.openwire.commands.wire_fields import Kind, WireField
from brokerapp.openwire.encoding.table import CLASSES, layout

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


def random_text(random: Random, longest: int = 12) -> str:
    """Return a text that Java can hold."""
    return "".join(random.choices(LETTERS, k=random.randint(0, longest)))


@dataclass
class RandomCommands:
    """Makes commands with the fields that a version has."""

    random: Random
    version: int
    #: Exceptions have causes.
    causes: bool = False
    #: Ids lack nothing: Java cannot look up others in a cache.
    whole_ids: bool = False

    def one_of_each(self, rounds: int = 1) -> list[Any]:
        """Return so many commands of each type."""
        return [self.command(data_type) for _ in range(rounds) for data_type in types_of(self.version)]

    def any(self) -> Any:
        """Return a command of any type."""
        return self.command(self.random.choice(types_of(self.version)))

    def command(self, data_type: int, depth: int = DEPTH) -> Any:
        """Return a command of a type."""
        of = layout(data_type, self.version)
        lacking = not (self.whole_ids and of.cls.__dataclass_params__.frozen)
        fields = {name: self._field(name, wire, depth, lacking) for name, wire in of.on_wire}
        return of.cls(**fields, **{each.name: data_type for each in of.fields if each.wire is None})

    def _field(self, name: str, wire: WireField, depth: int, lacking: bool) -> object:
        if name == "priority":  # Java brings what a message has within these
            return self.random.randint(0, 9)
        if make := _SIMPLE.get(wire.kind):
            return make(self.random)
        if name == "physical_name":  # Java cannot do without, and takes commas and question marks apart
            return "".join(self.random.choices("abc.>*", k=8))
        if lacking and name not in FILLED_BY_JAVA and self.random.random() < 0.3:
            return None
        match wire.kind:
            case Kind.STRING:
                return random_text(self.random)
            case Kind.BYTES:
                return self.random.randbytes(self.random.choice((0, 1, 30)))
            case Kind.THROWABLE:
                return self._throwable()
        return self._nested_field(name, wire, depth) if depth or not lacking else None

    def _nested_field(self, name: str, wire: WireField, depth: int) -> object:
        if wire.kind is Kind.ARRAY:
            items = (self._nested(wire, depth) for _ in range(self.random.randint(name in FILLED_BY_JAVA, 3)))
            return tuple(each if self.random.random() < 0.9 else None for each in items)
        return self._nested(wire, depth)

    def _nested(self, wire: WireField, depth: int) -> object:
        known = types_of(self.version)
        types = [each for each in wire.nested_types or known if each in known]
        return self.command(self.random.choice(types), depth - 1)

    def _throwable(self) -> WireThrowable:
        cause = self._throwable() if self.causes and self.random.random() < 0.5 else None
        return WireThrowable(self.random.choice(THROWABLES), random_text(self.random), cause=cause)


def _integer(random: Random, bits: int) -> int:
    """Return a number of up to so many bits and a sign: often next to a limit, else of any length."""
    limits = (0, 1, -1, 0xFFFF, 0x10000, 2**bits - 1, -(2**bits), 0xFFFF_FFFF % 2**bits, 0x1_0000_0000 % 2**bits)
    return random.choice((*limits, random.randint(-(2**bits), 2**bits - 1) >> random.randrange(bits)))


_SIMPLE: dict[Kind, Callable[[Random], object]] = {
    Kind.BOOLEAN: lambda random: random.random() < 0.5,
    Kind.BYTE: lambda random: random.randint(-128, 127),
    Kind.INT: lambda random: _integer(random, 31),
    Kind.LONG: lambda random: _integer(random, 63),
    Kind.MAGIC: lambda _random: MAGIC,
}
