"""Store rollups, counts by destination and time, so that charts over days need not read events.

    archive/broker=B/_rollups.sqlite

The archiver writes them after each append, in one transaction with the position in the stream up to which they count.
If the process ends between the two, the position tells which events are missing, and they are counted from the
archive's files: so each event is counted once, as it is archived once.

There are cells for each minute, hour and day, for the whole broker (destination "") and each destination, there for all
consumers ("") and each one. Depths are stored by the minute where they changed. Each queue and subscription has the
number of its consuming clients, and since when it has any or none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from analytics.rollups.counters import (
    COLUMNS,
    NUMBERS,
    ConsumerNote,
    CounterCell,
    DepthNote,
    EventCounts,
    merge_histograms,
    pack_histogram,
)
from brokerapp.tracing.consumers import EVERYWHERE
from brokerapp.tracing.schema import ALL, START

NAME = "_rollups.sqlite"
MINUTE, HOUR, DAY = 60, 3600, 86400
#: Retention of cells by their width, in seconds; and of depths by the minute.
RETENTION_SECONDS = {MINUTE: 2 * DAY, HOUR: 62 * DAY, DAY: 1830 * DAY}
DEPTH_RETENTION_SECONDS = 31 * DAY
#: Limits of names, which come from clients: later ones are counted as OTHERS.
MAX_DESTINATIONS, MAX_CONSUMERS = 10_000, 50
OTHERS = "(others)"
TEMPORARY = "(temporary)"
#: Destinations whose consumers are stored: messages wait there for consumers.
STORED_KINDS = ("queue://", "subscription://")

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS place (place INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS name (id INTEGER PRIMARY KEY, destination TEXT NOT NULL, consumer TEXT NOT NULL,
    UNIQUE (destination, consumer));
CREATE TABLE IF NOT EXISTS cell (width INTEGER, start INTEGER, name INTEGER,
    {", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in COLUMNS)},
    latency BLOB, depth INTEGER, most INTEGER, PRIMARY KEY (width, start, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS depth (minute INTEGER, name INTEGER, depth INTEGER NOT NULL,
    PRIMARY KEY (minute, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS standing (destination TEXT PRIMARY KEY, name INTEGER NOT NULL, depth INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS standing_name ON standing (name);
CREATE TABLE IF NOT EXISTS consumers (destination TEXT PRIMARY KEY, clients INTEGER NOT NULL, since INTEGER NOT NULL)
    WITHOUT ROWID;
"""
#: `since` changes only when the first client comes or the last one leaves.
_NOTE_CONSUMERS = f"""
INSERT INTO consumers SELECT ?1, ?2, ?3
WHERE EXISTS (SELECT 1 FROM consumers WHERE destination = ?1) OR (SELECT count(*) FROM consumers) < {MAX_DESTINATIONS}
ON CONFLICT DO UPDATE SET clients = excluded.clients,
    since = CASE WHEN (clients = 0) = (excluded.clients = 0) THEN since ELSE excluded.since END
"""
_ADD = f"""
INSERT INTO cell (width, start, name, {", ".join(COLUMNS)}, latency) VALUES ({", ".join("?" * (4 + len(NUMBERS)))})
ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in COLUMNS)},
    latency = merged(latency, excluded.latency)
"""
_ADD_DEPTH = """
INSERT INTO cell (width, start, name, depth, most) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET depth = excluded.depth, most = max(coalesce(most, 0), excluded.most)
"""


