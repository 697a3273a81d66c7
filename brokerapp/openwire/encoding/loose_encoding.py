"""Compiles the functions that encode each type of each version in the loose encoding.

An encoder takes the value, a function that takes the bytes in their order, and the connection's state. What it gives
begins with the number of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands.wire_fields import FORMATS, Kind, WireField
from brokerapp.openwire.encoding.compiled import CompiledFunctions
from brokerapp.openwire.encoding.loose_texts import write_throwable
from brokerapp.openwire.encoding.modified_utf8 import encode_short_text
from brokerapp.openwire.encoding.source import Source
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import Layout, Segment

Encoder = Callable[[Any, Callable[[bytes], object], WireState], None]


@cache
def loose_encoders(version: int, cached: bool) -> CompiledFunctions[Encoder]:
    """Return the encoders of a version, with or without a cache of values."""
    return CompiledFunctions(_compile, version, cached)


def _compile(of: Layout, encoders: CompiledFunctions[Encoder], cached: bool) -> Encoder:
    source = Source(
        f"def encode_{of.name}(value, out, state):",
        {
            "E": encoders,
            "text": encode_short_text,
            "throwable": write_throwable,
            "length": Struct(">I").pack,
            "count": Struct(">h").pack,
            "number_of": Struct(">H").pack,
            "unexpected": unexpected,
        },
    )
    before = [(str(of.data_type), "B")]
    for segment in of.segments:
        _add_segment(source, before, segment, cached)
        before = []
    if before:
        source.add(f"out({bytes([of.data_type])!r})")
    encoder: Encoder = source.compile()
    return encoder


def _add_segment(source: Source, before: list[tuple[str, str]], segment: Segment, cached: bool) -> None:
    """Add what writes a segment; `before` are expressions and formats of what comes before its fields."""
    parts = [*before, *((f"value.{name}", FORMATS[kind]) for name, kind in segment.fixed)]
    if segment.optional:
        name, wire = segment.optional
        source.add(f"v = value.{name}")
        if wire.kind is Kind.CACHED and cached:
            source.add("number = state.sent.number(v); there = number is None")
        else:
            source.add("there = v is not None")
        parts.append(("there", "?"))
    pack = source.constant(Struct(">" + "".join(letter for _, letter in parts)).pack)
    source.add(f"out({pack}({', '.join(expression for expression, _ in parts)}))")
    if segment.optional:
        _add_optional(source, *segment.optional, cached)


def _add_optional(source: Source, name: str, wire: WireField, cached: bool) -> None:
    """Add what writes a field, `v`, whose presence was written already."""
    if wire.kind is Kind.CACHED and cached:
        source.add("if there:")
        source.add("    out(number_of(state.sent.add(v)))")
        source.add("    if v is None: out(b'\\0')")
        source.add("    else:")
        source.add("        out(b'\\1')")
        indent = "        "
    else:
        source.add("if there:")
        indent = "    "
    for line in _value_lines(source, name, wire):
        source.add(indent + line)
    if wire.kind is Kind.CACHED and cached:
        source.add("else: out(number_of(number))")


def _value_lines(source: Source, name: str, wire: WireField) -> list[str]:
    match wire.kind:
        case Kind.STRING:
            return ["out(text(v))"]
        case Kind.BYTES:
            return ["out(length(len(v))); out(v)"]
        case Kind.THROWABLE:
            return ["throwable(v, out, state.stack_traces)"]
        case Kind.ARRAY:
            return [
                "out(count(len(v)))",
                "for item in v:",
                "    if item is None: out(b'\\0'); continue",
                "    out(b'\\1')",
                *(f"    {line}" for line in _nested_lines(source, "item", name, wire)),
            ]
        case _:
            return _nested_lines(source, "v", name, wire)


def _nested_lines(source: Source, value: str, name: str, wire: WireField) -> list[str]:
    types = wire.nested_types
    if len(types) == 1:
        return [f"E[{types[0]}]({value}, out, state)"]
    lines = [f"kind = {value}.data_type"]
    if types:
        lines.append(f"if kind not in {source.constant(frozenset(types))}: raise unexpected({value}, {name!r})")
    return [*lines, f"E[kind]({value}, out, state)"]


def unexpected(value: object, field: str) -> OpenWireError:
    """Return the error of a field that holds this value."""
    return OpenWireError(f"field {field} cannot hold {value}")
