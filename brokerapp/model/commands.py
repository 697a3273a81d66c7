"""Define what a client can request of the broker, as plain values: sessions create commands, the broker executes them.

`receipt` is the client's word for "tell me when it is done"; None when it did not ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerapp.errors import BrokerError
from brokerapp.model.broker_path import Path
from brokerapp.model.destination import Destination


@dataclass(slots=True)
class ConnectCommand:
    """Authenticates a client, after which its session is open."""

    login: str | None
    passcode: str | None
    client_id: str | None
    shares_client_id: bool  #: with all who say so too
    headers: dict[str, str]  #: of the CONNECTED frame, but for `session`
    bridge: str | None = None  #: the broker whose bridge it is; None: it is an ordinary client
    duplex: bool = False  #: a bridge that takes messages to there, too
    cluster: str | None = None  #: what that broker was told of the cluster, whose link it is; None: it is none
    reconnect: str | None = None  #: whether, or for how long, its temporary destinations wait for it
    way: str = ""  #: of a bridge: which of its broker's ways to here it is; "": it does not say
    copies: bool = False  #: of a bridge: it brings a message of a topic once for each subscriber here
    connection_id: str = ""  #: by which its client calls the connection, and all it opens; "": the broker names them


@dataclass(frozen=True, slots=True)
class BridgedOrigin:
    """A message that another broker of the network passes on: what it was there."""

    message_id: str
    path: Path  #: the brokers it crossed, that one included
    held: tuple[str, ...] = ()  #: full names of queues bound to its topic with a copy, there or before


@dataclass(slots=True)
class SendCommand:
    """Publish one message of a batch."""

    destination: str
    properties: str  #: escaped header lines that go to consumers as they are
    body: bytes
    persistent: bool
    priority: int
    expires: int  #: milliseconds since the epoch; 0: never
    timestamp: int | None  #: milliseconds since the epoch, when the client sets it
    transaction: str | None
    receipt: str | None
    is_bytes: bool = False  #: consumers are told the body's length
    bridged_from: BridgedOrigin | None = None  #: None: it is new
    message_id: str | None = None  #: that its client gave it; None: the broker gives it one
    may_come_again: bool = False  #: its client sends it again, with the same id, when its connection broke
    sent_to: Destination | None = None  #: the list that consumers are told of; None: `destination`, where it is one
    converted: Any = None  #: what is kept with the message as `Message.converted`, if nobody changes it


@dataclass(slots=True)
class RefusedSend:
    """A frame of a batch that asks for something that cannot be."""

    error: BrokerError
    receipt: str | None


@dataclass(slots=True)
class SubscribeCommand:
    """Consume from a destination. `options` are the `activemq.*` headers, without that prefix."""

    id: str | None  #: None: named by its destination (STOMP 1.0)
    destination: str
    ack_mode: str
    selector: str | None
    browser: bool
    options: Mapping[str, str]
    receipt: str | None
    transformation: str | None = None  #: the form in which the client wants what the broker itself writes


@dataclass(slots=True)
class UnsubscribeCommand:
    """End a subscription: the one of this id or, when that is None, of this destination; or delete a durable one."""

    id: str | None
    destination: str | None
    subscription_name: str | None  #: of the durable subscription to delete
    receipt: str | None
    keep: tuple[str, ...] | None = None  #: of a bridge: delete its durable subscriptions of other names than these
    unseen: Sequence[str] = ()  #: ack ids of messages that the application never saw: they count as not delivered


@dataclass(slots=True)
class AckBatchCommand:
    """Acknowledge or reject messages, by ACKs and NACKs that came one after the other; a single one is a batch, too."""

    ack_ids: list[str]
    subscriptions: Sequence[str | None] | None = None  #: of each; None: no frame names one
    receipts: Sequence[str | None] | None = None  #: of each; None: no frame asks for one
    transaction: str | None = None  #: of all
    rejects: Sequence[bool] | None = None  #: of each: whether it is a NACK; None: no frame is

    @property
    def rows(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield of each the ack id, the subscription and the receipt."""
        nothing = [None] * len(self.ack_ids)
        return zip(self.ack_ids, self.subscriptions or nothing, self.receipts or nothing, strict=True)

    def extend(self, later: object) -> bool:
        """Take in a batch that came next; return whether that can be: both are ACKs alike, of which nobody is told."""
        if not isinstance(later, AckBatchCommand) or not (self._is_plain and later._is_plain):
            return False
        if later.transaction != self.transaction:
            return False
        self.ack_ids += later.ack_ids
        return True

    @property
    def _is_plain(self) -> bool:
        return self.receipts is None and self.subscriptions is None and self.rejects is None

    def part(self, places: Sequence[int]) -> AckBatchCommand:
        """Return those at these places, which are all ACKs or all NACKs."""
        return AckBatchCommand(
            [self.ack_ids[at] for at in places],
            self.subscriptions and [self.subscriptions[at] for at in places],
            self.receipts and [self.receipts[at] for at in places],
            self.transaction,
        )


