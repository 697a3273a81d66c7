"""Represent a connected client, with its open transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from math import inf
from typing import Any, Protocol

from brokerapp.engine.clients.quotas import QuotaShare
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.authorization import ANONYMOUS, Principal
from brokerapp.engine.routing.bridge_eligibility import BridgeFilterCounts
from brokerapp.engine.routing.route_walk import Route
from brokerapp.errors import BrokerError, RequestRefused, TransactionNotFound
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message

#: Open transactions of one client, and what one may hold: bounds on what a peer can make us keep.
MAX_TRANSACTIONS = 100
MAX_TRANSACTION_ACTIONS = 100_000
#: Bytes of messages in all open transactions of one client, and copies in queues that one may make. A COMMIT is one
#: call of the store, in which everybody else waits: this many take it some 0.3 seconds (docs/decisions/0011).
MAX_TRANSACTION_BYTES = 64 * 1024 * 1024
MAX_TRANSACTION_COPIES = 20_000
#: Bytes of sends without room at which a bridge is not read from, as its other messages go on until then; nor a client
#: of OpenWire, whose acknowledgements may be what makes room.
MAX_BLOCKED_BYTES = 8 * 1024 * 1024


class ClientSink(Protocol):
    """Where a client is told things. Implemented by the protocol's connection; nothing here waits."""

    def deliver(self, subscription: Subscription, entries: Sequence[LogEntry], ack_ids: Sequence[str]) -> None:
        """Messages, with what the client acknowledges each by; without ids it need not."""

    def end_of_browse(self, subscription: Subscription) -> None:
        """A browser has got all of its snapshot."""

    def receipts(self, ids: Sequence[str]) -> None:
        """Confirm the requests with these receipt ids."""

    def refuse(self, error: BrokerError, receipt: str | None) -> None:
        """Report that a request was refused."""

    def flush(self) -> None:
        """Everything told so far may go out."""

    def close(self) -> None:
        """Close the connection of the client."""

    def abort(self) -> None:
        """End the connection at once, whatever it was not told yet."""

    def pause_reading(self, held: bool) -> None:
        """Do not read on from the client, or do."""

    def heart_beat_times(self) -> tuple[int, int, int]:
        """Milliseconds: between our heart-beats, between its own, and since something came from it."""


@dataclass(slots=True)
class RoutedBatch:
    """Messages that take the same route, in order; often a single one."""

    messages: list[Message]
    stored: list[bytes]  #: their stored form; empty texts where nothing is to be stored
    destination: Destination
    route: Route
    senders: list[Client] = field(default_factory=list)  #: who sent each; none: the broker itself
    receipts: list[str | None] = field(default_factory=list)
    dedup_keys: list[str] = field(default_factory=list)  #: by which the store knows messages that are repeated; or none
    given: Sequence[LogEntry] = ()  #: what consumers were given before it is stored: all of them, or none
    places: list[int] = field(default_factory=list)  #: where each was sent among those of other batches; or none

    @classmethod
    def of(cls, message: Message, destination: Destination, route: Route, sender: Client | None = None) -> RoutedBatch:
        """Return a batch of one message."""
        stored = message.stored() if route.groups else b""
        return cls([message], [stored], destination, route, [] if sender is None else [sender])

    @property
    def message(self) -> Message:
        """Return the first message: of a batch of one, the only one."""
        return self.messages[0]

    @property
    def sender(self) -> Client | None:
        """Return who sent the first message; None: the broker itself."""
        return self.senders[0] if self.senders else None

    def by_sender(self) -> list[tuple[Client | None, slice]]:
        """Return the places of messages that follow each other and have the same sender."""
        senders = self.senders
        if not senders or senders.count(senders[0]) == len(senders):
            return [(self.sender, slice(None))]
        runs: list[tuple[Client | None, slice]] = []
        start = 0
        for sender, alike in groupby(senders):
            stop = start + len(list(alike))
            runs.append((sender, slice(start, stop)))
            start = stop
        return runs

    @property
    def size(self) -> int:
        """Return the bytes of the messages."""
        return self.size_of(slice(None))

    def size_of(self, part: slice) -> int:
        """Return the bytes of these of the messages, by their places."""
        if self.route.groups:
            return sum(map(len, self.stored[part]))
        return sum([message.size for message in self.messages[part]])

    @property
    def rows(self) -> list[list[tuple[str, str, str]]]:
        """Return the copies that each of them makes, as the store is asked for them."""
        return [group.rows for group in self.route.groups]

    @property
    def appends(self) -> list[tuple[bytes, list[tuple[str, str, str]]]]:
        """Return each of them with its copies."""
        return [(stored, rows) for stored in self.stored for rows in self.rows]

    def part(self, start: int, stop: int) -> RoutedBatch:
        """Return these of the messages, by their places."""
        part = slice(start, stop)
        return RoutedBatch(
            self.messages[part], self.stored[part], self.destination, self.route, self.senders[part],
            self.receipts[part], self.dedup_keys[part], self.given[part], self.places[part],
        )  # fmt: skip

    def split(self) -> list[RoutedBatch]:
        """Return each of the messages by itself."""
        return [self.part(place, place + 1) for place in range(len(self.messages))]


