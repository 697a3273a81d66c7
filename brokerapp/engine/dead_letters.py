"""Dead letters: where a message that failed goes, and what it looks like there. ActiveMQ's dead letter strategies."""

from __future__ import annotations

from brokerapp.definitions import DeadLetterStrategy
from brokerapp.destination import Destination
from brokerapp.message import Message

DEFAULT_STRATEGY = DeadLetterStrategy()


def dead_letter_destination(
    strategy: DeadLetterStrategy, source: Destination, message: Message, *, expired: bool, durable: str = ""
) -> Destination | None:
    """Where it goes; None when it is dropped. `durable` is the durable subscription of a topic in which it failed."""
    if strategy.kind == "discarding":
        return None
    if (expired and not strategy.process_expired) or not (message.persistent or strategy.process_non_persistent):
        return None
    target = _target(strategy, source, durable)
    return None if target == source else target


def _target(strategy: DeadLetterStrategy, source: Destination, durable: str) -> Destination:
    if strategy.kind == "shared":
        return Destination.parse(strategy.dead_letter_queue)
    if source.is_queue:
        name = strategy.queue_prefix + source.name + strategy.queue_suffix
        as_queue = strategy.use_queue_for_queue_messages
    else:
        own = f".{durable}" if durable and strategy.destination_per_durable_subscriber else ""
        name = strategy.topic_prefix + source.name + own + strategy.topic_suffix
        as_queue = strategy.use_queue_for_topic_messages
    return Destination.queue(name) if as_queue else Destination.topic(name)


def dead_letter(
    message: Message, source: Destination, cause: str, strategy: DeadLetterStrategy, now_ms: int
) -> Message:
    """The message as it stands in the dead-letter queue.

    Same id and properties, the cause recorded, no expiry of its own.
    """
    expires = now_ms + strategy.expiration if strategy.expiration else 0
    changed = {"expires": str(expires), "persistent": "true", "original-destination": source.stomp}
    changed["dlqDeliveryFailureCause"] = cause
    if message.expires:
        changed["originalExpiration"] = str(message.expires)
    if not message.persistent:
        changed["originalDeliveryMode"] = "NON_PERSISTENT"
    return message.with_headers(changed, expires=expires, persistent=True)
