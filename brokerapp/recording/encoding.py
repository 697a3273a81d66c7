"""From what the recorder noted to Arrow batches, and back: flat lists of references to compressed columns."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pyarrow as pa

from brokerapp.recording.properties import property_maps
from brokerapp.recording.schema import ENQUEUE, KINDS, MOMENT, NAME, SCHEMA

# zstd would halve a batch (11 bytes an event instead of 25) but take three times as long (0.15 us an event instead of
# 0.05), and this runs in the node's event loop; batches live for seconds only, the archive is zstd.
_WRITE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_KINDS = pa.array(KINDS, pa.string())
_MAPS = ("ps", "pn")


def encode_rows(broker: str, rows: list, heads: list[bytes]) -> bytes:
    """A batch of single events: 9 references each (see recorder.py); `heads` are those of the enqueues, or none."""
    ts, kind, id, size, born, destination, original, consumer, reason = (rows[column::9] for column in range(9))
    kinds = np.frombuffer(bytes(kind), np.uint8)
    destinations = _names(destination)
    return _write(
        {
            "ts": _integers(ts).view(MOMENT),
            "kind": _kind(kinds),
            "msg_id": _ids(id),
            "destination": destinations,
            # Comparing two lists of mostly identical objects is much cheaper than converting one.
            "original": destinations if original == destination else _names(original),
            "consumer": _names(consumer),
            "broker": _constant(broker, len(ts)),
            "size": _integers(size),
            "born": _integers(born).view(MOMENT),
            "reason": _names(reason),
            **_properties(kinds, heads),
        }
    )


def encode_runs(broker: str, runs: list, messages: list) -> bytes:
    """A batch of runs: 6 references each, and 4 for each message of a run (see recorder.py)."""
    ts, kind, destinations, consumer, reason, counts = (runs[column::6] for column in range(6))
    id, size, born, original = (messages[column::4] for column in range(4))
    run_of_message = np.repeat(np.arange(len(ts)), counts)
    copies = np.fromiter(map(len, destinations), np.int64, len(ts))
    copies_of_message = copies[run_of_message]
    message = np.repeat(np.arange(len(id)), copies_of_message)  # of each event, as below
    run = run_of_message[message]
    copy = np.arange(len(run)) - (np.cumsum(copies_of_message) - copies_of_message)[message]
    destination = (np.cumsum(copies) - copies)[run] + copy

    def of_run(column: pa.Array) -> pa.Array:
        return column.take(pa.array(run))

    def of_message(column: pa.Array) -> pa.Array:
        return column.take(pa.array(message))

    return _write(
        {
            "ts": of_run(_integers(ts)).view(MOMENT),
            "kind": _kind(np.frombuffer(bytes(kind), np.uint8)[run]),
            "msg_id": of_message(_ids(id)),
            "destination": _names(list(chain.from_iterable(destinations))).take(pa.array(destination)),
            "original": of_message(_names(original)),
            "consumer": of_run(_names(consumer)),
            "broker": _constant(broker, len(run)),
            "size": of_message(_integers(size)),
            "born": of_message(_integers(born)).view(MOMENT),
            "reason": of_run(_names(reason)),
            **_no_properties(len(run)),
        }
    )


def decode(data: bytes) -> pa.Table:
    """The events of one batch."""
    return pa.ipc.open_stream(data).read_all()


def _write(columns: dict[str, pa.Array]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=_WRITE) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA))
    return sink.getvalue().to_pybytes()


# -- columns


def _integers(values: list[int]) -> pa.Array:
    return pa.array(np.fromiter(values, np.int64, len(values)))


def _names(values: list[str | None]) -> pa.DictionaryArray:
    if values.count(None) == len(values):  # most columns of consumers and reasons
        return pa.nulls(len(values), NAME)
    return pa.array(values, NAME)


def _constant(text: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text], pa.string()))


def _kind(kinds: np.ndarray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(kinds.astype(np.int32)), _KINDS)


def _ids(values: list[str]) -> pa.StringArray:
    """Texts that are all different: joining and splitting them again costs half of converting them one by one."""
    data = np.frombuffer("\n".join(values).encode(errors="replace"), np.uint8)
    ends = np.flatnonzero(data == 10)
    if len(ends) != len(values) - 1:  # an id with a newline in it
        return pa.array(values, pa.string())
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:-1], offsets[-1] = ends, len(data)
    offsets[1:] -= np.arange(len(values), dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(data[data != 10]))


def _properties(kinds: np.ndarray, heads: list[bytes]) -> dict[str, pa.Array]:
    """The maps of the enqueues; null at all other events."""
    if not heads:
        return _no_properties(len(kinds))
    is_enqueue = kinds == ENQUEUE
    place = pa.array(np.cumsum(is_enqueue) - 1, mask=~is_enqueue)
    return {name: maps.take(place) for name, maps in zip(_MAPS, property_maps(heads), strict=True)}


def _no_properties(count: int) -> dict[str, pa.Array]:
    return {name: pa.nulls(count, SCHEMA.field(name).type) for name in _MAPS}
