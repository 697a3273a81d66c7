"""Compiles the functions that decode each type of each version from bytes in the loose encoding.

A decoder takes the bytes, where the fields begin, the connection's state and how deeply it is nested; it returns the
value and where it ends. It reads behind the end in some cases (a slice is then too short): who calls it compares the
end with the length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands.data_types import MAX_VERSION
from brokerapp.openwire.commands.wire_fields import FORMATS, Kind, WireField
from brokerapp.openwire.encoding.compiled import CompiledFunctions
from brokerapp.openwire.encoding.loose_texts import read_throwable
from brokerapp.openwire.encoding.modified_utf8 import decode_text
from brokerapp.openwire.encoding.source import Source
from brokerapp.openwire.encoding.state import WireState
from brokerapp.openwire.encoding.table import CLASSES, Layout, layout

#: How deeply commands may be nested: an advisory is a message in a dispatch, with one command in it.
MAX_DEPTH = 16
#: Ids and destinations that are remembered with their bytes, and how long these may be: one MiB.
MAX_KNOWN, MAX_KNOWN_BYTES = 4096, 256

Decoder = Callable[[bytes, int, WireState, int], tuple[Any, int]]


class LooseDecoders(CompiledFunctions[Decoder]):
    """The decoders of a version, and the values that they remember."""

    def __init__(self, version: int, cached: bool) -> None:
        super().__init__(_compile, version, cached)
        #: Ids and destinations by their bytes: the same few come in every message.
        self.known: dict[bytes, Any] = {}

    def remember(self, raw: bytes, size: int, value: object) -> None:
        """Keep a value that will not change, to be found by its bytes; not where these end before its size."""
        if len(raw) == size <= MAX_KNOWN_BYTES:
            if len(self.known) >= MAX_KNOWN:
                self.known.clear()
            self.known[raw] = value


@cache
def loose_decoders(version: int, cached: bool) -> LooseDecoders:
    """Return the decoders of a version, with or without a cache of values."""
    return LooseDecoders(version, cached)


def _compile(of: Layout, decoders: LooseDecoders, cached: bool) -> Decoder:
    source = Source(
        f"def decode_{of.name}(data, pos, state, depth):",
        {
            "D": decoders,
            "known": decoders.known,
            "remember": decoders.remember,
            "C": of.cls,
            "text": decode_text,
            "throwable": read_throwable,
            "length": Struct(">I").unpack_from,
            "count": count_at,
            "unexpected": unexpected,
            "too_deep": too_deep,
            "MAX_DEPTH": MAX_DEPTH,
        },
    )
    if of.is_recursive:
        source.add("if depth > MAX_DEPTH: raise too_deep()")
    for segment in of.segments:
        fixed, optional = segment.fixed, segment.optional
        flag = ["there"] if optional else []
        if fixed:
            structure = Struct(">" + "".join(FORMATS[kind] for _, kind in fixed) + "?" * len(flag))
            names = [f"v_{name}" for name, _ in fixed] + flag
            source.add(f"{', '.join(names)}, = {source.constant(structure.unpack_from)}(data, pos)")
            source.add(f"pos += {structure.size}")
        else:
            source.add("there = data[pos]; pos += 1")
        if optional:
            _add_optional(source, *optional, cached)
    sent = {name for name, _ in of.on_wire}
    arguments = [f"v_{each.name}" if each.name in sent else source.constant(each.default) for each in of.fields]
    source.add(f"return C({', '.join(arguments)}), pos")
    decoder: Decoder = source.compile()
    return decoder


def _add_optional(source: Source, name: str, wire: WireField, cached: bool) -> None:
    """Add what reads a field whose presence was read already."""
    value = f"v_{name}"
    if wire.kind is Kind.CACHED and cached:
        source.add("number = data[pos] << 8 | data[pos + 1]; pos += 2")
        source.add("if there:")
        source.add("    there = data[pos]; first = pos; pos += 1")
        _add_value(source, value, name, wire, "    ")
        source.add(f"    state.received.put(number, {value}, pos - first)")
        source.add(f"else: {value} = state.received.get(number, {source.constant(wire.nested_types)}, {name!r})")
        return
    _add_value(source, value, name, wire, "")


def _add_value(source: Source, value: str, name: str, wire: WireField, indent: str) -> None:
    source.add(f"{indent}if there:")
    for line in _value_lines(source, value, name, wire):
        source.add(f"{indent}    {line}")
    source.add(f"{indent}else: {value} = None")


def _value_lines(source: Source, value: str, name: str, wire: WireField) -> list[str]:
    match wire.kind:
        case Kind.STRING:
            return [
                "start = pos + 2",
                "pos = start + (data[pos] << 8 | data[pos + 1])",
                f"{value} = text(data[start:pos])",
            ]
        case Kind.BYTES:
            return ["start = pos + 4", "pos = start + length(data, pos)[0]", f"{value} = data[start:pos]"]
        case Kind.THROWABLE:
            return [f"{value}, pos = throwable(data, pos, state.stack_traces)"]
        case Kind.ARRAY:
            return [
                "items = []",
                "for _ in range(count(data, pos)):",
                "    if data[pos + 2]:",
                *(f"        {line}" for line in _nested_lines(source, "item", name, wire, "pos + 3")),
                "        pos -= 2",
                "        items.append(item)",
                "    else: pos += 1; items.append(None)",
                "pos += 2",
                f"{value} = tuple(items)",
            ]
        case _:
            return _nested_lines(source, value, name, wire, "pos")


def _nested_lines(source: Source, value: str, name: str, wire: WireField, at: str) -> list[str]:
    """Return what reads a value whose type is at this place."""
    lines = [f"kind = data[{at}]"]
    if wire.nested_types:
        types = wire.nested_types
        wrong = f"kind != {types[0]}" if len(types) == 1 else f"kind not in {source.constant(frozenset(types))}"
        lines.append(f"if {wrong}: raise unexpected(kind, {name!r})")
    read = f"{value}, pos = D[kind](data, {at} + 1, state, depth + 1)"
    after_text = _bytes_after_text(wire.nested_types)
    if after_text is None:
        return [*lines, read]
    return [
        *lines,
        f"begin = {at}",
        f"after = {4 + after_text} + (data[begin + 2] << 8 | data[begin + 3]) if data[begin + 1] else 0",
        "raw = data[begin:begin + after]",
        f"{value} = known.get(raw)",
        f"if {value} is None:",
        f"    {read}",
        f"    remember(raw, pos - begin, {value})",
        "else: pos = begin + after",
    ]


def _bytes_after_text(types: tuple[int, ...]) -> int | None:
    """Return how many bytes follow the text of any of these types, where all are values that can be remembered.

    Those are the same in all versions: ids and destinations.
    """
    found = {layout(each, MAX_VERSION).bytes_after_text for each in types} or {None}
    return found.pop() if len(found) == 1 else None


_SHORT = Struct(">h")


def count_at(data: bytes, pos: int) -> int:
    """Return the number of elements of a list, which stands at this place."""
    (count,) = _SHORT.unpack_from(data, pos)
    if count < 0:
        raise OpenWireError(f"a list has {count} elements")
    return int(count)


def unexpected(data_type: int, field: str) -> OpenWireError:
    """Return the error of a field that holds a value of this type."""
    cls = CLASSES.get(data_type)
    what = f"type {data_type}" if cls is None else f"type {data_type} ({cls.__name__})"
    return OpenWireError(f"field {field} holds a value of {what}, which it cannot")


def too_deep() -> OpenWireError:
    """Return the error of commands nested in too many others."""
    return OpenWireError(f"commands are nested more than {MAX_DEPTH} times")