def split_in_order(placed: Iterable[RoutedBatch]) -> list[RoutedBatch]:
    """Return messages of topics one by one, in the order in which they were sent."""
    parts = [part for each in placed for part in (each.split() if each.route.topics else (each,))]
    return sorted(parts, key=lambda each: each.places[0] if each.places else 0)


def persistent_first(placed: Sequence[RoutedBatch]) -> Sequence[RoutedBatch]:
    """Return the messages of a transaction; those to queues that are not persistent follow the others, as in ActiveMQ.

    JMS leaves open in which order messages of different delivery modes come. Topics get all in the order of sending.
    """
    modes = {message.persistent for each in placed if not each.route.topics for message in each.messages}
    if len(modes) < 2:
        return placed
    parts = [part for each in placed for part in each.split()]
    return sorted(parts, key=lambda each: not (each.route.topics or each.message.persistent))


def one_after_the_other(writes: Iterable[Sequence[RoutedBatch]]) -> list[RoutedBatch]:
    """Return the messages of several writes; to topics, too, those of each follow those of the one before."""
    joined: list[RoutedBatch] = []
    behind = 0
    for placed in writes:
        joined += placed
        to_topics = [each for each in placed if each.route.topics]
        for each in to_topics:
            each.places = [behind + place for place in each.places or range(len(each.messages))]
        behind = max([1 + place for each in to_topics for place in each.places], default=behind)
    return joined


@dataclass(slots=True)
class Transaction:
    """The sends, acknowledgements and jobs of an open transaction."""

    messages: list[RoutedBatch] = field(default_factory=list)
    settled: list[tuple[Subscription, str, LogEntry]] = field(default_factory=list)
    jobs: list[Callable[[], Any]] = field(
        default_factory=list
    )  #: what makes a job of each message to be delivered later
    message_count: int = 0  #: of the messages placed, once for each of their destinations
    bytes: int = 0  #: of the messages placed, and of jobs
    copy_count: int = 0  #: in queues, of the messages placed
    limit: int = MAX_TRANSACTION_ACTIONS  #: of messages and acks in it
    resendable: set[str | None] = field(default_factory=set)  #: ids of messages in it that may come again
    failure: str = ""  #: why it can only be rolled back, a clause: what was refused in it
    clients: list[Client] = field(default_factory=list)  #: who take part in it
    branch: str = ""  #: its name as a branch of a distributed transaction; "": it is none
    is_prepared: bool = False  #: it was prepared before: what a client repeats of it is done already
    joined: set[str] = field(default_factory=set)  #: sessions of other nodes where clients take part in it, too
    pending_joins: int = 0  #: questions to other nodes whether they have a part in it
    after_joining: list[Callable[[], None]] = field(default_factory=list)  #: what waits for their answers
    _settled_by_ack_id: dict[str, list[tuple[Subscription, str]]] = field(default_factory=dict, repr=False)
    _indexed: list[tuple[Subscription, str, LogEntry]] | None = field(
        default=None, repr=False
    )  # the list that is named so, up to `_named_upto`
    _indexed_count: int = 0

    def settled_as(self, ack_id: str) -> Sequence[tuple[Subscription, str]]:
        """Return the entries settled in this transaction under an ack id, with their keys, by an index."""
        if self._indexed is not self.settled:
            self._settled_by_ack_id, self._indexed, self._indexed_count = {}, self.settled, 0
        for subscription, key, _ in islice(self.settled, self._indexed_count, None):
            self._settled_by_ack_id.setdefault(subscription.ack_id_of(key), []).append((subscription, key))
        self._indexed_count = len(self.settled)
        return self._settled_by_ack_id.get(ack_id, ())


