"""Keep the rows of hours that no build has computed yet, counted from the stream of events as they come.

One file holds the rows and the position in the stream up to which events are in them. It is replaced as a whole, so
that a process that is killed at any moment continues where the file says, and counts no event twice.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.archive.compaction import LATE_EVENTS_US
from analytics.archive.stream_ids import position_of
from analytics.model.depth_series import MAX_CUTS
from analytics.tables.catalog import TableCatalog
from analytics.tables.definitions import DAY_US, DEPTH_FLOWS, DEPTH_NOTES, HOUR_US, SLOT, TABLES, VERSION
from analytics.tables.merging import merge

log = logging.getLogger(__name__)

#: The file in the folder of a broker.
FILE = "current.parquet"
_FACTS = b"sluice"
#: By slot: the times of the last notes of all logs, ascending.
_Times = Mapping[int, "np.ndarray"]


@dataclass(frozen=True, slots=True)
class CurrentHours:
    """The rows of one broker's current hours. Times are microseconds since the epoch."""

    position: int  #: of the last entry of the stream whose events are counted (analytics/archive/stream_ids.py)
    since_us: int  #: start of the first hour that is counted from its start
    writer: str = ""  #: the query that counts; any other one stops
    newest_us: int = 0  #: time of the newest event that is counted
    updated_us: int = 0  #: when rows were stored last
    version: int = VERSION
    #: By table. Flows are split at the last notes of all logs, not only at the newest MAX_CUTS times.
    rows: Mapping[str, pa.Table] = field(default_factory=lambda: empty_rows())

    @property
    def starts(self) -> set[int]:
        """Return the starts of the hours that have rows."""
        return {start for each in self.rows.values() for start in pc.unique(each[SLOT].cast(pa.int64())).to_pylist()}

    def is_whole(self, start_us: int) -> bool:
        """Return whether all events of an hour are counted: no more are expected after the position."""
        return self.position >= position_of(f"{(start_us + HOUR_US + LATE_EVENTS_US) // 1000}-0")

    def end_us(self, start_us: int) -> int:
        """Return the time until which an hour's rows have events, at most."""
        return min(start_us + HOUR_US, max(start_us, self.newest_us) + 1)

    def table_rows(self, table: str, starts: Iterable[int]) -> pa.Table:
        """Return the rows of some hours as a build stores them."""
        limited = _with_newest_cuts(self.rows) if table in (DEPTH_NOTES.name, DEPTH_FLOWS.name) else self.rows
        return _of_hours(limited[table], starts)

    def with_counted(self, rows: Mapping[str, pa.Table], position: int, newest_us: int, now_us: int) -> CurrentHours:
        """Return these rows with those of the next events, up to a position."""
        return replace(
            self,
            rows=merge_counts(self.rows, rows),
            position=position,
            newest_us=max(self.newest_us, newest_us),
            updated_us=now_us,
        )

    def without_closed(self, catalog: TableCatalog) -> CurrentHours:
        """Return the rows of the hours that are counted from their start, and that no build has computed."""
        open_hours = [each for each in self.starts if each >= self.since_us and not is_closed(catalog, each)]
        return replace(self, rows={name: _of_hours(each, open_hours) for name, each in self.rows.items()})


def is_closed(catalog: TableCatalog, start_us: int) -> bool:
    """Return whether a build has computed an hour: from then on its tables count, and late events are its concern."""
    return start_us % DAY_US // HOUR_US in catalog.day(start_us // DAY_US * DAY_US).hours


def read_current_hours(catalog: TableCatalog) -> CurrentHours | None:
    """Return the stored rows; None without any, or of another version."""
    try:
        stored = pq.read_table(io.BytesIO(catalog.storage.read(_name(catalog))))
    except FileNotFoundError:
        return None
    except pa.ArrowInvalid as error:
        log.warning("the rows of the current hours cannot be read, and are counted again: %s", error)
        return None
    facts = json.loads(stored.schema.metadata[_FACTS])
    if facts["version"] != VERSION:
        return None
    rows = {name: _unpack(stored[name].combine_chunks(), each.schema) for name, each in TABLES.items()}
    return CurrentHours(**facts, rows=rows)


def write_current_hours(catalog: TableCatalog, current: CurrentHours) -> None:
    """Replace the stored rows atomically."""
    facts = {name: value for name, value in asdict(replace(current, rows={})).items() if name != "rows"}
    packed = pa.table({name: _pack(each) for name, each in current.rows.items()})
    target = io.BytesIO()
    pq.write_table(packed.replace_schema_metadata({_FACTS: json.dumps(facts)}), target, compression="zstd")
    catalog.storage.replace(_name(catalog), target.getvalue())


