"""Keeps what our clients consume from logs that other nodes own, and what they hold of it.

The owner is told this account, by log and sequence number, when it changes or its link was lost.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType


@dataclass(slots=True)
class OutboundAccount:
    """Our consumers of one log, and what they hold."""

    #: With whether an owner may be told: not before the store has the log.
    consumers: dict[Subscription, bool] = field(default_factory=dict)
    unacked: dict[int, tuple[Subscription, LogEntry]] = field(default_factory=dict)
    #: Of what is held, acknowledged in transactions, so that more may be sent for it.
    credited_seqs: set[int] = field(default_factory=set)

    def release(self, number: int) -> bool:
        """Forget an entry; return whether it was held."""
        self.credited_seqs.discard(number)
        return self.unacked.pop(number, None) is not None

    def add_unacked(self, log: str, subscription: Subscription, entries: Iterable[LogEntry]) -> set[int]:
        """Note those of these entries that are of this log; return their sequence numbers."""
        found = {each.seq: (subscription, each) for each in entries if each.log == log and each.seq}
        self.unacked.update(found)
        return set(found)


class OutboundAccounts:
    """Accounts by log, and the keys by which owners know our consumers."""

    def __init__(self, *, peers: Peers) -> None:
        self._peers = peers
        self._accounts: dict[str, OutboundAccount] = {}
        self._numbers = itertools.count(1)
        self._keys: dict[Subscription, int] = {}
        self._by_key: dict[int, Subscription] = {}
        self._unconfirmed: dict[Subscription, set[str]] = {}  # logs whose owners have not confirmed the consumer yet
        self._waiting: dict[Subscription, list[Callable[[], None]]] = defaultdict(list)  # until all have

    # -- accounts

    def of(self, log: str) -> OutboundAccount:
        """Return the account of a log, which begins empty."""
        return self._accounts.setdefault(log, OutboundAccount())

    def find(self, log: str) -> OutboundAccount | None:
        """Return the account of a log if there is one."""
        return self._accounts.get(log)

    def take(self, log: str) -> OutboundAccount:
        """Remove and return the account of a log."""
        account = self._accounts.pop(log, None) or OutboundAccount()
        for subscription in account.consumers:
            self.confirm(subscription, log)
        return account

    def has_consumers(self, log: str) -> bool:
        """Return whether clients of this node consume a log that another node owns."""
        account = self._accounts.get(log)
        return account is not None and bool(account.consumers)

    def unacked_count(self, subscription: Subscription, owner: str) -> int:
        """Return how much a consumer holds of the logs of one owner, without what may be replaced."""
        accounts = [each for log, each in self._accounts.items() if self._peers.owner_of(log) == owner]
        return sum(
            holder is subscription and number not in account.credited_seqs
            for account in accounts
            for number, (holder, _) in account.unacked.items()
        )

    def add_consumer(self, subscription: Subscription, log: MessageLog, *, may_be_told: bool) -> None:
        """Note that a subscription consumes a log that another node owns."""
        self.of(log.name).consumers[subscription] = may_be_told
        self._unconfirmed.setdefault(subscription, set()).add(log.name)
        subscription.has_remote_logs = True
        if subscription not in self._keys:
            key = self._keys[subscription] = next(self._numbers)
            self._by_key[key] = subscription

    def remove_consumer(self, subscription: Subscription, log: str) -> None:
        """Note that a subscription consumes a log no longer."""
        self.of(log).consumers.pop(subscription, None)
        self.confirm(subscription, log)

    # -- confirmations of owners

    def confirm(self, subscription: Subscription, log: str) -> None:
        """Wait no longer for the owner of a log: it knows the consumer, or need not know it any more."""
        unconfirmed = self._unconfirmed.get(subscription, set())
        unconfirmed.discard(log)
        if not unconfirmed:
            self._unconfirmed.pop(subscription, None)
            for callback in self._waiting.pop(subscription, ()):
                callback()

    def when_confirmed(self, subscription: Subscription, then: Callable[[], None]) -> bool:
        """Call back when all owners know a consumer; return False, without calling, if they do."""
        if subscription in self._unconfirmed:
            self._waiting[subscription].append(then)
            return True
        return False

    # -- keys

    def key_of(self, subscription: Subscription) -> int:
        """Return the key by which owners know a consumer; 0 if it has none."""
        return self._keys.get(subscription, 0)

    def with_key(self, key: int) -> Subscription | None:
        """Return the consumer with this key."""
        return self._by_key.get(key)

    def forget(self, subscription: Subscription) -> None:
        """Forget the key of a consumer that ended."""
        key = self._keys.pop(subscription, None)
        if key is not None:
            del self._by_key[key]
        for log in list(self._unconfirmed.get(subscription, ())):
            self.confirm(subscription, log)

    # -- credit

    def give_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None:
        """Let owners send a consumer as many messages more of the same logs."""
        self._change_credit(subscription, entries, 1)

    def take_credit(self, subscription: Subscription, entries: Iterable[LogEntry]) -> None:
        """Take the credit back: the consumer holds these again, as its transaction was rolled back."""
        self._change_credit(subscription, entries, -1)

    def _change_credit(self, subscription: Subscription, entries: Iterable[LogEntry], sign: int) -> None:
        counts: dict[str, int] = defaultdict(int)
        for entry in entries:
            if (account := self._accounts.get(entry.log)) is not None and entry.seq in account.unacked:
                (account.credited_seqs.add if sign > 0 else account.credited_seqs.discard)(entry.seq)
                counts[self._peers.owner_of(entry.log)] += sign
        for owner, count in counts.items():
            self._peers.send(owner, PeerMessageType.CREDIT, self.key_of(subscription), count)


def entries_by_log(entries: Iterable[LogEntry]) -> dict[str, list[LogEntry]]:
    """Group entries by their logs, in order."""
    found: dict[str, list[LogEntry]] = {}
    for entry in entries:
        found.setdefault(entry.log, []).append(entry)
    return found
