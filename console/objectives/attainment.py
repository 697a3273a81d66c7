"""Measure objectives by the rollups of the archive: attainment, error budget and burn rates."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from analytics.model.service_level import (
    DAY,
    FAST,
    HOUR,
    MINUTE,
    SLOW,
    Outcomes,
    burn_rate,
    cells_between,
    overdue,
)
from analytics.rollups.queries import RollupQueries
from analytics.rollups.store import RETENTION_SECONDS
from brokerapp.core.dispatch.counters import DEAD_LETTER_QUEUES
from brokerapp.engine.routing.destination_trie import covers, matches
from brokerapp.model.destination import Destination, DestinationKind, is_pattern
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.broker.gateway import gateway
from console.broker.mirror import mirror
from console.broker.rollups import rollups
from console.objectives.targets import Measurement, Target

#: Queues or subscriptions that count for one objective, the first by name: more would take seconds to read.
MAX_COUNTED = 1_000
#: Seconds for which a process keeps a measurement; rollups have cells of minutes.
FRESH_SECONDS = 30
_MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class KnownDestinations:
    """What the broker says of the destinations that are recorded."""

    dead_letter_queues: Collection[str] = ()  #: in native form
    subscriptions: Mapping[str, SubscriptionIdentity] = field(default_factory=dict)  #: by their logs, in native form


_NOTHING_KNOWN = KnownDestinations()


def known_destinations(past: RollupQueries, target: Target) -> KnownDestinations:
    """Ask the broker for what decides which destinations count for a target. Raises BrokerError."""
    if not target.of_subscriptions:
        stats = mirror().picture.stats.values()
        return KnownDestinations({str(each.destination) for each in stats if each.destination.is_queue and each.DLQ})
    recorded = map(Destination.parse, past.destinations())
    logs = [each for each in recorded if each.kind is DestinationKind.SUBSCRIPTION]
    named = gateway().run(gateway().admin.peers.named(logs)) if logs else {}
    return KnownDestinations(subscriptions={str(log): identity for log, identity in named.items()})


def measure(target: Target) -> Measurement:
    """Return the measurement of a target, from a cache of FRESH_SECONDS. Raises BrokerError."""
    return _measured(str(rollups().path), target, int(time.time()) // FRESH_SECONDS)


@lru_cache(_MAX_KEPT)
def _measured(_path: str, target: Target, number: int) -> Measurement:
    past = rollups()
    return measure_at(past, target, (number + 1) * FRESH_SECONDS, known_destinations(past, target))


def measure_at(past: RollupQueries, target: Target, now: int, known: KnownDestinations = _NOTHING_KNOWN) -> Measurement:
    """Measure a target over the period that ends now."""
    found = counted_destinations(past, target, known)
    names = found[:MAX_COUNTED]
    late = _overdue(past, names, target.seconds, now)

    def counted(seconds: int) -> Outcomes:
        return replace(past.outcomes(_cells(now - seconds, now), names, target.seconds), overdue=late)

    rates = {window: burn_rate(counted(window), target.percent) for window in (*FAST, *SLOW)}
    return Measurement(target, len(names), len(found) - len(names), counted(target.days * DAY), rates)


def counted_destinations(past: RollupQueries, target: Target, known: KnownDestinations) -> list[str]:
    """Return the recorded queues or subscriptions that count for a target, in native form.

    Wildcards do not cover dead-letter queues, nor queues with the name of one: nobody consumes them. Subscriptions that
    were deleted do not count: nobody knows their topics any more.
    """
    if target.of_subscriptions:
        subscriptions = known.subscriptions
        return [name for name in past.destinations() if name in subscriptions and _is_of(target, subscriptions[name])]
    return [name for name in past.destinations() if _is_covered(target.pattern, name, known.dead_letter_queues)]


def _is_of(target: Target, subscription: SubscriptionIdentity) -> bool:
    as_written = f"{subscription.client_id}:{subscription.name}" if subscription.client_id else subscription.name
    if not subscription.durable or target.subscription not in ("", as_written, subscription.short_name):
        return False
    return all(covers(target.pattern, topic.physical.name) for topic in subscription.topics)


def _is_covered(pattern: str, name: str, dead_letter_queues: Collection[str]) -> bool:
    destination = Destination.parse(name)
    if destination.kind is not DestinationKind.QUEUE or not matches(pattern, destination.name):
        return False
    is_dead = name in dead_letter_queues or DEAD_LETTER_QUEUES.fullmatch(destination.name) is not None
    return not (is_dead and is_pattern(pattern))


def _cells(start: int, now: int) -> Mapping[int, Sequence[int]]:
    return cells_between(start, now, now - RETENTION_SECONDS[MINUTE] + MINUTE)


def _overdue(past: RollupQueries, names: list[str], seconds: int, now: int) -> int:
    """Return how many messages wait longer than allowed, at least; recorded depths are up to a minute old."""
    depths = past.depths_before(now, names)
    held = [name for name, depth in depths.items() if depth]
    arrived: dict[str, int] = {}
    width = MINUTE if seconds <= DAY else HOUR
    for _, name, came, _, _ in past.flows(now - seconds - MINUTE, now, width, held):
        arrived[name] = arrived.get(name, 0) + came
    return sum(overdue(depths[name], arrived.get(name, 0)) for name in held)
