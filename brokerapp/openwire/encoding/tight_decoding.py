"""Compiles the functions that decode each type of each version from bytes in the tight encoding.

A decoder takes the bytes, where the fields begin, a function that returns the next bit, the connection's state and how
deeply it is nested; it returns the value and where it ends, which may be behind the end of the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands.wire_fields import FORMATS, Kind, WireField
from brokerapp.openwire.encoding.compiled import CompiledFunctions
from brokerapp.openwire.encoding.loose_decoding import MAX_DEPTH, count_at, too_deep, unexpected
from brokerapp.openwire.encoding.modified_utf8 import decode_text
from brokerapp.openwire.encoding.source import Source
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import TYPES_WITH_A_SPARE_BIT, Layout
from brokerapp.openwire.encoding.tight_texts import Bit, read_throwable

Decoder = Callable[[bytes, int, Bit, WireState, int], tuple[Any, int]]


@cache
def tight_decoders(version: int, cached: bool) -> CompiledFunctions[Decoder]:
    """Return the decoders of a version, with or without a cache of values."""
    return CompiledFunctions(_compile, version, cached)


def _compile(of: Layout, decoders: CompiledFunctions[Decoder], cached: bool) -> Decoder:
    source = Source(
        f"def decode_{of.name}_tightly(data, pos, bit, state, depth):",
        {
            "D": decoders,
            "C": of.cls,
            "text": decode_text,
            "throwable": read_throwable,
            "short": Struct(">H").unpack_from,
            "int": Struct(">I").unpack_from,
            "long": Struct(">q").unpack_from,
            "count": count_at,
            "unexpected": unexpected,
            "too_deep": too_deep,
            "own_bits": _own_bits,
            "MAX_DEPTH": MAX_DEPTH,
        },
    )
    if of.is_recursive:
        source.add("if depth > MAX_DEPTH: raise too_deep()")
    pending: list[tuple[str, str]] = []
    for name, wire in of.on_wire:
        if wire.kind is Kind.BOOLEAN:
            source.add(f"v_{name} = bit()")
        elif wire.kind in FORMATS and wire.kind is not Kind.LONG:
            pending.append((f"v_{name}", FORMATS[wire.kind]))
        else:
            _add_pending(source, pending)
            _add_field(source, name, wire, cached)
    _add_pending(source, pending)
    sent = {name for name, _ in of.on_wire}
    arguments = [f"v_{each.name}" if each.name in sent else source.constant(each.default) for each in of.fields]
    source.add(f"return C({', '.join(arguments)}), pos")
    decoder: Decoder = source.compile()
    return decoder


def _add_pending(source: Source, pending: list[tuple[str, str]]) -> None:
    """Add what reads neighbours of fixed lengths at once, between which only bits are read."""
    if pending:
        structure = Struct(">" + "".join(letter for _, letter in pending))
        source.add(f"{', '.join(name for name, _ in pending)}, = {source.constant(structure.unpack_from)}(data, pos)")
        source.add(f"pos += {structure.size}")
        pending.clear()


def _add_field(source: Source, name: str, wire: WireField, cached: bool) -> None:
    value = f"v_{name}"
    if wire.kind is Kind.LONG:
        source.add("if bit():")
        source.add(f"    if bit(): ({value},) = long(data, pos); pos += 8")
        source.add(f"    else: ({value},) = int(data, pos); pos += 4")
        source.add(f"elif bit(): ({value},) = short(data, pos); pos += 2")
        source.add(f"else: {value} = 0")
        return
    lines = ["if bit():", *(f"    {each}" for each in _value_lines(source, value, name, wire)), f"else: {value} = None"]
    if wire.kind is not Kind.CACHED or not cached:
        for line in lines:
            source.add(line)
        return
    source.add("new = bit(); (number,) = short(data, pos); pos += 2")
    source.add("if new:")
    source.add("    first = pos")
    for line in lines:
        source.add(f"    {line}")
    source.add(f"    state.received.put(number, {value}, pos - first)")
    source.add(f"else: {value} = state.received.get(number, {source.constant(wire.nested_types)}, {name!r})")


def _value_lines(source: Source, value: str, name: str, wire: WireField) -> list[str]:
    match wire.kind:
        case Kind.STRING:
            return [
                "start = pos + 2",
                "pos = start + (data[pos] << 8 | data[pos + 1])",
                f"{value} = data[start:pos].decode('latin-1') if bit() else text(data[start:pos])",
            ]
        case Kind.BYTES:
            return ["start = pos + 4", "pos = start + int(data, pos)[0]", f"{value} = data[start:pos]"]
        case Kind.THROWABLE:
            return [f"{value}, pos = throwable(data, pos, bit, state.stack_traces)"]
        case Kind.ARRAY:
            return [
                "items = []; left = count(data, pos); pos += 2",
                "for _ in range(left):",
                "    if bit():",
                *(f"        {line}" for line in _nested_lines(source, "item", name, wire)),
                "        items.append(item)",
                "    else: items.append(None)",
                f"{value} = tuple(items)",
            ]
        case _:
            return _nested_lines(source, value, name, wire)


def _nested_lines(source: Source, value: str, name: str, wire: WireField) -> list[str]:
    lines = ["kind = data[pos]"]
    if wire.nested_types:
        lines.append(
            f"if kind not in {source.constant(frozenset(wire.nested_types))}: raise unexpected(kind, {name!r})"
        )
    if not wire.nested_types or not TYPES_WITH_A_SPARE_BIT.isdisjoint(wire.nested_types):
        lines.append(f"if kind in {source.constant(TYPES_WITH_A_SPARE_BIT)} and bit(): raise own_bits({name!r})")
    return [*lines, f"{value}, pos = D[kind](data, pos + 1, bit, state, depth + 1)"]


def _own_bits(field: str) -> OpenWireError:
    return OpenWireError(f"field {field} holds a command with bits of its own, which no client sends")
