"""Make the entries that logs and topics give to consumers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.remote_entry import REMOTE_LOG_PREFIX
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.store import StoredLogEntry

#: What the names of topics begin with, among those of logs, and of what other brokers keep.
_TOPICS = (f"{DestinationKind.TOPIC}://", f"{DestinationKind.TEMP_TOPIC}://", REMOTE_LOG_PREFIX)


_way = attrgetter("log", "shown_destination", "original_destination")


@lru_cache(maxsize=16384)
def native_form(stomp: str) -> str:
    """`/queue/N` as `queue://N`."""
    return str(Destination.parse(stomp))


def log_entry_of(log: str, stored: StoredLogEntry) -> LogEntry:
    """Build the entry of a log from what the store holds."""
    message = stored.message
    return LogEntry(
        log, stored.seq, message, stored.payload, stored.size, stored.original, stored.shown, message.deliveries
    )


def topic_entries(messages: Sequence[Message], copy: RoutedCopy, queue: Destination | None = None) -> list[LogEntry]:
    """Return messages of a topic as its subscribers get them, or the consumers of a queue that gets copies of them."""
    shown, original = (copy.destination, copy.original) if queue is None else (queue, copy.destination)
    log, sent_to, shown_as = str(copy.destination), original.stomp if original is not None else "", shown.stomp
    return [LogEntry(log, 0, message, 0, 0, sent_to, shown_as) for message in messages]


def split_by(entries: Sequence[LogEntry], key: Callable[[LogEntry], Any]) -> Sequence[tuple[Any, Sequence[LogEntry]]]:
    """Split entries where the key changes; most often it is one for all."""
    keys = set(map(key, entries))
    if len(keys) == 1:
        return [(keys.pop(), entries)]
    return [(found, list(alike)) for found, alike in groupby(entries, key)]


def group_by_way(entries: Sequence[LogEntry]) -> Iterable[tuple[tuple[str, str, str], list[LogEntry]]]:
    """Group entries by log, shown and original destination: such are counted, recorded and acknowledged together."""
    ways = set(map(_way, entries))
    if len(ways) == 1:
        return [(ways.pop(), list(entries))]
    groups: dict[tuple[str, str, str], list[LogEntry]] = {}
    for entry in entries:
        way = entry.log, entry.shown_destination, entry.original_destination
        if way in groups:
            groups[way].append(entry)
        else:
            groups[way] = [entry]
    return groups.items()


def partition(entries: Sequence[LogEntry], wanted: Callable[[LogEntry], bool]) -> tuple[list[LogEntry], list[LogEntry]]:
    """Split entries into those that are wanted and the others, both in order."""
    return [each for each in entries if wanted(each)], [each for each in entries if not wanted(each)]


def is_from_log(entry: LogEntry) -> bool:
    """Whether an entry came from a message log of this broker (else straight from a topic, or from another broker)."""
    return not entry.log.startswith(_TOPICS)
