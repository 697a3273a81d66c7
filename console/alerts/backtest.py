"""The past of a rule: when it would have fired, by what the history keeps. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from analytics.model.traffic_comparison import HOUR, TrafficHour
from brokerapp.model.destination import Destination
from brokerapp.model.time_series import BrokerPoint, DestinationPoint
from console.alerts.metrics import LATELY_SECONDS, AlertMetric
from console.alerts.readings import BROKER, COUNTED_LATELY, OF_BROKER, OF_OBJECTIVE, OF_PATTERN
from console.alerts.rules import OBJECTIVE_PREFIX, AlertCondition
from console.objectives.targets import Measurement


@dataclass(frozen=True, slots=True)
class AlertEpisode:
    """A time in which a rule would have fired: seconds since the epoch, and the worst number in it."""

    subject: str
    fired: int
    ended: int | None  #: None: it lasts
    worst: float
    detail: str = ""  #: what was observed and expected, where the number does not say it


#: A moment and the number then; None: there was none that a rule could be broken by.
Sample = tuple[int, float | None]


def replay(
    rule: AlertCondition,
    destinations: Mapping[Destination, Sequence[DestinationPoint]],
    looked: Sequence[BrokerPoint],
    step: int,
) -> list[AlertEpisode]:
    """Return when a rule would have fired over recorded points, `step` seconds apart; the newest episode first."""
    if rule.description.of_broker:
        read = OF_BROKER[rule.metric]
        found = list(_episodes(rule, BROKER, ((each.at, read(each)) for each in looked)))
    else:
        found = [
            episode
            for destination, points in destinations.items()
            for episode in _episodes(rule, str(destination), _past_of(rule.metric, points, looked, step))
        ]
    return sorted(found, key=lambda each: -each.fired)


def replay_hours(rule: AlertCondition, hours: Mapping[str, Sequence[TrafficHour]]) -> list[AlertEpisode]:
    """Return when a rule on the weekly pattern would have fired, the newest first.

    An hour is judged from its end on, until the next one ends.
    """
    deviation = OF_PATTERN[rule.metric]
    found = []
    for subject, compared in hours.items():
        samples = ((each.start + after, float(deviation(each))) for each in compared for after in (HOUR, 2 * HOUR - 1))
        for episode in _episodes(rule, subject, samples):
            within = [
                each
                for each in compared
                if each.start + HOUR >= episode.fired - rule.hold and (not episode.ended or each.start < episode.ended)
            ]
            worst = max(within, key=deviation)
            found.append(replace(episode, detail=str(worst)))
    return sorted(found, key=lambda each: -each.fired)


def replay_objective(
    rule: AlertCondition, name: str, measured: Iterable[tuple[int, Measurement]]
) -> list[AlertEpisode]:
    """Return when a rule would have fired for an objective, by its measurements of the past, in order."""
    read = OF_OBJECTIVE[rule.metric]
    return list(_episodes(rule, f"{OBJECTIVE_PREFIX}{name}", ((at, read(found)) for at, found in measured)))


def _past_of(
    metric: AlertMetric, points: Sequence[DestinationPoint], looked: Sequence[BrokerPoint], step: int
) -> Iterator[Sample]:
    by_time = {each.at: each for each in points}
    standing = DestinationPoint(0, 0, 0, 0, 0)
    if points:
        first = points[0]
        standing = first._replace(pending=max(0, first.pending - first.arrived + first.left))
    recent: list[DestinationPoint] = []
    for whole in looked:
        standing = by_time.get(whole.at) or DestinationPoint(whole.at, standing.pending, 0, 0, standing.consumers)
        recent.append(standing)
        yield whole.at, _reading_of_past(metric, standing, recent, step)


def _reading_of_past(
    metric: AlertMetric, now: DestinationPoint, recent: list[DestinationPoint], step: int
) -> float | None:
    if metric in COUNTED_LATELY:
        count = COUNTED_LATELY[metric]
        lately = itertools.takewhile(lambda each: each.at > now.at - LATELY_SECONDS, reversed(recent))
        return float(sum(map(count, lately)))
    match metric:
        case AlertMetric.DEPTH | AlertMetric.BACKLOG:
            return float(now.pending)
        case AlertMetric.NO_CONSUMER:
            return None if now.consumers else float(now.pending)
        case AlertMetric.CONSUMERS:
            return float(now.consumers)
        case AlertMetric.RATE_IN:
            return now.arrived / step
        case AlertMetric.RATE_OUT:
            return now.left / step
        case AlertMetric.OLDEST:
            return _age_of_past(now, recent)
        case AlertMetric.OFFLINE | AlertMetric.CONSUMER_GONE:
            return _without_consumer(recent)
    return None


def _without_consumer(recent: Sequence[DestinationPoint]) -> float | None:
    """Return for how many seconds there was no consumer, as far as the history goes back."""
    alone = list(itertools.takewhile(lambda each: not each.consumers, reversed(recent)))
    return float(alone[0].at - alone[-1].at) if alone else None


def _age_of_past(now: DestinationPoint, recent: list[DestinationPoint]) -> float | None:
    """Estimate the age of the oldest message in seconds, from the arrivals up to a point.

    Messages leave in order: the oldest arrived when the last `pending` messages began to arrive.
    """
    missing = now.pending
    if not missing:
        return None
    for each in reversed(recent):
        missing -= each.arrived
        if missing <= 0:
            return float(now.at - each.at)
    return float(now.at - recent[0].at)


def _episodes(rule: AlertCondition, subject: str, samples: Iterable[Sample]) -> Iterator[AlertEpisode]:
    since: int | None = None
    fired: int | None = None
    worst = 0.0
    for at, value in samples:
        if value is None or not rule.is_broken(value):
            if fired is not None:
                yield AlertEpisode(subject, fired, at, worst)
            since = fired = None
            continue
        if since is None:
            since, worst = at, value
        worst = min(worst, value) if rule.below else max(worst, value)
        if fired is None and at - since >= rule.hold:
            fired = since + rule.hold  # between two samples, where it would have been judged
    if fired is not None:
        yield AlertEpisode(subject, fired, None, worst)
