"""Query counts, latencies and depths of a destination or the whole broker from the rollups, over any time range."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analytics.model.measures import REMOVALS
from analytics.model.service_level import Outcomes
from analytics.rollups.counters import COLUMNS, NUMBERS, CounterCell, unpack_histogram
from analytics.rollups.log_histogram import buckets_of
from analytics.rollups.store import DAY, HOUR, MINUTE, NAME

#: The destination under which the whole broker is counted.
WHOLE_BROKER = ""
_REMOVED = " + ".join(f'"{kind}"' for kind in REMOVALS) + " - never_stored"
#: A message sent to a queue is an enqueue and a forward there, but arrived once; the broker counts stored copies.
_ENQUEUED = f"CASE destination WHEN '{WHOLE_BROKER}' THEN forward ELSE max(enqueue, forward) END + \"return\""
#: Points a chart can show.
MOST_POINTS = 1500


@dataclass(frozen=True, slots=True)
class RollupPoint:
    """Counts and depths of one period."""

    start: int  #: seconds since the epoch
    cell: CounterCell
    depth: int | None  #: the last depth noted in it; None: it did not change
    most: int | None  #: the greatest depth noted in it


@dataclass(frozen=True, slots=True)
class ConsumersSince:
    """How many clients consume from a destination, and since when there are any or none."""

    clients: int
    since: int  #: seconds since the epoch


@dataclass(frozen=True, slots=True)
class DepthsAt:
    """The depths of all destinations at one time."""

    noted: int  #: the last minute with noted depths before the requested time, in seconds since the epoch
    of: dict[str, int]  #: depths above 0 by destination, in native form


def width_for(start: int, end: int, now: float) -> int:
    """Return the width of cells, in seconds, that suits a time range."""
    if now - start <= 2 * DAY - HOUR and (end - start) / MINUTE <= MOST_POINTS:
        return MINUTE
    return HOUR if (end - start) / HOUR <= MOST_POINTS else DAY


class RollupQueries:
    """Queries the rollups of one broker. An archive without rollups gives empty answers."""

    def __init__(self, broker: Path) -> None:
        self.path = broker / NAME

    def points(
        self, start: int, end: int, width: int, destination: str = WHOLE_BROKER, consumer: str = ""
    ) -> list[RollupPoint]:
        """Return the cells of this width that begin in a time range; consumer "" means all consumers."""
        rows = self._query(
            f"SELECT cell.start, {', '.join(COLUMNS)}, latency, depth, most "
            "FROM json_each(?) AS wanted CROSS JOIN cell ON width = ? AND cell.start = wanted.value "
            "AND cell.name = (SELECT id FROM name WHERE destination = ? AND consumer = ?)",
            (_starts(start, end, width), width, destination, consumer),
        )
        last = 1 + len(NUMBERS)
        return [
            RollupPoint(row[0], CounterCell(list(row[1:last]), unpack_histogram(row[last])), *row[last + 1 :])
            for row in rows
        ]

    def flows(self, start: int, end: int, width: int, destinations: Sequence[str]) -> list[tuple]:
        """Return start, destination, enqueued, dequeued and last depth of the cells of several destinations, in order.

        Plain tuples: a chart of many destinations has tens of thousands.
        """
        return self._query(
            f"SELECT cell.start, name.destination, {_ENQUEUED}, {_REMOVED}, depth "
            "FROM json_each(?) AS wanted CROSS JOIN json_each(?) AS named "
            "JOIN name ON name.destination = named.value AND name.consumer = '' "
            "CROSS JOIN cell ON width = ? AND cell.start = wanted.value AND cell.name = name.id",
            (_starts(start, end, width), json.dumps(destinations), width),
        )

    def consumers(self, destination: str) -> list[str]:
        """Return the known consumers of a destination."""
        rows = self._query("SELECT consumer FROM name WHERE destination = ? AND consumer <> ''", (destination,))
        return sorted(consumer for (consumer,) in rows)

    def destinations(self) -> list[str]:
        """Return the destinations that are counted apart, in native form."""
        rows = self._query("SELECT destination FROM name WHERE consumer = '' AND destination LIKE '%://%'", ())
        return sorted(destination for (destination,) in rows)

    def outcomes(self, cells: Mapping[int, Sequence[int]], destinations: Sequence[str], seconds: float) -> Outcomes:
        """Count the messages of these cells (starts by width) that were acknowledged in time, later, and that failed.

        The bucket of the histogram that contains the time counts as in time: it ends up to 4.4% later.
        """
        total = Outcomes()
        for width, starts in cells.items():
            for found in self._outcomes(json.dumps(list(starts)), width, destinations, seconds).values():
                total = total.plus(found)
        return total

    def outcomes_by_start(
        self, start: int, end: int, width: int, destinations: Sequence[str], seconds: float
    ) -> dict[int, Outcomes]:
        """Count the same for each start of the cells of this width in a time range; without those of no messages."""
        return self._outcomes(_starts(start, end, width), width, destinations, seconds)

    def _outcomes(self, starts: str, width: int, destinations: Sequence[str], seconds: float) -> dict[int, Outcomes]:
        rows = self._query(
            'SELECT cell.start, latency, dead_letter + "drop" - never_stored '
            "FROM json_each(?) AS wanted CROSS JOIN json_each(?) AS named "
            "JOIN name ON name.destination = named.value AND name.consumer = '' "
            "CROSS JOIN cell ON width = ? AND cell.start = wanted.value AND cell.name = name.id",
            (starts, json.dumps(list(destinations)), width),
        )
        limit, counts = int(buckets_of(np.array([seconds * 1e6]))[0]), dict[int, list[int]]()
        for start, latency, gone in rows:
            found = counts.setdefault(start, [0, 0, 0])
            for bucket, count in unpack_histogram(latency).items():
                found[bucket > limit] += count
            found[2] += gone
        return {start: Outcomes(*found) for start, found in counts.items()}

    def first_start(self, width: int) -> int | None:
        """Return the start of the first cell of this width that is kept; None without any."""
        rows = self._query("SELECT min(start) FROM cell WHERE width = ?", (width,))
        return rows[0][0] if rows else None

    def consumers_since(self, destinations: Sequence[str] | None = None) -> dict[str, ConsumersSince]:
        """Return the recorded consumers of these queues and subscriptions, or of all that ever had any."""
        chosen = "" if destinations is None else " WHERE destination IN (SELECT value FROM json_each(?))"
        rows = self._query(
            f"SELECT destination, clients, since FROM consumers{chosen}",
            () if destinations is None else (json.dumps(list(destinations)),),
        )
        return {destination: ConsumersSince(clients, since) for destination, clients, since in rows}

    def depths_before(self, start: int, destinations: Sequence[str]) -> dict[str, int]:
        """Return the depths at the start of a time range, from the hour before."""
        minute = start // MINUTE
        rows = self._query(
            "SELECT destination, depth.depth FROM depth JOIN name ON name.id = depth.name AND name.consumer = '' "
            "WHERE minute BETWEEN ? AND ? AND destination IN (SELECT value FROM json_each(?)) ORDER BY minute",
            (minute - 61, minute, json.dumps(destinations)),
        )
        return dict(rows)

    def depth_notes(self, start: int, end: int, destinations: Sequence[str]) -> list[tuple[int, str, int]]:
        """Return minute (its start in seconds), destination and depth of the notes in a time range, in order."""
        return self._query(
            f"SELECT minute * {MINUTE}, destination, depth.depth "
            "FROM depth JOIN name ON name.id = depth.name AND name.consumer = '' "
            "WHERE minute >= ? AND minute < ? AND destination IN (SELECT value FROM json_each(?)) ORDER BY minute",
            (start // MINUTE, end // MINUTE, json.dumps(list(destinations))),
        )

    def depths_at(self, moment: int) -> DepthsAt | None:
        """Return all depths at a moment; None without earlier records."""
        rows = self._query("SELECT max(minute) FROM depth WHERE minute <= ?", (moment // MINUTE,))
        if not rows or rows[0][0] is None:
            return None
        noted = rows[0][0]
        # Each hour begins with a note of all depths above 0, so earlier notes do not matter.
        rows = self._query(
            "SELECT destination, depth.depth FROM depth JOIN name ON name.id = depth.name "
            "WHERE minute BETWEEN ? AND ? AND destination <> '' ORDER BY minute",
            (noted // 60 * 60, noted),
        )
        return DepthsAt(noted * MINUTE, {destination: depth for destination, depth in dict(rows).items() if depth})

    def _query(self, question: str, values: tuple) -> list[tuple]:
        try:
            with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=2)) as db:
                return db.execute(question, values).fetchall()
        except sqlite3.OperationalError:  # there is no file, or nothing in it yet
            return []


def _starts(start: int, end: int, width: int) -> str:
    """Return the starts of cells between two moments, as JSON."""
    return json.dumps(list(range(start // width * width, end, width)))
