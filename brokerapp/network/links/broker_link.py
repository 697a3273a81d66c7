"""What a bridge asks of its connection to a broker, whatever protocol that speaks.

Messages have the form in which Sluice stores them, wherever they come from: header lines of STOMP, and the JMS form
(brokerapp/model/jms/form.py) of those that JMS clients sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from brokerapp.errors import BrokerError
from brokerapp.model.broker_path import Path
from brokerapp.model.destination import Destination
from brokerapp.network.links.remote_consumers import ConsumerEvent


class BridgeConnectionLost(BrokerError):
    """The connection of a bridge could not be made, or ended; the text is the reason."""

    code = "link-lost"


@dataclass(frozen=True, slots=True)
class BridgeLogin:
    """What a bridge says of itself when it connects to a broker."""

    broker: str  #: whose bridge it is
    client_id: str
    way: str  #: which of its connections it is: a former one of this name, dead perhaps, yields
    sends_copies: bool = False  #: without conduit subscriptions: one for each consumer
    duplex: bool = False
    user: tuple[str, str] | None = None  #: name and password


@dataclass(frozen=True, slots=True)
class BridgeSubscription:
    """What a bridge consumes at its source."""

    id: str
    destination: Destination
    to: str  #: the broker for whose consumers it is
    message_ttl: int  #: bridges that a message may cross
    path: Path  #: of the demand: the brokers from the source to the nearest of those consumers
    prefetch: int
    priority: int = 0
    selector: str | None = None
    consumers: frozenset[str] = frozenset()  #: those that it is for, wherever they are
    suppresses_duplicates: bool = False  #: it stands aside where another bridge serves one of them
    excluded: tuple[str, ...] = ()  #: names and patterns within its own that it is to leave alone
    durable_name: str | None = None


@dataclass(slots=True)
class BridgedMessage:
    """A message that a source gives to a bridge."""

    subscription: str
    ack: str  #: by which the source knows it
    destination: str  #: in STOMP's form
    id: str
    headers: dict[str, str]  #: of the message, without what is about its delivery
    body: bytes
    path: Path = ()  #: the brokers that it crossed
    bound_queues: tuple[str, ...] = ()  #: queues, bound to its topic, that hold a copy of it

    @property
    def is_persistent(self) -> bool:
        """Return whether its sender wants it kept."""
        return self.headers.get("persistent") == "true"


@dataclass(slots=True)
class OutgoingMessage:
    """A message as a target gets it: headers of a SEND, and what is no header over OpenWire."""

    headers: dict[str, str]
    body: bytes
    path: Path = ()
    is_compressed: bool = False


@dataclass(frozen=True, slots=True)
class LinkEvents:
    """Who is told of what happens on a link."""

    on_receipt: Callable[[str], None]  #: the broker did what was sent with this receipt
    on_refused: Callable[[str, str], None]  #: it does not: receipt, or "", and the reason
    on_writable_changed: Callable[[bool], None]  #: whether it takes more for now


class BrokerLink(Protocol):
    """The connection of a bridge to a broker. Nothing here waits."""

    @property
    def remote(self) -> str:
        """The name of the broker."""

    @property
    def protocol(self) -> str:
        """What it speaks, for operators: "STOMP" or "OpenWire"."""

    @property
    def lost(self) -> asyncio.Future[str]:
        """Done when the connection is over: why."""

    @property
    def is_sluice(self) -> bool:
        """Whether the broker is a Sluice: it hears for whom subscriptions are, and tells whom those of bridges are."""

    @property
    def recognizes_repeated(self) -> bool:
        """Whether the broker knows by its id a message that it is sent again."""

    def listen(self, events: LinkEvents) -> None:
        """Have these told from now on."""

    # -- as a source

    def subscribe(self, wanted: BridgeSubscription, told: Callable[[BridgedMessage], None], receipt: str) -> None:
        """Consume; of a subscription that is there already: say for whom it is now, where that can be said."""

    def unsubscribe(self, id: str) -> None:
        """End a subscription. What it was given and did not acknowledge goes back."""

    def delete_durable(self, name: str) -> None:
        """Delete a durable subscription that nobody consumes."""

    def keep_durables(self, names: Collection[str]) -> None:
        """Delete the durable subscriptions of this bridge but those of these names, where the broker can do that."""

    def ack(self, ids: Sequence[str], receipt: str | None = None) -> None:
        """Acknowledge messages; the receipt comes when that is stored."""

    def reject(self, id: str, why: str) -> None:
        """Give up a message, which becomes a dead letter at the source."""

    # -- as a target

    def follow_consumers(self, id: str, topics: Sequence[str], told: Callable[[ConsumerEvent], None]) -> None:
        """Hear of consumers by the advisories of these topics."""

    def prepare(
        self, message: BridgedMessage, destination: str, path: Path, bound_queues: Sequence[str], *, compressed: bool
    ) -> OutgoingMessage:
        """Return a message as the broker takes it, which crossed this path."""

    def excess_of(self, outgoing: OutgoingMessage, message: BridgedMessage, receipt: str | None) -> str:
        """Return why a message is too long for the broker; "" when it is not."""

    def send(self, outgoing: OutgoingMessage, receipt: str | None) -> None:
        """Write a message, at the end of this tick."""

    # -- the connection

    def pause_reading(self, held: bool) -> None:
        """Read nothing more from it for now, or do."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""

    def close(self, why: str = "closed") -> None:
        """Flush and close the connection, with a reason."""
