"""Compiles functions that encode commands of one shape in the tight encoding.

A shape is the type with all truth values of a command, and the types of what is nested in it. A function takes the
command, the connection's state and the longest frame. It returns the frame with its length before it, or None where the
command is of another shape or the frame would be too long: whether it is of the shape is seen by what it compares, and
the truth values need not be made.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from brokerapp.openwire.commands.wire_fields import FORMATS, Kind, WireField
from brokerapp.openwire.encoding.modified_utf8 import encode_text
from brokerapp.openwire.encoding.source import Source
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import Layout, layout
from brokerapp.openwire.encoding.tight_texts import MAX_TEXT_BYTES
from brokerapp.openwire.shapes.known_shapes import Unsuitable

ShapeEncoder = Callable[[Any, WireState, int], bytes | None]
#: How much of a number of 64 bits is sent: its format, and what is so where it takes another one.
_LONGS = (
    (range(1), "", "{0}"),
    (range(1, 1 << 16), "H", "not 0 < {0} <= 0xFFFF"),
    (range(1 << 16, 1 << 32), "I", "not 0xFFFF < {0} <= 0xFFFF_FFFF"),
)
_LONGEST = "q", "0 <= {0} <= 0xFFFF_FFFF"


def compile_encoder(sample: Any, bits: bytes, version: int, cached: bool) -> ShapeEncoder:
    """Return the function for commands of the shape of this one, which can be encoded and has these truth values,
    with their length. Raises Unsuitable.
    """
    return _Compiler(bits, version, cached).compile(sample)


class _Compiler:
    """Writes the source of one function while it looks at the sample."""

    def __init__(self, bits: bytes, version: int, cached: bool) -> None:
        self._bits, self._version, self._cached = bits, version, cached
        self._source = Source("def encode_shape(c, state, limit):", {"text": encode_text})
        self._fixed: list[tuple[str, str]] = []  # expressions and formats of neighbours that are written at once
        self._parts: list[str] = []  # expressions of the parts of the frame
        self._size = 0  # bytes of fixed lengths
        self._lengths: list[str] = []  # expressions of the others
        self._differences: list[str] = []  # what is so where a command is of another shape
        self._count = 0

    def compile(self, sample: Any) -> ShapeEncoder:
        """Return the function."""
        source, begin = self._source, bytes((sample.data_type,)) + self._bits
        source.add("number = state.sent.number")
        self._add_fixed("size", "I")
        self._add_fixed(source.constant(begin), f"{len(begin)}s")
        self._write(layout(sample.data_type, self._version), "c", sample)
        self._compare()
        self._end_part()
        source.add(f"size = {' + '.join([str(self._size - 4), *self._lengths])}")
        source.add("if size > limit: return None")
        source.add(f"return b''.join(({''.join(f'{each}, ' for each in self._parts)}))")
        function: ShapeEncoder = source.compile()
        return function

    def _new(self, expression: str) -> str:
        """Give a value a name."""
        self._count += 1
        self._source.add(f"v{self._count} = {expression}")
        return f"v{self._count}"

    def _compare(self) -> None:
        """Add what ends with None where anything differs so far."""
        if self._differences:
            self._source.add(f"if {' or '.join(self._differences)}: return None")
            self._differences.clear()

    def _add_fixed(self, expression: str, letter: str) -> None:
        self._fixed.append((expression, letter))
        self._size += Struct(f">{letter}").size

    def _end_part(self) -> None:
        """Write the neighbours of fixed lengths up to here."""
        if self._fixed:
            pack = self._source.constant(Struct(">" + "".join(letter for _, letter in self._fixed)).pack)
            self._parts.append(f"{pack}({', '.join(expression for expression, _ in self._fixed)})")
            self._fixed.clear()

    def _write(self, of: Layout, name: str, sample: Any) -> None:
        """Write a value of this name."""
        for field, wire in of.on_wire:
            self._write_field(f"{name}.{field}", wire, getattr(sample, field))

    def _write_field(self, value: str, wire: WireField, sample: Any) -> None:
        if wire.kind is Kind.BOOLEAN:
            self._differences.append(f"not {value}" if sample else value)
        elif wire.kind is Kind.LONG:
            self._write_long(value, sample)
        elif wire.kind in FORMATS:
            self._add_fixed(value, FORMATS[wire.kind])
        elif wire.kind is Kind.CACHED and self._cached:
            number = self._new(f"number({value})")
            self._differences.append(f"{number} is None")
            self._add_fixed(number, "H")
        elif sample is None:
            self._differences.append(f"{value} is not None")
        else:
            self._write_there(value, wire, sample)

    def _write_long(self, value: str, sample: int) -> None:
        letter, difference = next(((each, text) for values, each, text in _LONGS if sample in values), _LONGEST)
        name = self._new(value) if letter else value
        self._differences.append(difference.format(name))
        if letter:
            self._add_fixed(name, letter)

    def _write_there(self, value: str, wire: WireField, sample: Any) -> None:
        """Write a field that is there."""
        name = self._new(value)
        self._differences.append(f"{name} is None")
        match wire.kind:
            case Kind.STRING:
                self._compare()
                raw = self._new(f"text({name})")
                is_plain = "!=" if len(encode_text(sample)) == len(sample) else "=="
                self._differences.append(f"len({raw}) > {MAX_TEXT_BYTES} or len({raw}) {is_plain} len({name})")
                self._write_variable(raw, "H")
            case Kind.BYTES:
                self._compare()
                self._write_variable(name, "I")
            case Kind.NESTED | Kind.CACHED:
                self._compare()
                self._differences.append(f"{name}.data_type != {sample.data_type}")
                self._compare()
                self._add_fixed(str(sample.data_type), "B")
                self._write(layout(sample.data_type, self._version), name, sample)
            case _:
                raise Unsuitable

    def _write_variable(self, raw: str, letter: str) -> None:
        length = self._new(f"len({raw})") if letter == "I" else f"len({raw})"
        self._add_fixed(length, letter)
        self._end_part()
        self._parts.append(raw)
        self._lengths.append(length)
