"""Count events for the rollups: by kind, destination, consumer and minute, with the latency of acks. Pure.

Latencies are counted in the buckets of log_histogram.py, as the transform `latency` has them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from analytics.model.measures import NEVER_STORED
from analytics.rollups.log_histogram import buckets_of

MINUTE_US = 60_000_000
#: Kinds of events that are counted.
COUNTED = (
    "enqueue", "forward", "dispatch", "ack", "redeliver", "expire", "dead_letter", "drop", "rollback", "move",
    "remove", "delay", "return",
)  # fmt: skip
#: Names of all counts; `never_stored` is the part of `drop` that removed no stored copy.
NUMBERS = (*COUNTED, "enqueued_bytes", "forwarded_bytes", "acked_bytes", "never_stored")
#: The same as columns of a table, quoted because `drop` is a keyword of SQL.
COLUMNS = tuple(f'"{name}"' for name in NUMBERS)
_BYTES_OF = {"enqueue": "enqueued_bytes", "forward": "forwarded_bytes", "ack": "acked_bytes"}
_INDEX = {name: place for place, name in enumerate(NUMBERS)}
_BUCKET = struct.Struct("<hI")
#: More than any bucket, either way.
_BUCKETS = 2048

Histogram = dict[int, int]


@dataclass(slots=True)
class CounterCell:
    """Counts of one destination, or one of its consumers, in one period."""

    numbers: list[int] = field(default_factory=lambda: [0] * len(NUMBERS))
    latency: Histogram = field(default_factory=dict)  #: of acks, see histogram.bucket_of

    def __getitem__(self, name: str) -> int:
        """Return the count of this name."""
        return self.numbers[_INDEX[name]]

    def add(self, other: CounterCell) -> None:
        """Add the counts of another cell to this one."""
        self.numbers = [mine + its for mine, its in zip(self.numbers, other.numbers, strict=True)]
        for bucket, count in other.latency.items():
            self.latency[bucket] = self.latency.get(bucket, 0) + count


@dataclass(frozen=True, slots=True)
class DepthNote:
    """The depth of a log at one time."""

    ts_us: int
    destination: str
    depth: int
    reason: str  #: see brokerapp.tracing.schema


@dataclass(frozen=True, slots=True)
class ConsumerNote:
    """The number of consuming clients of a destination from one time on."""

    ts_us: int
    destination: str  #: brokerapp.tracing.consumers.EVERYWHERE: all, as the broker started
    clients: int


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Counts of events, and recorded depths and consumers."""

    cells: Mapping[tuple[str, str, int], CounterCell]  #: by destination, consumer ("": none) and minute since the epoch
    depths: list[DepthNote]  #: in the order of the events
    consumers: list[ConsumerNote] = field(default_factory=list)  #: in the order of the events


def count_events(events: pa.Table) -> EventCounts:
    """Count events, as files have them."""
    kinds, kind = _codes(events["kind"])
    happened = np.isin(kind, [place for place, name in enumerate(kinds) if name in COUNTED])
    depths = _depths(events.filter(pa.array(kind == kinds.index("depth")))) if "depth" in kinds else []
    cells: dict[tuple[str, str, int], CounterCell] = {}
    if happened.any():
        _add_numbers(cells, events if happened.all() else events.filter(pa.array(happened)))
    changed = np.isin(kind, [place for place, name in enumerate(kinds) if name in ("subscribe", "unsubscribe")])
    return EventCounts(cells, depths, _consumers(events.filter(pa.array(changed))) if changed.any() else [])


def _add_numbers(cells: dict[tuple[str, str, int], CounterCell], events: pa.Table) -> None:
    kinds, kind = _codes(events["kind"])
    destinations, destination = _codes(events["destination"])
    consumers, consumer = _codes(events["consumer"])
    ts = events["ts"].cast(pa.int64()).to_numpy()
    minute = ts // MINUTE_US
    first, weight = int(minute.min()), events["weight"].to_numpy().astype(np.int64)
    minutes = int(minute.max()) - first + 1
    place = (destination * len(consumers) + consumer) * minutes + (minute - first)

    def cell(packed: int) -> CounterCell:
        rest, at = divmod(packed, minutes)
        to, by = divmod(rest, len(consumers))
        return cells.setdefault((destinations[to], consumers[by], first + at), CounterCell())

    size = events["size"].to_numpy() * weight
    for packed, messages, octets in _sums_by_key(place * len(kinds) + kind, weight, size):
        where, what = divmod(packed, len(kinds))
        numbers, name = cell(where).numbers, kinds[what]
        numbers[_INDEX[name]] += messages
        if name in _BYTES_OF:
            numbers[_INDEX[_BYTES_OF[name]]] += octets
    if "drop" in kinds:
        never = np.array([name in NEVER_STORED for name in _codes(events["reason"])[0]] or [False])
        unstored = (kind == kinds.index("drop")) & never[_codes(events["reason"])[1]]
        for where, messages in _sums_by_key(place[unstored], weight[unstored]):
            cell(where).numbers[_INDEX["never_stored"]] += messages
    if "ack" not in kinds:
        return
    acked = kind == kinds.index("ack")
    bucket = buckets_of(ts[acked] - events["born"].cast(pa.int64()).to_numpy()[acked])
    for packed, messages in _sums_by_key(place[acked] * 2 * _BUCKETS + bucket + _BUCKETS, weight[acked]):
        where, which = divmod(packed, 2 * _BUCKETS)
        latency = cell(where).latency
        latency[which - _BUCKETS] = latency.get(which - _BUCKETS, 0) + messages


def _codes(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray]:
    """Return the distinct texts of a column ("" for null), and the index of each value among them."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    texts = column.dictionary.to_pylist()
    codes = column.indices
    if codes.null_count:
        codes = codes.fill_null(len(texts))
        texts = [*texts, ""]
    return texts, codes.to_numpy(zero_copy_only=False).astype(np.int64)


def _sums_by_key(key: np.ndarray, *values: np.ndarray) -> Iterable[tuple[int, ...]]:
    """Return each distinct key with the sums of its values."""
    names = [f"v{number}" for number in range(len(values))]
    table = pa.table({"key": key, **dict(zip(names, values, strict=True))})
    summed = table.group_by("key", use_threads=False).aggregate([(name, "sum") for name in names])
    return zip(summed["key"].to_pylist(), *(summed[f"{name}_sum"].to_pylist() for name in names), strict=True)


def _depths(events: pa.Table) -> list[DepthNote]:
    columns = (events["ts"].cast(pa.int64()), events["destination"], events["size"], events["reason"])
    return [DepthNote(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def _consumers(events: pa.Table) -> list[ConsumerNote]:
    columns = (events["ts"].cast(pa.int64()), events["destination"], events["size"])
    return [ConsumerNote(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


# -- histograms


def pack_histogram(latency: Histogram) -> bytes | None:
    """Encode a histogram for storage; None for an empty one."""
    return b"".join(_BUCKET.pack(*item) for item in sorted(latency.items())) or None


def unpack_histogram(data: bytes | None) -> Histogram:
    """Decode a histogram that pack_histogram encoded."""
    return dict(_BUCKET.iter_unpack(data or b""))


def merge_histograms(one: bytes | None, other: bytes | None) -> bytes | None:
    """Add two encoded histograms."""
    if one is None or other is None:
        return one or other
    latency = unpack_histogram(one)
    for bucket, messages in _BUCKET.iter_unpack(other):
        latency[bucket] = latency.get(bucket, 0) + messages
    return pack_histogram(latency)
