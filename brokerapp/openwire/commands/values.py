"""Values that are parts of commands: destinations, filters of networks, exceptions; and what all commands have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.commands.ids import BrokerId
from brokerapp.openwire.commands.wire_fields import boolean, cached, int32, nested, string


class DataStructure(Protocol):
    """What has a number on the wire: a command, or a value."""

    @property
    def data_type(self) -> int:
        """The number of the type, as in data_types."""


@dataclass(slots=True)
class BaseCommand:
    """What all commands begin with: their number, by which a response names them, and whether one is awaited."""

    command_id: int = int32()
    response_required: bool = boolean()


@dataclass(frozen=True, slots=True)
class OpenWireDestination:
    """A queue or topic, of any length of life: `kind` is its number on the wire, QUEUE to TEMP_TOPIC."""

    kind: int = t.QUEUE
    physical_name: str | None = string()

    @property
    def data_type(self) -> int:
        """The number of the type: the kind."""
        return self.kind

    @property
    def is_topic(self) -> bool:
        """Whether it is a topic, temporary ones included."""
        return self.kind in (t.TOPIC, t.TEMP_TOPIC)

    @property
    def is_temporary(self) -> bool:
        """Whether it lives no longer than its connection."""
        return self.kind in (t.TEMP_QUEUE, t.TEMP_TOPIC)

    def __str__(self) -> str:
        return f"{_SCHEMES.get(self.kind, self.kind)}://{self.physical_name}"


_SCHEMES = {t.QUEUE: "queue", t.TOPIC: "topic", t.TEMP_QUEUE: "temp-queue", t.TEMP_TOPIC: "temp-topic"}


@dataclass(slots=True)
class NetworkBridgeFilter:
    """What a bridge asks its source to leave out: what came over too many brokers, or from the one named."""

    data_type: ClassVar[int] = t.NETWORK_BRIDGE_FILTER
    network_ttl: int = int32(until=9)
    network_broker_id: BrokerId | None = cached(t.BROKER_ID)
    message_ttl: int = int32(since=10)
    consumer_ttl: int = int32(since=10)


@dataclass(slots=True)
class DiscoveryEvent:
    """A broker that was found, or is there no longer."""

    data_type: ClassVar[int] = t.DISCOVERY_EVENT
    service_name: str | None = string()
    broker_name: str | None = string()


@dataclass(slots=True)
class SubscriptionInfo:
    """A durable subscription, as its broker stores it."""

    data_type: ClassVar[int] = t.SUBSCRIPTION_INFO
    client_id: str | None = string()
    destination: OpenWireDestination | None = cached(*t.DESTINATIONS)
    selector: str | None = string()
    subscription_name: str | None = string()
    subscribed_destination: OpenWireDestination | None = nested(*t.DESTINATIONS, since=3)
    no_local: bool = boolean(since=11)


@dataclass(frozen=True, slots=True)
class StackElement:
    """One line of a Java stack trace."""

    class_name: str | None = None
    method_name: str | None = None
    file_name: str | None = None
    line_number: int = 0


@dataclass(frozen=True, slots=True)
class WireThrowable:
    """A Java exception: the name of its class, its message, what caused it.

    The stack trace of a received one is empty: nobody reads those of other machines. `stack` and `cause` are only
    sent where both sides agreed upon stack traces.
    """

    class_name: str | None = None
    message: str | None = None
    stack: tuple[StackElement, ...] = ()
    cause: WireThrowable | None = None

    def __str__(self) -> str:
        return f"{self.class_name}: {self.message}"