def merge_counts(earlier: Mapping[str, pa.Table], later: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Merge rows that were counted from events, and from the events that follow in the stream."""
    both = {name: pa.concat_tables([earlier[name], later[name]]) for name in TABLES}
    before, after = (_note_times(each[DEPTH_NOTES.name]) for each in (earlier, later))
    noted = _last_notes(both[DEPTH_NOTES.name])
    times = _note_times(noted)
    last = {slot: int(found[-1]) for slot, found in before.items()}
    flows = pa.concat_tables(
        [
            _flows_at(earlier[DEPTH_FLOWS.name], before, {}, times),
            _flows_at(later[DEPTH_FLOWS.name], after, last, times),
        ]
    )
    return {
        **{name: merge(TABLES[name], rows) for name, rows in both.items() if name != DEPTH_NOTES.name},
        DEPTH_NOTES.name: _numbered(noted, times),
        DEPTH_FLOWS.name: merge(DEPTH_FLOWS, flows),
    }


def empty_rows() -> dict[str, pa.Table]:
    """Return all tables without rows."""
    return {name: each.schema.empty_table() for name, each in TABLES.items()}


def _name(catalog: TableCatalog) -> str:
    return f"{catalog.prefix}/{FILE}"


def _pack(rows: pa.Table) -> pa.Array:
    """Return a table as one value, so that one file can hold tables of different lengths."""
    values = rows.to_struct_array().combine_chunks()
    values = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _unpack(value: pa.ListArray, schema: pa.Schema) -> pa.Table:
    values = value.flatten()
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(values)]).select(schema.names).cast(schema)


def _of_hours(rows: pa.Table, starts: Iterable[int]) -> pa.Table:
    return rows.filter(pc.is_in(rows[SLOT].cast(pa.int64()), pa.array(sorted(starts), pa.int64())))


# -- depths: flows are split at the times of notes, whose numbers change with each new note


def _last_notes(rows: pa.Table) -> pa.Table:
    """Merge notes in the order of the stream: a note without a depth, or without consumers, says nothing of it."""
    keys = [SLOT, *DEPTH_NOTES.keys]
    rules = {"ts": "max", "depth": "last", "consumers": "last", "whole": "max", "started": "max", "part": "max"}
    merged = rows.group_by(keys, use_threads=False).aggregate(list(rules.items()))
    merged = merged.rename_columns([*keys, *rules])
    return (
        merged.select(DEPTH_NOTES.schema.names).cast(DEPTH_NOTES.schema).sort_by([(key, "ascending") for key in keys])
    )


def _note_times(noted: pa.Table) -> dict[int, np.ndarray]:
    rows = noted.filter(pc.is_valid(noted["ts"]))
    slots, times = (rows[name].cast(pa.int64()).to_numpy() for name in (SLOT, "ts"))
    return {int(slot): np.unique(times[slots == slot]) for slot in np.unique(slots)}


def _numbered(noted: pa.Table, times: _Times, most: int | None = None) -> pa.Table:
    """Return notes with the part of flows that begins with each; 0 for times before the newest `most`."""
    slots, at = noted[SLOT].cast(pa.int64()).to_pylist(), noted["ts"].cast(pa.int64()).to_pylist()
    parts = [
        0 if moment is None else _part_at(times[slot], moment, most) for slot, moment in zip(slots, at, strict=True)
    ]
    return noted.set_column(noted.schema.get_field_index("part"), "part", pa.array(parts, pa.int64()))


def _part_at(times: np.ndarray, moment: int, most: int | None = None) -> int:
    """Return how many of these times, of the newest `most`, are not after a moment."""
    dropped = 0 if most is None else max(0, len(times) - most)
    return max(0, int(np.searchsorted(times, moment, side="right")) - dropped)


def _flows_at(
    rows: pa.Table, before: _Times, last: Mapping[int, int], times: _Times, most: int | None = None
) -> pa.Table:
    """Return flows that were split at some times of each slot as the flows split at others.

    `last`: by slot, the time of the last note before the events of these flows.
    """
    slots, parts = rows[SLOT].cast(pa.int64()).to_pylist(), rows["part"].to_pylist()
    nothing = np.array([], np.int64)
    known: dict[tuple[int, int], int] = {}
    for slot, part in set(zip(slots, parts, strict=True)):
        moment = int(before[slot][part - 1]) if part else last.get(slot, 0)
        known[slot, part] = _part_at(times.get(slot, nothing), moment, most)
    renumbered = pa.array([known[each] for each in zip(slots, parts, strict=True)], pa.int64())
    return rows.set_column(rows.schema.get_field_index("part"), "part", renumbered)


def _with_newest_cuts(rows: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return notes and flows with as many parts as those of a build."""
    noted, flows = rows[DEPTH_NOTES.name], rows[DEPTH_FLOWS.name]
    times = _note_times(noted)
    return {
        DEPTH_NOTES.name: _numbered(noted, times, MAX_CUTS),
        DEPTH_FLOWS.name: merge(DEPTH_FLOWS, _flows_at(flows, times, {}, times, MAX_CUTS)),
    }