@dataclass(slots=True, eq=False)
class Client:
    """One connection's state in the broker."""

    id: str
    sink: ClientSink
    remote_address: str = ""
    client_id: str = ""
    connection_id: str = ""  #: its own name for the connection, and the beginning of those for its consumers
    has_client_id: bool = False  #: whether that is a name it gave itself
    shares_client_id: bool = False  #: whether others may have the same one
    principal: Principal = ANONYMOUS
    is_internal: bool = False  #: a part of the broker, which may do everything
    cluster_member: str = ""  #: the broker of the cluster whose link it is
    reconnect_ms: int = 0  #: how long its temporary destinations wait for it when its connection breaks
    disconnected: bool = False  #: it said good-bye
    bridge: str = ""  #: the broker whose bridge it is; "": an ordinary client
    is_duplex: bool = False  #: a bridge that takes messages to its broker, too
    bridge_connection: str = ""  #: of a bridge: which of its broker's ways to here it is
    sends_copy_per_subscriber: bool = (
        False  #: of a bridge: it brings a message of a topic once for each subscriber here
    )
    bridge_counts: BridgeFilterCounts | None = None  #: of a bridge
    protocol_version: str = ""
    is_openwire: bool = False  #: it speaks OpenWire, not STOMP
    connected_ms: int = 0
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    by_key: dict[str, Subscription] = field(default_factory=dict)  #: first part of their ack ids
    transactions: dict[str, Transaction] = field(default_factory=dict)
    quota: QuotaShare = field(default_factory=QuotaShare)  #: of what all may have under way
    pattern_count: int = 0  #: destinations with wildcards that it consumes from
    pending_writes: int = 0  #: units on their way to the store
    pending_bytes: int = 0  #: of messages in them
    is_over_quota: bool = False  #: not read from because of that
    log_limit: float = inf  #: bytes that the fullest of the logs which it sends to may hold: more may be refused
    is_stopping: bool = False  #: not read from any more, as the node stops
    #: Told the name of a branch of a distributed transaction in which it acknowledged messages when that is over. Its
    #: consumers hold them again by then, if it was rolled back.
    on_branch_ended: Callable[[str], None] = lambda _branch: None
    blocked_sends: int = 0  #: sends that found no room
    blocked_bytes: int = 0  #: of messages in them
    is_socket_full: bool = False  #: its socket takes no more for now
    sent_count: int = 0
    delivered_count: int = 0
    producing_to: set[Destination] = field(default_factory=set)  #: destinations that it sent to
    #: Destinations of the producers that it opened, by their ids; of a client that names its connection.
    producers: dict[str, list[Destination]] = field(default_factory=dict)
    temporaries: dict[tuple[DestinationKind, str], Destination] = field(
        default_factory=dict
    )  #: its own, by its names for them
    temporary_names: dict[str, str] = field(default_factory=dict)  #: how it writes them, by how others do
    last_ack_number: int = 0
    last_key: int = 0

    @property
    def is_broker(self) -> bool:
        """Whether a broker is behind it: a bridge, a link of the cluster, or a part of this one."""
        return bool(self.is_internal or self.cluster_member or self.bridge)

    @property
    def names_messages(self) -> bool:
        """Whether its ACKs name messages by their ids (before STOMP 1.2), and not deliveries."""
        return self.protocol_version != "1.2" and not self.is_openwire

    def transaction(self, name: str) -> Transaction:
        """The open transaction of this name; raises RequestRefused."""
        try:
            return self.transactions[name]
        except KeyError:
            raise TransactionNotFound(f"transaction {name!r} is not open") from None

    @property
    def transaction_bytes(self) -> int:
        """Bytes of messages in all its open transactions."""
        return sum([each.bytes for each in self.transactions.values()])

    def check_transaction_limits(
        self, transaction: Transaction, count: int = 1, size: int = 0, copies: int = 0
    ) -> None:
        """Raise RequestRefused when an open transaction may not grow by so many messages and acks, of so many bytes.

        `copies` are those in queues that all but the last of them make.
        """
        held = transaction.message_count + len(transaction.settled) + len(transaction.jobs)
        if held + count > transaction.limit:
            raise RequestRefused(f"a transaction holds at most {transaction.limit} messages and acks")
        if transaction.copy_count + copies > MAX_TRANSACTION_COPIES:
            raise RequestRefused(f"a transaction makes at most {MAX_TRANSACTION_COPIES} copies of messages in queues")
        if self.transaction_bytes + size > MAX_TRANSACTION_BYTES:
            raise RequestRefused(f"open transactions hold at most {MAX_TRANSACTION_BYTES} bytes of messages")

    def find_unacked(self, ack_id: str, subscription: str | None) -> tuple[Subscription, str] | None:
        """Find the subscription and key in `unacked` of the message that an ACK or NACK names. Raises RequestRefused.

        None when it was given to a subscription that is over, with which it went back.
        """
        first = ack_id.partition("-")[0]
        by_key = self.by_key.get(first)
        if subscription is not None:
            named = self.subscriptions.get(subscription)
            candidates = [named] if named else []
        elif by_key is not None:
            candidates = [by_key]
        else:
            candidates = list(self.subscriptions.values())
        for each in candidates:
            if (key := each.unacked_key(ack_id)) is not None:
                return each, key
        if by_key is None and subscription is None and self._was_subscription_key(first):
            return None
        raise RequestRefused(f"Unexpected ACK received for message-id [{ack_id}]: it is not waiting for one")

    def _was_subscription_key(self, text: str) -> bool:
        """Whether ack ids of one of its subscriptions, present or past, begin so."""
        return (
            text.isascii()
            and text.isdecimal()
            and len(text) <= len(str(self.last_key))
            and 0 < int(text) <= self.last_key
        )

    def on_write_started(self, size: int = 0) -> None:
        """A unit with so many bytes of messages is on its way; too many stop the reading."""
        self.pending_writes += 1
        self.pending_bytes += size
        share = self.quota
        share.pending_bytes += size
        limit = min(share.bytes, self.log_limit)
        if not self.is_over_quota and (self.pending_writes >= share.write_count or self.pending_bytes >= limit):
            self.is_over_quota = True
            self.update_reading()

    def on_write_done(self, size: int = 0) -> None:
        """Release the quota of a finished write; resume reading when half of it is free."""
        self.pending_writes -= 1
        self.pending_bytes -= size
        self.quota.pending_bytes -= size
        if (
            self.is_over_quota
            and self.pending_writes <= self.quota.write_count // 2
            and self.pending_bytes <= min(self.quota.bytes, self.log_limit) // 2
        ):
            self.is_over_quota = False
            self.update_reading()

    def update_reading(self) -> None:
        """Read on from the client, or not: see quotas.py, and producer_flow.py about sends that wait for room."""
        self.sink.pause_reading(self.is_stopping or self.is_over_quota or self._waits_for_blocked_sends)

    @property
    def _waits_for_blocked_sends(self) -> bool:
        """Whether it has to wait for its sends that found no room: its acknowledgements cannot be what makes some."""
        is_full = self.blocked_bytes >= MAX_BLOCKED_BYTES
        if self.bridge and self.is_openwire:  # it acknowledges advisories only; the other broker answers a duplex one
            return is_full and not self.is_duplex
        if self.bridge:
            return is_full and not any(each.ack_mode != "auto" for each in self.subscriptions.values())
        if self.is_openwire:  # its library consumes advisories whatever the application does
            return self.blocked_sends > 0 and (is_full or not self._holds_stored_messages)
        return self.blocked_sends > 0 and not self.subscriptions

    @property
    def _holds_stored_messages(self) -> bool:
        """Whether it may acknowledge messages of queues or durable subscriptions."""
        return any(each.unacked and each.logs for each in self.subscriptions.values())
