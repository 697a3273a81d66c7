"""Measure objectives by the rollups of the archive: attainment, error budget and burn rates."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
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
from brokerapp.engine.routing.destination_trie import matches
from brokerapp.model.destination import Destination, is_pattern
from console.broker.mirror import mirror
from console.broker.rollups import rollups
from console.objectives.targets import Measurement, Target

#: Queues that count for one objective, the first by name: more would take seconds to read.
MAX_QUEUES = 1_000
#: Seconds for which a process keeps a measurement; rollups have cells of minutes.
FRESH_SECONDS = 30
_MAX_KEPT = 200


def measure(target: Target) -> Measurement:
    """Return the measurement of a target, from a cache of FRESH_SECONDS."""
    return _measured(str(rollups().path), target, int(time.time()) // FRESH_SECONDS)


@lru_cache(_MAX_KEPT)
def _measured(_path: str, target: Target, number: int) -> Measurement:
    dead = {str(each.destination) for each in mirror().picture.stats.values() if each.destination.is_queue and each.DLQ}
    return measure_at(rollups(), target, (number + 1) * FRESH_SECONDS, dead)


def measure_at(past: RollupQueries, target: Target, now: int, dead_letter_queues: Collection[str] = ()) -> Measurement:
    """Measure a target over the period that ends now.

    Wildcards do not cover `dead_letter_queues`, in native form, nor queues with the name of one: nobody consumes them.
    """
    found = [name for name in past.destinations() if _is_covered(target.pattern, name, dead_letter_queues)]
    names = found[:MAX_QUEUES]
    late = _overdue(past, names, target.seconds, now)

    def counted(seconds: int) -> Outcomes:
        return replace(past.outcomes(_cells(now - seconds, now), names, target.seconds), overdue=late)

    rates = {window: burn_rate(counted(window), target.percent) for window in (*FAST, *SLOW)}
    return Measurement(target, len(names), len(found) - len(names), counted(target.days * DAY), rates)


def _is_covered(pattern: str, name: str, dead_letter_queues: Collection[str]) -> bool:
    destination = Destination.parse(name)
    if not destination.is_queue or not matches(pattern, destination.name):
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