@dataclass(slots=True)
class NackCommand:
    """Reject a message. `subscription` is None where the frame does not name it.

    `reason` is a bridge's: why the message can never cross, so that it need not be tried again.
    """

    ack_id: str
    subscription: str | None
    transaction: str | None
    receipt: str | None
    reason: str = ""


@dataclass(slots=True)
class GiveUpCommand:
    """Give up messages that a client failed to use however often it tried, or found expired."""

    ack_ids: Sequence[str]
    cause: str | None  #: why; None where the client does not say
    is_expired: bool
    receipt: str | None


@dataclass(slots=True)
class RollBackOnlyCommand:
    """Let a transaction end with its rollback only: something that the client did in it cannot be part of it."""

    transaction: str
    reason: str  #: a clause that continues "as ..."
    receipt: str | None
    is_refused: bool = False  #: the client is told at once, not only when it commits


@dataclass(slots=True)
class WindowCommand:
    """Let a subscription have more messages than its prefetch, or fewer again: what it has is acknowledged later."""

    subscription: str
    count: int  #: how many more; negative: fewer


@dataclass(slots=True)
class PrefetchCommand:
    """Let a subscription hold another number of messages."""

    subscription: str
    prefetch: int


@dataclass(slots=True)
class PullCommand:
    """Ask for one message, for a subscription that gets none by itself as its prefetch is 0."""

    subscription: str
    timeout_ms: int  #: after which the client is told that there is none; 0: it waits for ever, less: not at all


@dataclass(slots=True)
class DestinationCommand:
    """Create or delete a destination; a temporary one has a name that begins with the client's connection id."""

    destination: Destination
    is_created: bool  #: else it is deleted
    receipt: str | None


@dataclass(slots=True)
class ProducerCommand:
    """Open a producer at a destination, or a list of them, or close it; for clients that name their connections."""

    id: str
    destination: str | None  #: None: it is closed
    receipt: str | None


@dataclass(slots=True)
class BeginCommand:
    """Starts a transaction with an id that the client chose."""

    transaction: str
    receipt: str | None


@dataclass(slots=True)
class CommitCommand:
    """End a transaction: everything in it happens."""

    transaction: str
    receipt: str | None


@dataclass(slots=True)
class AbortCommand:
    """End a transaction: nothing in it happens."""

    transaction: str
    receipt: str | None


@dataclass(slots=True)
class BeginBranchCommand:
    """Start a branch of a distributed transaction, or take part in it."""

    branch: str
    receipt: str | None


@dataclass(slots=True)
class PrepareBranchCommand:
    """Keep what was done in a branch until it is committed or rolled back, whatever happens meanwhile."""

    branch: str
    receipt: str | None
    is_read_only: bool = False  #: set when it is confirmed: nothing was done in it, and it is over


@dataclass(slots=True)
class CommitBranchCommand:
    """End a branch: everything in it happens."""

    branch: str
    is_one_phase: bool  #: it need not be prepared
    receipt: str | None


@dataclass(slots=True)
class RollBackBranchCommand:
    """End a branch: nothing in it happens."""

    branch: str
    receipt: str | None


@dataclass(slots=True)
class RecoverBranchesCommand:
    """Ask for the branches that are prepared."""

    receipt: str | None
    branches: Sequence[str] = ()  #: set when it is confirmed


#: What a client asks about branches of distributed transactions.
BranchCommand = (
    BeginBranchCommand | PrepareBranchCommand | CommitBranchCommand | RollBackBranchCommand | RecoverBranchesCommand
)
#: Begins or ends a transaction.
TransactionCommand = BeginCommand | CommitCommand | AbortCommand


@dataclass(slots=True)
class SendBatchCommand:
    """Publish messages that came one after the other, and begin and end the transactions around them.

    A single one of these requests is a batch, too.
    """

    requests: list[SendCommand | TransactionCommand | RefusedSend]

    def extend(self, later: object) -> bool:
        """Take in a batch that came next; return whether that can be: it is one of requests, too."""
        if not isinstance(later, SendBatchCommand):
            return False
        self.requests += later.requests
        return True


@dataclass(slots=True)
class DisconnectCommand:
    """Ends a session; its receipt is sent before the connection is closed."""

    receipt: str | None


ClientCommand = (
    ConnectCommand
    | SendBatchCommand
    | SubscribeCommand
    | UnsubscribeCommand
    | AckBatchCommand
    | NackCommand
    | GiveUpCommand
    | RollBackOnlyCommand
    | WindowCommand
    | PrefetchCommand
    | PullCommand
    | DestinationCommand
    | ProducerCommand
    | BranchCommand
    | DisconnectCommand
)
