"""Deposits: what this node stored in logs that are at home elsewhere, until their homes are told. A part of Homes.

A home that is about to give it out says so (WISHED): then it is told the messages themselves, and need not read them
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
from brokerapp.nodes.links.protocol import Told, Word, pack_told

if TYPE_CHECKING:
    from brokerapp.nodes.ownership.coordinator import Homes

#: Bytes that may wait for a home that does not read: past them it is told no messages, but reads them back itself.
MAX_WAITING = 4 * 1024 * 1024
#: Bytes of what is kept, each message with what it takes in memory besides: some thousand messages for each of several
#: logs. What was forgotten is read from the store.
KEPT_BYTES = 16 * 1024 * 1024
ENTRY_BYTES = 500


@dataclass(slots=True)
class Note:
    """What a home is to be told of one log."""

    count: int
    upto: int
    runs: list[tuple[Sequence[LogEntry], int | None]] | None = field(
        default_factory=list
    )  #: None: some are not at hand


class Deposits:
    """Those of one node."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self._notes: dict[str, Note] = {}
        self._followed: set[str] = set()  # logs of which their homes want the messages
        self._kept: OrderedDict[tuple[str, int], LogEntry] = OrderedDict()  # by log and number, the oldest first
        self._kept_bytes = 0
        self._forgotten = 0  # the highest number that is kept no more and was not taken

    def is_followed(self, log: str) -> bool:
        """Whether its home wants the messages themselves."""
        return log in self._followed

    def wished(self, session: str, log: str, wanted: bool) -> None:
        """The home of a log wants to be told the messages, or only how many came."""
        if wanted and self._homes.home(log) == session:
            self._followed.add(log)
        else:
            self._followed.discard(log)

    def note(self, log: MessageLog, count: int, upto: int, entries: Sequence[LogEntry], before: int | None) -> None:
        """So many messages of ours are stored, one after the other, up to this number; `before` stood last then.

        The home is told soon; where that is to be this node, it reads them when it takes the log.
        """
        if self._homes.is_here(log.name):
            return
        note = self._notes.get(log.name)
        if note is None:
            note = self._notes[log.name] = Note(0, upto)
        note.count, note.upto = note.count + count, upto
        if not entries:
            note.runs = None
        elif note.runs is not None:
            note.runs.append((entries, before))

    def tell(self) -> None:
        """Tell homes what was stored; one that does not hear us reads it when it does."""
        notes, self._notes = self._notes, {}
        for log, note in notes.items():
            home, runs, forgotten = self._homes.home(log), None, None
            if not self._homes.hears(home):
                continue
            if note.runs is not None and self._homes.waiting(home) <= MAX_WAITING:
                runs: list[Told] | None = [pack_told(entries, before) for entries, before in note.runs]
                if self._homes.abroad.consumes(log):
                    self._keep(log, note.runs)
                    forgotten = self._forgotten
            self._homes.tell(home, Word.ARRIVED, log, note.count, note.upto, runs, forgotten)

    # -- what is kept

    def _keep(self, log: str, runs: Sequence[tuple[Sequence[LogEntry], int | None]]) -> None:
        for each in (each for entries, _ in runs for each in entries):
            self._kept[log, each.seq] = each
            self._kept_bytes += each.size + ENTRY_BYTES
        while self._kept_bytes > KEPT_BYTES:
            (_, number), oldest = self._kept.popitem(last=False)
            self._kept_bytes -= oldest.size + ENTRY_BYTES
            self._forgotten = max(self._forgotten, number)

    def take(self, log: str, number: int) -> LogEntry | None:
        """What was kept under this number, once; None if nothing is."""
        found = self._kept.pop((log, number), None)
        if found is not None:
            self._kept_bytes -= found.size + ENTRY_BYTES
        return found

    def lost(self, log: str) -> None:
        """The log is no more; what was kept of it goes when it is the oldest."""
        self._followed.discard(log)

    def moved(self) -> None:
        """The members are others: homes that want messages say so again."""
        self._followed.clear()
        self._forgotten = max([self._forgotten, *(number for _, number in self._kept)])
        self._kept.clear()
        self._kept_bytes = 0
