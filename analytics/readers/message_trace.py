"""Read the recorded trace of single messages: from the archive, by its index, and from unarchived events.

The newest events are searched first, until a deadline; the result says whether everything was searched.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.archive import bloom_index
from analytics.archive.bloom_index import IndexKey
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.trace_stream import TraceStream
from brokerapp.errors import StoreUnavailable
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.schema import ENQUEUE, KINDS, ORDER, ROLLBACK

#: Seconds that a search may take.
SEARCH_SECONDS = 1.0
#: Hours of the archive that are searched, from the newest back: a month.
MAX_HOURS = 31 * 24
#: Messages that one search returns.
MAX_FOUND = 50
#: Events that one search returns: of a message that was redelivered a thousand times, the last ones.
MAX_EVENTS = 5_000
log = logging.getLogger(__name__)

_COLUMNS = ["ts", "kind", "msg_id", "destination", "original", "consumer", "size", "born", "reason", "ps"]


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """A trace event of a message. Times are microseconds since the epoch."""

    ts_us: int
    kind: str
    msg_id: str
    destination: str
    original: str
    consumer: str | None
    size: int
    born_us: int
    reason: str | None
    properties: dict[str, str]


@dataclass(slots=True)
class TraceSearchResult:
    """Events that were found, and whether all were searched."""

    events: list[TraceEvent] = field(default_factory=list)  #: in the order in which they happened
    complete: bool = True  #: whether everything recorded that may concern these messages was searched
    hours: int = 0  #: number of hours of the archive that were searched


EventFilter = Callable[[pa.Table], pa.Table]


class TraceReader:
    """Reads the trace events of single messages of one broker, from the archive and the stream."""

    def __init__(self, archive: Path, redis_url: str, broker: str) -> None:
        self._archive, self._redis_url, self._broker = BrokerArchive(archive, broker), redis_url, broker

    def read(self, ids: Sequence[str], patience: float = SEARCH_SECONDS) -> TraceSearchResult:
        """Return all events of these messages."""
        wanted = pa.array(ids, pa.string())
        sought = set(ids)

        def filtered(events: pa.Table) -> pa.Table:
            return events.filter(pc.is_in(events["msg_id"], wanted))

        def is_all(events: list[TraceEvent]) -> bool:  # nothing happens to a message before it is sent
            begun = (KINDS[ENQUEUE], KINDS[ROLLBACK])
            return sought <= {each.msg_id for each in events if each.kind in begun}

        return self._search(filtered, [IndexKey(each) for each in ids], patience, is_all)

    def find(self, text: str, names: Iterable[str], patience: float = SEARCH_SECONDS) -> TraceSearchResult:
        """Find sent messages by id or property value, the newest first, at most MAX_FOUND."""
        names = list(names)

        def filtered(events: pa.Table) -> pa.Table:
            sent = events.filter(pc.equal(events["kind"].cast(pa.string()), KINDS[ENQUEUE]))
            matches = pc.equal(sent["msg_id"], text)
            for name in names:
                value = pc.map_lookup(sent["ps"], pa.scalar(name), "first")
                matches = pc.or_(matches, pc.fill_null(pc.equal(value, text), False))
            return sent.filter(matches)

        keys = [IndexKey(text), *(IndexKey(text, name) for name in names)]
        return self._search(filtered, keys, patience, lambda events: len(events) >= MAX_FOUND)

    def _search(
        self, wanted: EventFilter, keys: Sequence[IndexKey], patience: float, is_all: Callable[[list[TraceEvent]], bool]
    ) -> TraceSearchResult:
        deadline, found = time.monotonic() + patience, TraceSearchResult()
        found.complete = self._tail(wanted, found, deadline)
        for folder in self._hours():
            if is_all(found.events) or len(found.events) >= MAX_EVENTS:
                break
            if time.monotonic() > deadline:
                found.complete = False
                break
            found.complete = _search_hour(folder, wanted, keys, found, deadline) and found.complete
            found.hours += 1
        order = {kind: place for place, kind in enumerate(ORDER)}
        different = {_identity(each): each for each in found.events}  # archived events may still be in the stream
        found.events = sorted(different.values(), key=lambda each: (each.ts_us, order.get(each.kind, 99)))
        return found

    def _hours(self) -> list[Path]:
        """Return the folders of the hours, newest first."""
        folders = sorted(self._archive.folder.glob("day=*/hour=*"), key=lambda each: each.parts[-2:], reverse=True)
        return folders[:MAX_HOURS]

    def _tail(self, wanted: EventFilter, found: TraceSearchResult, deadline: float) -> bool:
        """Add events that are not archived yet; return whether all were searched."""
        commit = self._archive.commit
        stream = TraceStream(self._redis_url, self._broker)
        offset, ordinal = commit.offset, commit.ordinal
        try:
            while True:
                page = stream.read(offset, ordinal)
                if page.renewed and ordinal:
                    offset, ordinal = "0-0", 0
                    continue
                for id, batch in page.entries:
                    if time.monotonic() > deadline:
                        return False
                    found.events += _events(wanted, batch)
                    offset, ordinal = id, ordinal + 1
                ordinal += page.missed
                if not page.entries:
                    return True
        except StoreUnavailable:
            return False
        finally:
            stream.close()


def _search_hour(
    folder: Path, wanted: EventFilter, keys: Sequence[IndexKey], found: TraceSearchResult, deadline: float
) -> bool:
    """Add the wanted events of an hour; return whether all its files were searched."""
    may, known = bloom_index.candidates(folder, keys)
    files, whole = sorted(folder.glob("part-*.parquet"), reverse=True), True
    for path in files:
        if path.name in known and path.name not in may:
            continue
        if time.monotonic() > deadline:
            return False
        try:
            events = pq.read_table(path, columns=_COLUMNS, partitioning=None)
        except FileNotFoundError:  # replaced in this moment
            continue
        except (OSError, pa.ArrowException):
            log.warning("%s cannot be read: its events are missing from journeys", path)
            whole = False
            continue
        found.events += list(_records(wanted(events)))
    return whole


def _events(wanted: EventFilter, batch: bytes) -> list[TraceEvent]:
    try:
        return list(_records(wanted(decode(batch).select(_COLUMNS))))
    except (pa.ArrowException, ValueError):
        return []


def _records(events: pa.Table) -> Iterator[TraceEvent]:
    moments = [events[name].cast(pa.int64()).to_pylist() for name in ("ts", "born")]
    texts = [events[name].to_pylist() for name in ("kind", "msg_id", "destination", "original", "consumer", "size")]
    rest = [events[name].to_pylist() for name in ("reason", "ps")]
    for ts, born, kind, id, destination, original, consumer, size, reason, properties in zip(
        *moments, *texts, *rest, strict=True
    ):
        yield TraceEvent(ts, kind, id, destination, original, consumer, size, born, reason, dict(properties or ()))


def _identity(event: TraceEvent) -> tuple:
    return event.ts_us, event.kind, event.msg_id, event.destination, event.original, event.consumer
