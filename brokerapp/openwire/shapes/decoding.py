"""Compiles functions that decode commands of one shape from the tight encoding.

A shape is the type with all truth values of a command. These say which fields are there, how long numbers are and which
values were sent before; so fields of fixed lengths that follow each other are read at once, whichever command they are
of. A function takes the bytes and the connection's state. It returns the command and where it ends, or None where a
nested value is of another type than in the command for which it was compiled. Then it may also raise struct.error.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from brokerapp.openwire.commands.wire_fields import FORMATS, Kind, WireField
from brokerapp.openwire.encoding.modified_utf8 import decode_text
from brokerapp.openwire.encoding.source import Source
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import TYPES_WITH_A_SPARE_BIT, Layout, layout
from brokerapp.openwire.encoding.tight_texts import decode_bits
from brokerapp.openwire.shapes.known_shapes import Unsuitable

ShapeDecoder = Callable[[bytes, WireState], tuple[Any, int] | None]


def compile_decoder(sample: bytes, version: int, cached: bool) -> ShapeDecoder:
    """Return the function for commands of the shape of this one, which can be decoded. Raises Unsuitable."""
    return _Compiler(sample, version, cached).compile()


class _Compiler:
    """Writes the source of one function while it reads the sample."""

    def __init__(self, sample: bytes, version: int, cached: bool) -> None:
        self._sample, self._version, self._cached = sample, version, cached
        self._source = Source("def decode_shape(data, state):", {"text": decode_text})
        bits, self._pos = decode_bits(sample, 1)
        self._bit = bits.__next__
        self._begin = str(self._pos)  # where the fields are that are read at once next
        self._fixed: list[tuple[str, str]] = []  # their names and formats
        self._kinds: list[str] = []  # what is so where a nested value is of another type
        self._cached_values: list[tuple[str, tuple[int, ...], str]] = []  # names of their numbers, types, and fields

    def compile(self) -> ShapeDecoder:
        """Return the function."""
        made, source = self._read(layout(self._sample[0], self._version)), self._source
        self._read_fixed()
        if self._cached_values:
            fields = source.constant(tuple((types, field) for _, types, field in self._cached_values))
            names = "".join(f"{name}, " for name, _, _ in self._cached_values)
            source.add(f"{names}= state.received.all_of({source.constant(object())}, ({names}), {fields})")
        source.add(f"return {made}, {self._begin}")
        function: ShapeDecoder = source.compile()
        return function

    def _read(self, of: Layout) -> str:
        """Read a value; return the expression that makes it."""
        values = {name: self._read_field(name, wire) for name, wire in of.on_wire}
        arguments = [values.get(each.name) or self._source.constant(each.default) for each in of.fields]
        return f"{self._source.constant(of.cls)}({', '.join(arguments)})"

    def _read_field(self, name: str, wire: WireField) -> str:
        """Read a field; return the expression of its value."""
        if wire.kind is Kind.BOOLEAN:
            return str(self._bit())
        if wire.kind is Kind.LONG:
            letter = ("q" if self._bit() else "I") if self._bit() else ("H" if self._bit() else "")
            return self._name_fixed(letter) if letter else "0"
        if wire.kind in FORMATS:
            return self._name_fixed(FORMATS[wire.kind])
        if wire.kind is Kind.CACHED and self._cached:
            if self._bit():  # it comes this once
                raise Unsuitable
            number = self._name_fixed("H")
            self._cached_values.append((number, wire.nested_types, name))
            return number
        if not self._bit():
            return "None"
        match wire.kind:
            case Kind.STRING:
                return self._read_variable("H", "{}.decode('latin-1')" if self._bit() else "text({})")
            case Kind.BYTES:
                return self._read_variable("I", "{}")
            case Kind.NESTED | Kind.CACHED:
                return self._read_nested(wire)
            case _:
                raise Unsuitable

    def _name_fixed(self, letter: str) -> str:
        """Let a field of this format be read with its neighbours; return its name."""
        name = f"v{len(self._fixed)}_{self._pos}"
        self._fixed.append((name, letter))
        self._pos += Struct(f">{letter}").size
        return name

    def _read_fixed(self) -> None:
        """Add what reads the neighbours of fixed lengths up to here."""
        if self._fixed:
            structure = Struct(">" + "".join(letter for _, letter in self._fixed))
            names = "".join(f"{name}, " for name, _ in self._fixed)
            self._source.add(f"{names}= {self._source.constant(structure.unpack_from)}(data, {self._begin})")
            self._begin = f"{self._begin} + {structure.size}"
            self._fixed.clear()
        if self._kinds:  # where any differs, what follows is of another form
            self._source.add(f"if {' or '.join(self._kinds)}: return None")
            self._kinds.clear()

    def _read_variable(self, letter: str, read: str) -> str:
        """Add what reads a field behind its length, which has this format; return its name."""
        length, name = self._name_fixed(letter), f"v{self._pos}"
        size = Struct(f">{letter}").size
        self._read_fixed()
        self._source.add(f"start = {self._begin}; pos = start + {length}")
        self._source.add(f"{name} = {read.format('data[start:pos]')}")
        self._pos += int.from_bytes(self._sample[self._pos - size : self._pos])
        self._begin = "pos"
        return name

    def _read_nested(self, wire: WireField) -> str:
        kind = self._sample[self._pos]
        self._kinds.append(f"{self._name_fixed('B')} != {kind}")
        if kind in TYPES_WITH_A_SPARE_BIT and self._bit():
            raise Unsuitable
        return self._read(layout(kind, self._version))
