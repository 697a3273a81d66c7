"""Hold the messages that wait for one subscriber and are in no log, within the limits of its policy. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from brokerapp.engine.entries.eviction import OLDEST, evict
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.policy_strategies import MessageEviction

#: Bytes of bodies that wait for one subscriber of topics; beyond it, or their number, some go, which is recorded.
MAX_PENDING_BYTES = 16 * 1024 * 1024
#: Bytes of bodies that are taken at once: then it is seen whether the socket takes more.
MAX_TAKEN_BYTES = 256 * 1024


class PendingMessages:
    """Messages in the order in which they came."""

    __slots__ = ("_entries", "bytes", "discarded_count", "eviction", "max_bytes", "max_count")

    def __init__(self) -> None:
        self._entries: deque[LogEntry] = deque()
        self.bytes = 0  #: of their bodies
        self.max_count = 0  #: messages that may wait
        self.max_bytes = MAX_PENDING_BYTES  #: of bodies
        self.eviction: MessageEviction | None = None  #: which are discarded; None: the oldest
        self.discarded_count = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._entries)

    def add(self, entries: Collection[LogEntry]) -> None:
        """Add messages behind those that wait."""
        self._entries.extend(entries)
        self.bytes += sum([len(entry.message.body) for entry in entries])

    def take(self, room: int) -> list[LogEntry]:
        """Take the oldest messages, at most `room`, and no more than a socket is likely to take at once."""
        taken: list[LogEntry] = []
        size, count = 0, min(room, len(self._entries))
        while len(taken) < count and size < MAX_TAKEN_BYTES:
            entry = self._entries.popleft()
            taken.append(entry)
            size += len(entry.message.body)
        self.bytes -= size
        return taken

    def remove(self, entry: LogEntry) -> None:
        """Remove one message."""
        self._entries.remove(entry)
        self.bytes -= len(entry.message.body)

    @property
    def is_over_limit(self) -> bool:
        """Return whether more waits than may."""
        return len(self._entries) > self.max_count or self.bytes > self.max_bytes

    def discard_excess(self, now_ms: int) -> Iterator[LogEntry]:
        """Discard what is too much as if messages had come one by one, each within the limits; yield each discarded."""
        late: list[LogEntry] = []
        while self.is_over_limit:
            late.append(entry := self._entries.pop())
            self.bytes -= len(entry.message.body)
        while late:
            self.add((late.pop(),))
            while self.is_over_limit:
                for entry in evict(self._entries, self.eviction or OLDEST, now_ms):
                    self.bytes -= len(entry.message.body)
                    self.discarded_count += 1
                    yield entry
