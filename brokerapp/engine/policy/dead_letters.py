"""Decide to which queue a failed message goes, and its headers there, by ActiveMQ's dead-letter strategies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    CLAIMED_ROUTE,
    FAILED_AT,
    ORIGIN,
    ORIGINAL_DELIVERY_MODE,
    ORIGINAL_EXPIRATION,
    ROUTE,
    broker_headers,
    with_broker_headers,
)
from brokerapp.model.definitions import DeadLetterStrategy
from brokerapp.model.destination import MAX_NAME, Destination
from brokerapp.model.message import Message
from brokerapp.model.settings import DiscardingSettings

DEFAULT_STRATEGY = DeadLetterStrategy()
#: Places kept of a route, the last ones: a message may die, and be tried again or moved, for ever.
MAX_ROUTE_LENGTH = 32
#: Digits that stand for the rest of a name that is too long.
_DIGITS = 32


def dead_letter_destination(
    strategy: DeadLetterStrategy, source: Destination, message: Message, *, expired: bool, durable: str = ""
) -> Destination | None:
    """Where it goes; None when it is dropped. `durable` is the durable subscription of a topic in which it failed."""
    if strategy.kind == "discarding":
        return None
    if (expired and not strategy.process_expired) or not (message.persistent or strategy.process_non_persistent):
        return None
    if is_dead_letter_queue(strategy, source):
        return None
    return _target(strategy, source, durable)


def is_dead_letter_queue(strategy: DeadLetterStrategy, source: Destination) -> bool:
    """Whether messages come to be there because they failed: what fails there again has nowhere to go."""
    if strategy.kind == "shared":
        return source == _target(strategy, source, "")
    for prefix, suffix in (
        (strategy.queue_prefix, strategy.queue_suffix), (strategy.topic_prefix, strategy.topic_suffix),
    ):  # fmt: skip
        if (prefix or suffix) and source.name.startswith(prefix) and source.name.endswith(suffix):
            return True
    return False


def _target(strategy: DeadLetterStrategy, source: Destination, durable: str) -> Destination:
    if strategy.kind == "shared":
        return Destination.parse(strategy.dead_letter_queue)
    if source.is_queue:
        name = _individual(strategy.queue_prefix, source.name, strategy.queue_suffix)
        as_queue = strategy.use_queue_for_queue_messages
    else:
        own = f".{durable}" if durable and strategy.destination_per_durable_subscriber else ""
        name = _individual(strategy.topic_prefix, source.name + own, strategy.topic_suffix)
        as_queue = strategy.use_queue_for_topic_messages
    return Destination.queue(name) if as_queue else Destination.topic(name)


def _individual(prefix: str, name: str, suffix: str) -> str:
    """A name for one source; prefix and suffix stay whole, as they tell that it is a dead-letter queue."""
    room = max(MAX_NAME - len(prefix) - len(suffix), _DIGITS + 1)
    return _within(prefix + _within(name, room) + suffix, MAX_NAME)


def _within(name: str, room: int) -> str:
    """A name of at most so many characters: the same for the same name, another for another."""
    if len(name) <= room:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: room - _DIGITS - 1]}~{digest}"


@dataclass(frozen=True, slots=True)
class DeadLetterInfo:
    """Cause, origin and time of the failure of a message."""

    cause: str
    source: Destination  #: where it died
    sent_to: str  #: where its producer sent it, STOMP form; "" when that was the source
    time_ms: int  #: since the epoch
    deliveries: int  #: to consumers, of which none used it
    consumer: str  #: client id of the last one; "" for none


def dead_letter(message: Message, death: DeadLetterInfo, strategy: DeadLetterStrategy) -> Message:
    """The message as it stands in the dead-letter queue: same id and properties, what happened recorded, no expiry.

    The headers are described in docs/dead-letters.md.
    """
    expires = death.time_ms + strategy.expiration if strategy.expiration else 0
    changed: dict[str, str | None] = {
        "expires": str(expires),
        "persistent": "true",
        ORIGIN: death.source.stomp,
        CAUSE: death.cause,
        "dlqDeliveryCount": str(death.deliveries),
        "dlqConsumer": death.consumer or None,
        FAILED_AT: str(death.time_ms),
        **route_headers(message, death.sent_to, death.source),
    }
    if message.expires:
        changed[ORIGINAL_EXPIRATION] = str(message.expires)
    if not message.persistent:
        changed[ORIGINAL_DELIVERY_MODE] = "NON_PERSISTENT"
    return message.with_headers(
        with_broker_headers(message.headers, changed), expires=expires, persistent=True, deliveries=0, is_damaged=False
    )


def route_headers(message: Message, sent_to: str, place: Destination) -> dict[str, str]:
    """Return the headers with the route of a message that leaves a destination: where it was sent and stored, in order.

    `sent_to` is where it was sent to come here, STOMP form; "" when that was here. When there are too many, each is
    named once, where it was last: whoever asks where the message ever was finds all the same. Places that it names and
    the broker did not write stay, as claims.
    """
    places = _places(broker_headers(message.headers).get(ROUTE))
    if sent_to and sent_to not in places[-1:]:
        places.append(sent_to)
    places.append(place.stomp)
    if len(places) > MAX_ROUTE_LENGTH:
        places = list(dict.fromkeys(reversed(places)))[MAX_ROUTE_LENGTH - 1 :: -1]
    way = {ROUTE: ",".join(places)}
    if claimed := _claimed(message.headers, places):
        way[CLAIMED_ROUTE] = ",".join(claimed)
    return way


def _claimed(headers: Mapping[str, str], places: list[str]) -> list[str]:
    """Where a message says to have been, each place once: as many as came with it; and where another broker had it."""
    route = None if ROUTE in broker_headers(headers) else headers.get(ROUTE)
    there = [each for each in _places(headers.get(ORIGIN)) if each not in places]
    return list(dict.fromkeys([*_places(headers.get(CLAIMED_ROUTE)), *_places(route), *there]))


def _places(text: str | None) -> list[str]:
    return [each for each in (text or "").split(",") if each]


def is_discarded(plugin: DiscardingSettings, source: Destination) -> bool:
    """Whether ActiveMQ's discardingDLQBrokerPlugin drops what fails at this destination."""
    if plugin.drop_all:
        return True
    if source.is_temporary and (plugin.drop_temporary_queues if source.is_queue else plugin.drop_temporary_topics):
        return True
    return any(re.fullmatch(pattern, source.name) for pattern in plugin.drop_only)