class RollupStore:
    """The rollup database of one broker, written by one process."""

    def __init__(self, broker: Path) -> None:
        self._db = open_database(broker / NAME)
        self._db.executescript(_SCHEMA)
        self._add_columns()
        self._read_names()

    def _add_columns(self) -> None:
        """Add the columns that a file of an earlier version lacks, with 0 for its cells."""
        known = {name for _, name, *_ in self._db.execute("PRAGMA table_info(cell)")}
        for name in (each for each in NUMBERS if each not in known):
            self._db.execute(f'ALTER TABLE cell ADD COLUMN "{name}" INTEGER NOT NULL DEFAULT 0')

    def _read_names(self) -> None:
        rows = self._db.execute("SELECT id, destination, consumer FROM name")
        self._names = {(destination, consumer): id for id, destination, consumer in rows}
        self._consumers: dict[str, int] = {}  # of each destination, how many
        for destination, consumer in self._names:
            self._consumers[destination] = self._consumers.get(destination, 0) + bool(consumer)

    def close(self) -> None:
        """Close the database file."""
        self._db.close()

    @property
    def position(self) -> int:
        """Return the position of the last entry of the stream that is counted."""
        row = self._db.execute("SELECT place FROM place").fetchone()
        return row[0] if row else 0

    def add(self, parts: Iterable[EventCounts], place: int) -> None:
        """Add the counts of the entries up to this position in one transaction, unless they were added before."""
        if place <= self.position:
            return
        with self._db:
            for counted in parts:
                cells = self._cells(counted)
                rows = [(*key, *cell.numbers, pack_histogram(cell.latency)) for key, cell in cells.items()]
                self._db.executemany(_ADD, rows)
                self._add_depths(counted.depths)
                self._note_consumers(counted.consumers)
            self._db.execute("DELETE FROM place")
            self._db.execute("INSERT INTO place VALUES (?)", (place,))

    def _cells(self, counted: EventCounts) -> dict[tuple[int, int, int], CounterCell]:
        """Return the counts by width, start and name, with those of all cells that contain them."""
        minutes: dict[tuple[int, int], CounterCell] = {}
        for (destination, consumer, minute), cell in counted.cells.items():
            names = {self._name(), self._name(destination), self._name(destination, consumer)}
            for name in names:
                minutes.setdefault((minute * MINUTE, name), CounterCell()).add(cell)
        cells: dict[tuple[int, int, int], CounterCell] = {}
        for (start, name), cell in minutes.items():
            for width in RETENTION_SECONDS:
                cells.setdefault((width, start // width * width, name), CounterCell()).add(cell)
        return cells

    def _name(self, destination: str = "", consumer: str = "") -> int:
        """Return the id of a destination or consumer; that of OTHERS when there are too many."""
        if destination.startswith("temp-"):
            destination, consumer = TEMPORARY, ""
        found = self._names.get((destination, consumer))
        if found is not None:
            return found
        if consumer and consumer != OTHERS and self._consumers.get(destination, 0) >= MAX_CONSUMERS:
            return self._name(destination, OTHERS)
        if not consumer and destination != OTHERS and len(self._consumers) >= MAX_DESTINATIONS:
            return self._name(OTHERS)
        if consumer and (destination, "") not in self._names:  # its destination is one of the others
            return self._name(OTHERS)
        self._consumers[destination] = self._consumers.get(destination, 0) + bool(consumer)
        number = self._db.execute(
            "INSERT INTO name (destination, consumer) VALUES (?, ?)", (destination, consumer)
        ).lastrowid
        self._names[destination, consumer] = number
        return number

    def _add_depths(self, depths: Iterable[DepthNote]) -> None:
        """Store noted depths, in their order."""
        noted: dict[int, list[DepthNote]] = {}
        for each in depths:
            noted.setdefault(each.ts_us, []).append(each)
        for ts_us, together in noted.items():
            changed = {each.destination: each.depth for each in together}
            seconds, reasons = ts_us // 1_000_000, {each.reason for each in together}
            if START in reasons:  # destinations that are not among them are empty
                changed = dict.fromkeys(self._non_empty(), 0) | changed
            elif ALL in reasons:  # of one node; those of all other nodes were noted within the hour before
                changed = dict.fromkeys(self._without_recent_depth(seconds // HOUR * HOUR - HOUR), 0) | changed
            self._add_depth(seconds, changed)

    def _non_empty(self, where: str = "true", *values: int) -> list[str]:
        """Return the destinations with a depth above 0."""
        found = self._db.execute(f"SELECT destination FROM standing WHERE {where}", values)
        return [destination for (destination,) in found]

    def _without_recent_depth(self, since: int) -> list[str]:
        """Return the destinations with messages whose depth was not noted since a time in seconds."""
        return self._non_empty("name NOT IN (SELECT name FROM depth WHERE minute >= ?)", since // MINUTE)

    def _add_depth(self, seconds: int, changed: dict[str, int]) -> None:
        names = {destination: self._name(destination) for destination in changed}
        self._db.executemany("DELETE FROM standing WHERE destination = ?", [(each,) for each in changed])
        holding = [(destination, names[destination], depth) for destination, depth in changed.items() if depth]
        self._db.executemany("INSERT INTO standing VALUES (?, ?, ?)", holding)
        of_name = "SELECT coalesce(sum(depth), 0) FROM standing WHERE name = ?"
        rows = [(name, self._db.execute(of_name, (name,)).fetchone()[0]) for name in set(names.values())]
        (total,) = self._db.execute("SELECT coalesce(sum(depth), 0) FROM standing").fetchone()
        rows.append((self._name(), total))
        minute = seconds // MINUTE
        self._db.executemany("INSERT OR REPLACE INTO depth VALUES (?, ?, ?)", [(minute, *row) for row in rows])
        cells = [(width, seconds // width * width, *row, row[1]) for width in RETENTION_SECONDS for row in rows]
        self._db.executemany(_ADD_DEPTH, cells)

    def _note_consumers(self, notes: Iterable[ConsumerNote]) -> None:
        """Store how many clients consume from queues and subscriptions, and since when."""
        for each in notes:
            if each.destination == EVERYWHERE:
                since = each.ts_us // 1_000_000
                self._db.execute("UPDATE consumers SET clients = 0, since = ? WHERE clients > 0", (since,))
            elif each.destination.startswith(STORED_KINDS):
                values = (each.destination, each.clients, each.ts_us // 1_000_000)
                self._db.execute(_NOTE_CONSUMERS, values)

    def delete_expired(self, now: float) -> None:
        """Delete cells and depths past their retention, and names without cells."""
        with self._db:
            for width, seconds in RETENTION_SECONDS.items():
                self._db.execute("DELETE FROM cell WHERE width = ? AND start < ?", (width, int(now - seconds - width)))
            self._db.execute("DELETE FROM depth WHERE minute < ?", (int(now - DEPTH_RETENTION_SECONDS) // MINUTE,))
            self._db.execute(
                "DELETE FROM name WHERE destination <> '' AND id NOT IN (SELECT name FROM cell WHERE width = ?) "
                "AND id NOT IN (SELECT name FROM cell WHERE width = ?)", (HOUR, MINUTE),
            )  # fmt: skip
            self._db.execute(
                "DELETE FROM consumers WHERE clients = 0 AND destination NOT IN (SELECT destination FROM name)"
            )
        self._read_names()


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database file for writing."""
    db = sqlite3.connect(path, timeout=30)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.create_function("merged", 2, merge_histograms, deterministic=True)
    return db
