"""Tells the owners of logs what this node appended to them.

An owner that is about to dispatch it asks for the messages (WANT_ENTRIES) and need not read them back. What our own
clients consume from that log is likely to be sent back to them: it is cached for a while, so that the owner need only
send its sequence number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.delivery.outbound_accounts import OutboundAccounts
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import AppendedBatch, PeerMessageType, pack_batch

#: Bytes that may wait for an owner to read them: past them it is sent no messages, and reads the store itself.
MAX_UNSENT = 4 * 1024 * 1024
#: Bytes of the cache, each message with what it takes in memory besides: some thousand messages for each of several
#: logs. What was evicted is read from the store.
CACHE_BYTES = 16 * 1024 * 1024
ENTRY_BYTES = 500


@dataclass(slots=True)
class AppendNotice:
    """What the owner of one log is to be told."""

    count: int
    last_seq: int
    #: Entries, each with the number of the one before them; None: some are not at hand.
    batches: list[tuple[Sequence[LogEntry], int | None]] | None = field(default_factory=list)


class AppendNotices(NodeObserver):
    """Collects what this node appended to logs of other owners, and tells them once a tick."""

    def __init__(self, *, peers: Peers, accounts: OutboundAccounts) -> None:
        self._peers, self._accounts = peers, accounts
        self._notices: dict[str, AppendNotice] = {}
        self._wanted_logs: set[str] = set()  # whose owners want the messages
        self._cache: OrderedDict[tuple[str, int], LogEntry] = OrderedDict()  # by log and number, the oldest first
        self._cached_bytes = 0
        self._evicted_up_to = 0  # the highest number that was evicted before it was taken

    def wants_entries(self, log: str) -> bool:
        """Return whether the owner of a log wants the messages themselves."""
        return log in self._wanted_logs

    def on_wish(self, session: str, log: str, wanted: bool) -> None:
        """Send the owner of a log the messages from now on, or only how many there are."""
        if wanted and self._peers.owner_of(log) == session:
            self._wanted_logs.add(log)
        else:
            self._wanted_logs.discard(log)

    def add(self, log: MessageLog, count: int, upto: int, entries: Sequence[LogEntry], before: int | None) -> None:
        """Note that the store took so many messages up to a sequence number, after the entry numbered `before`.

        If this node is about to own the log, it reads them when it takes over.
        """
        if self._peers.is_local(log.name):
            return
        notice = self._notices.get(log.name)
        if notice is None:
            notice = self._notices[log.name] = AppendNotice(0, upto)
        notice.count, notice.last_seq = notice.count + count, upto
        if not entries:
            notice.batches = None
        elif notice.batches is not None:
            notice.batches.append((entries, before))

    def send(self) -> None:
        """Send the notices; an owner without a link reads the store when it has one."""
        notices, self._notices = self._notices, {}
        for log, notice in notices.items():
            owner = self._peers.owner_of(log)
            if self._peers.is_linked(owner):
                self._send_notice(log, notice, owner)

    def _send_notice(self, log: str, notice: AppendNotice, owner: str) -> None:
        packed: list[AppendedBatch] | None = None
        evicted = None
        if notice.batches is not None and self._peers.unsent_bytes(owner) <= MAX_UNSENT:
            packed = [pack_batch(entries, before) for entries, before in notice.batches]
            if self._accounts.has_consumers(log):
                self._add_to_cache(log, notice.batches)
                evicted = self._evicted_up_to
        self._peers.send(owner, PeerMessageType.APPENDED, log, notice.count, notice.last_seq, packed, evicted)

    # -- the cache

    def _add_to_cache(self, log: str, batches: Sequence[tuple[Sequence[LogEntry], int | None]]) -> None:
        for each in (each for entries, _ in batches for each in entries):
            self._cache[log, each.seq] = each
            self._cached_bytes += each.size + ENTRY_BYTES
        while self._cached_bytes > CACHE_BYTES:
            (_, number), oldest = self._cache.popitem(last=False)
            self._cached_bytes -= oldest.size + ENTRY_BYTES
            self._evicted_up_to = max(self._evicted_up_to, number)

    def take_cached(self, log: str, number: int) -> LogEntry | None:
        """Remove and return the cached entry with this number, if there is one."""
        found = self._cache.pop((log, number), None)
        if found is not None:
            self._cached_bytes -= found.size + ENTRY_BYTES
        return found

    def on_log_removed(self, log: str) -> None:
        """Forget what its owner wants; cached entries are evicted in their turn."""
        self._wanted_logs.discard(log)

    def on_members_changed(self) -> None:
        """Clear the cache; owners that want messages say so again."""
        self._wanted_logs.clear()
        self._evicted_up_to = max([self._evicted_up_to, *(number for _, number in self._cache)])
        self._cache.clear()
        self._cached_bytes = 0
