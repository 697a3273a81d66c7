"""Compiles the functions that encode each type of each version in the tight encoding.

An encoder takes the value, a function that takes the bits, the list of the bytes, and the connection's state. What it
gives begins with the fields: the number of the type comes before the bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from brokerapp.openwire.commands.wire_fields import FORMATS, Kind, WireField
from brokerapp.openwire.encoding.compiled import CompiledFunctions
from brokerapp.openwire.encoding.loose_encoding import unexpected
from brokerapp.openwire.encoding.source import Source
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import TYPES_WITH_A_SPARE_BIT, Layout
from brokerapp.openwire.encoding.tight_texts import encode_number, encode_tight_text, write_throwable

Encoder = Callable[[Any, Callable[[bool], object], list[bytes], WireState], None]


@cache
def tight_encoders(version: int, cached: bool) -> CompiledFunctions[Encoder]:
    """Return the encoders of a version, with or without a cache of values."""
    return CompiledFunctions(_compile, version, cached)


def _compile(of: Layout, encoders: CompiledFunctions[Encoder], cached: bool) -> Encoder:
    source = Source(
        f"def encode_{of.name}_tightly(value, bits, data, state):",
        {
            "E": encoders,
            "text": encode_tight_text,
            "number": encode_number,
            "throwable": write_throwable,
            "length": Struct(">I").pack,
            "count": Struct(">h").pack,
            "number_of": Struct(">H").pack,
            "unexpected": unexpected,
        },
    )
    source.add("out = data.append")
    pending: list[tuple[str, str]] = []
    for name, wire in of.on_wire:
        if wire.kind is Kind.BOOLEAN:
            source.add(f"bits(value.{name})")
        elif wire.kind in FORMATS and wire.kind is not Kind.LONG:
            pending.append((f"value.{name}", FORMATS[wire.kind]))
        else:
            _add_pending(source, pending)
            _add_field(source, name, wire, cached)
    _add_pending(source, pending)
    encoder: Encoder = source.compile()
    return encoder


def _add_pending(source: Source, pending: list[tuple[str, str]]) -> None:
    """Add what writes neighbours of fixed lengths at once, between which only bits are written."""
    if pending:
        pack = source.constant(Struct(">" + "".join(letter for _, letter in pending)).pack)
        source.add(f"out({pack}({', '.join(expression for expression, _ in pending)}))")
        pending.clear()


def _add_field(source: Source, name: str, wire: WireField, cached: bool) -> None:
    if wire.kind is Kind.LONG:
        source.add(f"out(number(value.{name}, bits))")
        return
    source.add(f"v = value.{name}")
    lines = [
        "there = v is not None; bits(there)",
        "if there:",
        *(f"    {each}" for each in _value_lines(source, name, wire)),
    ]
    if wire.kind is not Kind.CACHED or not cached:
        for line in lines:
            source.add(line)
        return
    source.add("cached = state.sent.number(v); bits(cached is None)")
    source.add("if cached is None:")
    source.add("    at = len(data); out(b'')")  # its number is given behind those of values in it
    for line in lines:
        source.add(f"    {line}")
    source.add("    data[at] = number_of(state.sent.add(v))")
    source.add("else: out(number_of(cached))")


def _value_lines(source: Source, name: str, wire: WireField) -> list[str]:
    match wire.kind:
        case Kind.STRING:
            return ["out(text(v, bits))"]
        case Kind.BYTES:
            return ["out(length(len(v))); out(v)"]
        case Kind.THROWABLE:
            return ["throwable(v, bits, out, state.stack_traces)"]
        case Kind.ARRAY:
            return [
                "out(count(len(v)))",
                "for item in v:",
                "    there = item is not None; bits(there)",
                "    if there:",
                *(f"        {line}" for line in _nested_lines(source, "item", name, wire)),
            ]
        case _:
            return _nested_lines(source, "v", name, wire)


def _nested_lines(source: Source, value: str, name: str, wire: WireField) -> list[str]:
    lines = [f"kind = {value}.data_type"]
    if wire.nested_types:
        allowed = source.constant(frozenset(wire.nested_types))
        lines.append(f"if kind not in {allowed}: raise unexpected({value}, {name!r})")
    if not wire.nested_types or not TYPES_WITH_A_SPARE_BIT.isdisjoint(wire.nested_types):
        lines.append(f"if kind in {source.constant(TYPES_WITH_A_SPARE_BIT)}: bits(False)")
    return [*lines, "out(bytes((kind,)))", f"E[kind]({value}, bits, data, state)"]
