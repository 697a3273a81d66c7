"""Tells the owners of logs what this node appended to them.

A home that is about to give it out says so (WANT_ENTRIES): then it is told the messages, and need not read them
back. What our own clients consume there is likely to be given to them: it is kept for a while, so that the home need
only name it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.links.protocol import AppendedBatch, PeerMessageType, pack_batch

if TYPE_CHECKING:
    from brokerapp.nodes.ports import NodeOwnership

#: Bytes that may wait for a home that does not read: past them it is told no messages, but reads them back itself.
MAX_UNSENT = 4 * 1024 * 1024
#: Bytes of what is kept, each message with what it takes in memory besides: some thousand messages for each of several
#: logs. What was forgotten is read from the store.
CACHE_BYTES = 16 * 1024 * 1024
ENTRY_BYTES = 500


@dataclass(slots=True)
class AppendNotice:
    """What a home is to be told of one log."""

    count: int
    last_seq: int
    batches: list[tuple[Sequence[LogEntry], int | None]] | None = field(
        default_factory=list
    )  #: None: some are not at hand


class AppendNotices:
    """Collects what this node appended to logs owned elsewhere, and tells their owners."""

    def __init__(self, ownership: NodeOwnership) -> None:
        self._ownership = ownership
        self._notices: dict[str, AppendNotice] = {}
        self._wanted_logs: set[str] = set()  # logs of which their homes want the messages
        self._cache: OrderedDict[tuple[str, int], LogEntry] = OrderedDict()  # by log and number, the oldest first
        self._cached_bytes = 0
        self._evicted_up_to = 0  # the highest number that is kept no more and was not taken

    def wants_entries(self, log: str) -> bool:
        """Whether its home wants the messages themselves."""
        return log in self._wanted_logs

    def on_wish(self, session: str, log: str, wanted: bool) -> None:
        """The home of a log wants to be told the messages, or only how many came."""
        if wanted and self._ownership.owner_of(log) == session:
            self._wanted_logs.add(log)
        else:
            self._wanted_logs.discard(log)

    def add(self, log: MessageLog, count: int, upto: int, entries: Sequence[LogEntry], before: int | None) -> None:
        """So many messages of ours are stored, one after the other, up to this number; `before` stood last then.

        The home is told soon; where that is to be this node, it reads them when it takes the log.
        """
        if self._ownership.is_local(log.name):
            return
        note = self._notices.get(log.name)
        if note is None:
            note = self._notices[log.name] = AppendNotice(0, upto)
        note.count, note.last_seq = note.count + count, upto
        if not entries:
            note.batches = None
        elif note.batches is not None:
            note.batches.append((entries, before))

    def send(self) -> None:
        """Tell homes what was stored; one that does not hear us reads it when it does."""
        notes, self._notices = self._notices, {}
        for log, note in notes.items():
            home, runs, forgotten = self._ownership.owner_of(log), None, None
            if not self._ownership.is_linked(home):
                continue
            if note.batches is not None and self._ownership.unsent_bytes(home) <= MAX_UNSENT:
                runs: list[AppendedBatch] | None = [pack_batch(entries, before) for entries, before in note.batches]
                if self._ownership.outbound_consumers.has_consumers(log):
                    self._cache_batches(log, note.batches)
                    forgotten = self._evicted_up_to
            self._ownership.send(home, PeerMessageType.APPENDED, log, note.count, note.last_seq, runs, forgotten)

    # -- what is kept

    def _cache_batches(self, log: str, runs: Sequence[tuple[Sequence[LogEntry], int | None]]) -> None:
        for each in (each for entries, _ in runs for each in entries):
            self._cache[log, each.seq] = each
            self._cached_bytes += each.size + ENTRY_BYTES
        while self._cached_bytes > CACHE_BYTES:
            (_, number), oldest = self._cache.popitem(last=False)
            self._cached_bytes -= oldest.size + ENTRY_BYTES
            self._evicted_up_to = max(self._evicted_up_to, number)

    def take_cached(self, log: str, number: int) -> LogEntry | None:
        """What was kept under this number, once; None if nothing is."""
        found = self._cache.pop((log, number), None)
        if found is not None:
            self._cached_bytes -= found.size + ENTRY_BYTES
        return found

    def on_log_removed(self, log: str) -> None:
        """The log is no more; what was kept of it goes when it is the oldest."""
        self._wanted_logs.discard(log)

    def on_members_changed(self) -> None:
        """The members are others: homes that want messages say so again."""
        self._wanted_logs.clear()
        self._evicted_up_to = max([self._evicted_up_to, *(number for _, number in self._cache)])
        self._cache.clear()
        self._cached_bytes = 0
