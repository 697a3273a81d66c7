"""Converts the flat lists of the recorder to an Arrow table with one event per row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from brokerapp.tracing.arrow_schema import MOMENT, NAME, SCHEMA
from brokerapp.tracing.encoding import different_facts
from brokerapp.tracing.properties import property_maps
from brokerapp.tracing.schema import ENQUEUE, KINDS, WITHOUT_MESSAGE

_MAPS = ("ps", "pn")


def table_of(
    broker: str,
    runs: list[Any],
    facts: list[tuple[str, int, int]],
    heads: list[bytes],
    weights: dict[str, int] | None = None,
) -> pa.Table:
    """Return the events of one batch as an Arrow table; see recorder.py."""
    ts, kind, destinations, original, consumer, reason, signed = (runs[column::7] for column in range(7))
    counts, facts_of_messages = _messages(signed)
    places, different = different_facts(facts)  # a message is in several runs: its facts become columns once
    flat: list[Any] = list(chain.from_iterable(different))
    ids, sizes, born = (flat[column::3] for column in range(3))
    kinds = np.frombuffer(bytes(kind), np.uint8)
    run_of_message = np.repeat(np.arange(len(ts)), counts)
    names, first_of_run, copies = _unique(destinations)
    copies_of_message = copies[run_of_message]
    message = np.repeat(np.arange(len(run_of_message)), copies_of_message)  # of each event, as below
    run = run_of_message[message]
    copy = np.arange(len(run)) - (np.cumsum(copies_of_message) - copies_of_message)[message]
    destination = first_of_run[run] + copy

    def of_run(column: pa.Array) -> pa.Array:
        return column.take(pa.array(run))

    place = pa.array(places[facts_of_messages[message]])

    def of_message(column: pa.Array) -> pa.Array:
        return column.take(place)

    columns = {
        "ts": of_run(_integers(ts)).view(MOMENT),
        "kind": _kind(kinds[run]),
        "msg_id": of_message(_ids(ids)),
        "destination": _names(names).take(pa.array(destination)),
        "original": of_run(_names(original)),
        "consumer": of_run(_names(consumer)),
        "broker": _constant(broker, len(run)),
        "size": of_message(_integers(sizes)),
        "born": of_message(_integers(born)).view(MOMENT),
        "reason": of_run(_names(reason)),
        **_properties(kinds, run_of_message, message, heads),
        "weight": pa.array(_weights(kinds, original, weights or {})[run]),
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _messages(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of messages of each run, and the index of the facts of each message.

    A negative number says that the messages are those of the run before, whose facts stand there once.
    """
    signed = np.fromiter(counts, np.int64, len(counts))
    numbers, own = np.abs(signed), np.maximum(signed, 0)
    latest = np.maximum.accumulate(np.where(signed >= 0, np.arange(len(signed)), 0))
    first = (np.cumsum(own) - own)[latest]
    within = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    return numbers, np.repeat(first, numbers) + within


def _weights(kinds: np.ndarray, originals: Sequence[str], weights: dict[str, int]) -> np.ndarray:
    """Return the weight of each run. What is about no message is counted whole, whatever is sampled."""
    if not weights:
        return np.ones(len(kinds), np.int32)
    of_run = np.fromiter((weights.get(each, 1) for each in originals), np.int32, len(kinds))
    return np.where(np.isin(kinds, WITHOUT_MESSAGE), np.int32(1), of_run)


def _unique(destinations: Sequence[Sequence[str]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return all names (a list shared by runs once), and for each run the index of its first one and their number."""
    names: list[str] = []
    begins: dict[int | tuple[str, ...], int] = {}
    first = np.empty(len(destinations), np.int64)
    for run, each in enumerate(destinations):
        key = each if type(each) is tuple else id(each)
        begin = begins.get(key)
        if begin is None:
            begin = begins[key] = len(names)
            names += each
        first[run] = begin
    return names, first, np.fromiter(map(len, destinations), np.int64, len(destinations))


# -- columns


def _integers(values: Sequence[int]) -> pa.Array:
    return pa.array(np.fromiter(values, np.int64, len(values)))


def _names(values: Sequence[str | None]) -> pa.DictionaryArray:
    if values.count(None) == len(values):  # most columns of consumers and reasons
        return pa.nulls(len(values), NAME)
    return pa.array(values, NAME)


def _constant(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text], pa.string()))


def _kind(kinds: np.ndarray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(kinds.astype(np.int32)), _kinds())


@cache
def _kinds() -> pa.StringArray:
    """Return the names of kinds. Created on demand: the first array of a list makes pyarrow import pandas."""
    return pa.array(KINDS, pa.string())


def _ids(values: Sequence[str]) -> pa.StringArray:
    """Convert distinct texts: joining and splitting them costs half of converting them one by one."""
    data = np.frombuffer("\n".join(values).encode(errors="replace"), np.uint8)
    ends = np.flatnonzero(data == 10)
    if len(ends) != len(values) - 1:  # an id with a newline in it
        return pa.array(values, pa.string())
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:-1], offsets[-1] = ends, len(data)
    offsets[1:] -= np.arange(len(values), dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(data[data != 10]))


def _properties(
    kinds: np.ndarray, run_of_message: np.ndarray, message: np.ndarray, heads: list[bytes]
) -> dict[str, pa.Array]:
    """The maps of the messages enqueued, which have a head each; null at all other events.

    `message` is that of each event.
    """
    if not heads:
        return _no_properties(len(message))
    is_enqueue = kinds[run_of_message] == ENQUEUE
    head = (np.cumsum(is_enqueue) - 1)[message]
    enqueued = is_enqueue[message]
    return {name: _spread(maps, head, enqueued) for name, maps in zip(_MAPS, property_maps(heads), strict=True)}


def _spread(maps: pa.MapArray, place: np.ndarray, wanted: np.ndarray) -> pa.MapArray:
    """Return the map of each wanted event, null for the others; `take` is slow with maps."""
    starts = maps.offsets.to_numpy()
    lengths = np.where(wanted, np.diff(starts)[place], 0)
    offsets = np.zeros(len(place) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    item = pa.array(np.repeat(starts[:-1][place], lengths) + within)
    return pa.MapArray.from_arrays(
        pa.array(offsets), maps.keys.take(item), maps.items.take(item), mask=pa.array(~wanted)
    )


def _no_properties(count: int) -> dict[str, pa.Array]:
    return {name: pa.nulls(count, SCHEMA.field(name).type) for name in _MAPS}
