"""Read trace events in the order of the stream, each once: from the stream, and from the archive what left it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import to_archive_schema
from analytics.archive.read_locks import read_lock
from analytics.archive.stream_ids import START, id_of, position_of
from analytics.archive.trace_stream import TraceStream
from brokerapp.tracing.decoding import decode

#: Seconds after which an event that was not exported is dropped: a receiver that comes back gets what is recent first.
MAX_LAG_SECONDS = 600
#: Events read from the archive at once; bounds memory (about 150 bytes each). Older ones are dropped.
MAX_CATCH_UP_EVENTS = 1_000_000
#: Events of the archive that are given out together.
SLICE_EVENTS = 10_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events up to an entry of the stream."""

    events: pa.Table | None  #: None: there are none, or they cannot be read
    offset: str
    ordinal: int
    late: int = 0  #: events before these that were dropped because they are too old
    lost: int = 0  #: entries before these that are gone


class EventSource:
    """Reads one broker's events after a position."""

    def __init__(self, stream: TraceStream, archive: BrokerArchive, max_lag_seconds: float = MAX_LAG_SECONDS) -> None:
        self._stream, self._archive, self._max_lag = stream, archive, max_lag_seconds

    def end(self) -> tuple[str, int]:
        """Return id and ordinal of the last entry of the stream: where a first export begins."""
        return self._stream.end()

    def pages(self, offset: str, ordinal: int) -> Iterator[EventPage]:
        """Yield what is recorded after an entry, entry by entry, until nothing is left. Raises StoreUnavailable."""
        page = self._stream.read(offset, ordinal)
        if page.renewed:
            log.warning("the store was emptied: events after %s that were not exported are lost", offset)
            yield EventPage(None, START, 0)
            return
        if page.missed and offset != START:
            commit = self._archive.commit
            if position_of(commit.offset) > position_of(offset):  # the archiver moved them
                yield from self._archived(offset, ordinal, commit.offset)
                yield EventPage(None, commit.offset, commit.ordinal)
                return
        lost = page.missed
        ordinal += page.missed
        for id, batch in page.entries:
            ordinal += 1
            yield self._page_of(id, ordinal, batch, lost)
            lost = 0

    def _page_of(self, id: str, ordinal: int, batch: bytes, lost: int) -> EventPage:
        try:
            events = to_archive_schema(decode(batch), position_of(id))
        except (pa.ArrowException, ValueError) as error:
            log.error("trace batch %s cannot be read: %s", id, error)
            return EventPage(None, id, ordinal, lost=lost)
        if _time_of(id) < self._oldest():
            return EventPage(None, id, ordinal, late=events.num_rows, lost=lost)
        return EventPage(events, id, ordinal, lost=lost)

    def _archived(self, offset: str, ordinal: int, until: str) -> Iterator[EventPage]:
        """Yield what the archive holds between two entries, in slices that end with an entry."""
        oldest, last = position_of(f"{int(self._oldest() * 1000)}-0"), position_of(until)
        tables: deque[pa.Table] = deque()
        held = late = 0
        with read_lock(self._archive.folder.parent):
            for table in self._archive.events_after(position_of(offset)):
                recent = table.filter(pc.and_(pc.greater(table["entry"], oldest), pc.less_equal(table["entry"], last)))
                late += pc.sum(pc.less_equal(table["entry"], oldest)).as_py() or 0
                tables.append(recent)
                held += recent.num_rows
                while held > MAX_CATCH_UP_EVENTS and len(tables) > 1:
                    gone = tables.popleft()
                    held, late = held - gone.num_rows, late + gone.num_rows
        if not held:
            yield EventPage(None, offset, ordinal, late=late)
            return
        events = pa.concat_tables(tables)
        events = events.take(pc.sort_indices(events, [("entry", "ascending")]))
        entries = events["entry"].to_numpy()
        begin = 0
        while begin < len(entries):
            end = min(begin + SLICE_EVENTS, len(entries))
            end = int(entries.searchsorted(entries[end - 1], side="right"))
            # The ordinal between two commits is not known: the same as before, it only counts what is lost.
            yield EventPage(events.slice(begin, end - begin), id_of(int(entries[end - 1])), ordinal, late=late)
            begin, late = end, 0

    def _oldest(self) -> float:
        return time.time() - self._max_lag


def _time_of(id: str) -> float:
    """Return when an entry was added, in seconds since the epoch."""
    return int(id.partition("-")[0]) / 1000
