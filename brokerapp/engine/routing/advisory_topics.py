"""Names of the topics on which the broker tells about itself. Pure.

`ActiveMQ.Advisory.Connection`, `ActiveMQ.Advisory.Queue`, or, of one destination, the event, the destination's kind and
its name: `ActiveMQ.Advisory.Consumer.Queue.orders`.
"""

from __future__ import annotations

from brokerapp.model.destination import SEPARATOR, Destination, DestinationKind

#: All advisory topics begin so.
PREFIX = "ActiveMQ.Advisory."
#: All of them, as a pattern.
ALL = PREFIX + ">"

#: What happens to connections and to the broker itself has a topic each.
CONNECTION, MASTER_BROKER, NETWORK_BRIDGE = (
    f"{PREFIX}{each}" for each in ("Connection", "MasterBroker", "NetworkBridge")
)
#: A message that another broker refused (advisoryForFailedForward of a network connector).
FORWARD_FAILURE = f"{NETWORK_BRIDGE}.ForwardFailure"
#: A destination that comes to exist, or ceases to.
OF_KIND = {
    DestinationKind.QUEUE: PREFIX + "Queue",
    DestinationKind.TOPIC: PREFIX + "Topic",
    DestinationKind.TEMP_QUEUE: PREFIX + "TempQueue",
    DestinationKind.TEMP_TOPIC: PREFIX + "TempTopic",
}

CONSUMER, PRODUCER = "Consumer", "Producer"
VIRTUAL_CONSUMER = "VirtualDestination.Consumer"
#: Our own, for bridges: the consumer of a bridge is there for others than when it began.
BRIDGE_CONSUMER = "BridgeConsumer"
EXPIRED, DEAD_LETTERED, NO_CONSUMER = "Expired", "MessageDLQd", "NoConsumer"
DELIVERED, DISPATCHED, CONSUMED, DISCARDED = (
    "MessageDelivered", "MessageDispatched", "MessageConsumed", "MessageDiscarded",
)  # fmt: skip
SLOW_CONSUMER, FAST_PRODUCER, FULL = "SlowConsumer", "FastProducer", "FULL"
#: Events that have a topic for each destination.
EVENTS = (
    CONSUMER, PRODUCER, EXPIRED, DEAD_LETTERED, NO_CONSUMER, DELIVERED, DISPATCHED, CONSUMED, DISCARDED, SLOW_CONSUMER,
    FAST_PRODUCER, FULL,
)  # fmt: skip

#: What stands for a comma, which separates destinations, in the name of a topic.
_COMMA = "&sbquo;"


def topic_of(event: str, *destinations: Destination) -> str:
    """The topic that tells of such events at a destination, or at a list that one consumer named."""
    first, *others = destinations
    name = _COMMA.join([first.physical.name, *(str(each.physical) for each in others)])
    return SEPARATOR.join((PREFIX + event, "Queue" if first.is_queue else "Topic", name))


def is_advisory(destination: Destination) -> bool:
    """Whether a destination is an advisory topic, or a pattern of nothing else."""
    return destination.kind is DestinationKind.TOPIC and destination.name.startswith(PREFIX)
