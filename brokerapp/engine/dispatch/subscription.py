"""Represent a subscription: what it requested, its credit, and its unacknowledged messages.

Logs and topics feed it alike, and know nothing of the connection behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.pending_messages import PendingMessages
from brokerapp.engine.policy.authorization import Principal
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import Selector

#: Tells the keys of copies apart that bear the same ack id.
_DUPLICATE_SUFFIX = "\n"


class SourceLog(Protocol):
    """The part of a message log that its subscriptions know; they cannot import it, as it imports them."""

    @property
    def name(self) -> str: ...

    @property
    def ready(self) -> Sized: ...

    @property
    def unloaded_count(self) -> int: ...

    @property
    def is_remote(self) -> bool: ...

    @property
    def depth(self) -> int: ...


class SnapshotCursor(Protocol):
    """The snapshot that a browser gets."""

    def begin(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(slots=True, eq=False)
class Subscription:
    """Represent a consumer's standing request. `client` is whatever the broker delivers through."""

    id: str | None  #: what the client calls it in frames; None when it gave no id
    name: str  #: what tells it from the client's others
    key: str  #: first part of its ack ids, unique among its client's
    client: Any  #: a Client, which imports this
    destinations: tuple[Destination, ...]  #: names or patterns
    ack_mode: str
    prefetch: int
    selector: Selector | BridgeEligibility | None = None  #: which messages it takes
    transformation: str | None = None  #: the form in which it wants what the broker itself writes
    priority: int = 0  #: those of lower priority get only what the higher ones have no credit for
    exclusive: bool = False  #: wants all messages of a queue for itself
    credit: int = 0  #: messages it may still get
    extension: int = 0  #: messages it may hold beyond its prefetch
    pull_count: int = 0  #: how often its client asked for a message, where it gets no others
    unacked: dict[str, LogEntry] = field(default_factory=dict)  #: by ack id, in order of delivery
    logs: list[SourceLog] = field(default_factory=list)  #: that feed it
    pending: PendingMessages = field(default_factory=PendingMessages)  #: wait for credit, and are in none of its logs
    acked_count: int = 0  #: messages it acknowledged
    principal: Principal | None = None  #: for whom another broker of the cluster consumes
    slow_state: Any = None  #: a SlowConsumerState, which imports this, where a policy cares how it keeps up
    frame_prefixes: dict[str, bytes] = field(default_factory=dict)  #: destination -> first lines of its MESSAGE frames
    started: bool = False  #: nothing is dispatched before its RECEIPT
    delivered_count: int = 0
    browse_cursor: SnapshotCursor | None = None  #: the snapshot it gets, when it is a browser and no consumer
    durable: Any = None  #: a DurableSubscription, which imports this, when it consumes one
    takeover: SubscriptionIdentity | None = None  #: that its client wants, until it is granted
    owner_session: str = ""  #: the other node (its session) whose client it is; "": it is of this node
    has_remote_logs: bool = False  #: some of its logs are, or were, at home on other nodes
    retroactive: bool = False  #: asked for what topics remember
    no_local: bool = False  #: does not want what its own client sends to topics
    scanned_up_to: dict[str, int] = field(default_factory=dict)  #: log -> number up to which nothing is left for it
    bridge_eligibility: BridgeEligibility | None = (
        None  #: of the consumer of a bridge; where it has no name this is its selector, too
    )
    last_turn_by_log: dict[str, int] = field(
        default_factory=dict
    )  #: log -> the turn that it took last, where it matters who does

    def __post_init__(self) -> None:
        self.credit = self.prefetch

    @property
    def consumer_selector(self) -> Selector | None:
        """Return the selector that the consumer gave, also at the other end of a bridge."""
        return self.selector.selector if isinstance(self.selector, BridgeEligibility) else self.selector

    @property
    def is_ready(self) -> bool:
        """Return whether it may get a message now."""
        return self.credit > 0 and self.started and not self.client.is_socket_full

    def take_pending(self) -> list[LogEntry]:
        """Take the oldest messages that are in no log, as many as there is credit for."""
        return self.pending.take(len(self.pending) if self.ack_mode == "auto" else self.credit)

    # -- what it holds

    def detach_log(self, log: SourceLog) -> None:
        """Forget a log that was removed with all it held."""
        self.logs.remove(log)
        self.scanned_up_to.pop(log.name, None)
        self.last_turn_by_log.pop(log.name, None)
        for ack_id in [ack_id for ack_id, entry in self.unacked.items() if entry.log == log.name]:
            del self.unacked[ack_id]
            self.credit += 1

    def add_unacked(self, ack_id: str, entry: LogEntry) -> None:
        """Hold a delivered message until its ACK.

        Two copies of one message may bear one ack id (before STOMP 1.2).
        """
        while ack_id in self.unacked:
            ack_id += _DUPLICATE_SUFFIX
        self.unacked[ack_id] = entry

    def unacked_key(self, ack_id: str) -> str | None:
        """Return the key in `unacked` for an ack id of the client; None when it holds no such message."""
        if ack_id in self.unacked:
            return ack_id
        return next((key for key in self.unacked if self.ack_id_of(key) == ack_id), None)

    @staticmethod
    def ack_id_of(key: str) -> str:
        """Return the ack id for a key in `unacked`."""
        return key.rstrip(_DUPLICATE_SUFFIX)

    def restore_unacked(self, entries: Mapping[str, LogEntry]) -> None:
        """Hold messages again that were acknowledged in a transaction that was rolled back, ahead of later ones."""
        later, self.unacked = self.unacked, {}
        for ack_id, entry in (*entries.items(), *later.items()):
            self.add_unacked(ack_id, entry)
        self.credit -= len(entries)
