"""Extracts the properties of many messages from their heads as Arrow maps.

A head is parsed here by column instead of by message, which costs a fraction: all heads are cut into lines together,
equal lines are recognised, and only different lines are looked into. `Message.headers` is the rule; the outcome is the
same, within the limits below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER
from brokerapp.model.message import unescape
from brokerapp.selectors.values import DECIMAL_NUMBER

#: Headers for which the event has a column, or that no selector can ask for.
NOT_RECORDED = frozenset(
    {"message-id", "destination", "content-length", "receipt", "transaction", "timestamp", TRANSACTION_HEADER}
)
#: The most characters of one value that are kept, but for the types of JMS properties.
MAX_VALUE = 1024
#: The most properties of one message that are kept.
MAX_PROPERTIES = 64

#: Text that a selector compares as a number.
NUMBER = rf"\A{DECIMAL_NUMBER}\z"
_NEWLINE = 10
_NOT_RECORDED = -1
_MAX_TABLE = 1 << 22


def property_maps(heads: Sequence[bytes]) -> tuple[pa.MapArray, pa.MapArray]:
    """Return the properties of each head as text, and the numeric ones as numbers."""
    lines, head = _lines_of(heads)
    lines = lines.dictionary_encode()
    known = _Lines(pc.utf8_rtrim(lines.dictionary, "\n"))
    line = lines.indices.to_numpy()
    kept = _kept(head, known.names[line], len(known.name_texts))
    head, line = head[kept], line[kept]
    is_number = ~np.isnan(known.numbers[line])
    return (
        _maps(len(heads), head, known.keys(line), known.values.take(pa.array(line))),
        _maps(len(heads), head[is_number], known.keys(line[is_number]), pa.array(known.numbers[line[is_number]])),
    )


def _lines_of(heads: Sequence[bytes]) -> tuple[pa.StringArray, np.ndarray]:
    """Return all lines, newlines included, without the message-ids that heads begin with; and the head of each."""
    data, head_ends = _joined(heads)
    line_ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
    # The lines as one array without a copy: an Arrow text runs to where the next begins.
    offsets = np.concatenate(([0], line_ends + 1)).astype(np.int32)
    lines = pa.StringArray.from_buffers(len(line_ends), pa.py_buffer(offsets), pa.py_buffer(data))
    end_of_head = np.searchsorted(line_ends, head_ends)
    head = np.repeat(np.arange(len(heads)), np.diff(end_of_head, prepend=0))
    is_first = np.diff(head, prepend=-1) > 0
    return lines.filter(pa.array(~is_first)), head[~is_first]


def _joined(heads: Sequence[bytes]) -> tuple[bytes, np.ndarray]:
    """Join all heads to one valid UTF-8 text; return it, and where each head ends."""
    data = b"".join(heads)
    try:
        data.decode()
    except UnicodeDecodeError:
        heads = [head.decode(errors="replace").encode() for head in heads]
        data = b"".join(heads)
    return data, np.cumsum(np.fromiter(map(len, heads), np.int64, len(heads)))


class _Lines:
    """Different lines, parsed: the number of the name of each, its value as text and as a number (NaN: none)."""

    def __init__(self, lines: pa.StringArray) -> None:
        escaped = pc.match_substring(lines, "\\")
        parts = pc.split_pattern(lines, ":", max_splits=1)
        names, values = _unescaped(pc.list_element(parts, 0), escaped), _unescaped(pc.list_element(parts, 1), escaped)
        is_form = pc.equal(names, JMS_HEADER)
        names = names.dictionary_encode()
        self.name_texts = names.dictionary
        recorded = np.array([text not in NOT_RECORDED for text in names.dictionary.to_pylist()], bool)
        number = names.indices.to_numpy()
        self.names = np.where(recorded[number], number, _NOT_RECORDED)
        short = pc.utf8_slice_codeunits(values, 0, MAX_VALUE)
        self.values = pc.if_else(is_form, values, short)  # a part of it would lose types
        is_number = pc.match_substring_regex(values, NUMBER).to_numpy(zero_copy_only=False)
        self.numbers = np.full(len(lines), np.nan)
        self.numbers[is_number] = _floats(values.filter(pa.array(is_number)))

    def keys(self, line: np.ndarray) -> pa.Array:
        """Return the names of these lines as text."""
        return self.name_texts.take(pa.array(self.names[line]))


def _floats(texts: pa.StringArray) -> np.ndarray:
    """Convert texts that are decimal numbers to floats."""
    try:
        numbers: np.ndarray = texts.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:  # it does not know a leading `+`
        return np.array([float(text) for text in texts.to_pylist()])
    return numbers


def _unescaped(texts: pa.StringArray, escaped: pa.BooleanArray) -> pa.StringArray:
    """Unescape the marked texts, which are few."""
    if not escaped.true_count:
        return texts
    return pc.replace_with_mask(texts, escaped, pa.array(map(unescape, texts.filter(escaped).to_pylist()), pa.string()))


def _kept(head: np.ndarray, name: np.ndarray, names: int) -> np.ndarray:
    """Return the positions of the lines to record: of a repeated name the last, as in Message.headers, to the limit."""
    kept = np.flatnonzero(name != _NOT_RECORDED)
    place = head[kept] * names + name[kept]
    if _any_twice(place):
        _, from_the_end = np.unique(place[::-1], return_index=True)
        kept = kept[np.sort(len(place) - 1 - from_the_end)]
    if len(kept) > MAX_PROPERTIES:
        of_head = head[kept]
        kept = kept[np.arange(len(kept)) - np.searchsorted(of_head, of_head) < MAX_PROPERTIES]
    return kept


def _any_twice(places: np.ndarray) -> bool:
    """Return whether a number occurs twice. Marking a small table is ten times faster than sorting."""
    if not len(places) or (size := int(places.max()) + 1) > _MAX_TABLE:
        return len(np.unique(places)) < len(places)
    table = np.zeros(size, bool)
    table[places] = True
    return int(np.count_nonzero(table)) < len(places)


def _maps(count: int, head: np.ndarray, keys: pa.Array, values: pa.Array) -> pa.MapArray:
    """Build `count` maps; entry i belongs to map head[i], which never decreases."""
    offsets = np.searchsorted(head, np.arange(count + 1)).astype(np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values)
