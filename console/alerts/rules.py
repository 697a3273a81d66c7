"""Alert rules: what each metric reads, when a rule is broken, and what follows from how long it was. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from analytics.words import short
from brokerapp.destination import ANY_REST, Destination, Kind
from brokerapp.engine.destination_map import matches
from brokerapp.history import Point, Whole
from brokerapp.snapshot import DestinationStats
from console import figures
from console.live.picture import Picture
from console.rights import Scope

#: What a rule of the whole broker is about.
BROKER = "broker"
#: Destinations that one rule has open at a time; the worst come first.
MAX_OPEN = 100
#: Seconds over which the growth of dead letters is counted.
GROWTH_SECONDS = 600


class Metric(StrEnum):
    """What a rule looks at."""

    DEPTH = "depth"
    OLDEST = "oldest"
    NO_CONSUMER = "no-consumer"
    DEAD = "dead-letters"
    RATE_IN = "rate-in"
    RATE_OUT = "rate-out"
    CONSUMERS = "consumers"
    PRODUCERS = "producers"
    IN_FLIGHT = "in-flight"
    STORE = "store"
    MEMORY = "memory"
    CONNECTIONS = "connections"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A metric as a form and a sentence have it."""

    label: str
    unit: str
    explanation: str
    of_broker: bool = False
    kinds: tuple[Kind, ...] = (Kind.QUEUE,)
    noun: str = ""  #: within a sentence, where the label makes none
    is_kept: bool = True  #: whether the history holds it, so that a rule can be tried on the past

    @property
    def said(self) -> str:
        """What it is called within a sentence."""
        return self.noun or self.label.lower()


_BOTH = (Kind.QUEUE, Kind.TOPIC)

MEANINGS: dict[Metric, Meaning] = {
    Metric.DEPTH: Meaning("Depth", "messages", "Messages pending in a queue"),
    Metric.OLDEST: Meaning("Oldest message", "s", "How long the first message of a queue waits"),
    Metric.NO_CONSUMER: Meaning(
        "Nobody consumes",
        "messages",
        "Messages pending in a queue without any consumer",
        noun="depth without a consumer",
    ),
    Metric.DEAD: Meaning(
        "Dead letters",
        "messages",
        "By how many a dead-letter queue grew within ten minutes",
        noun="growth of dead letters",
    ),
    Metric.RATE_IN: Meaning("Rate in", "msg/s", "Messages a second that arrive", kinds=_BOTH),
    Metric.RATE_OUT: Meaning("Rate out", "msg/s", "Messages a second that leave", kinds=_BOTH),
    Metric.CONSUMERS: Meaning(
        "Consumers", "consumers", "Who consumes, durable subscriptions online included", kinds=_BOTH
    ),
    Metric.PRODUCERS: Meaning(
        "Producers", "producers", "Connections that sent here and are still open", kinds=_BOTH, is_kept=False
    ),
    Metric.IN_FLIGHT: Meaning(
        "In flight",
        "messages",
        "Handed to consumers and not acknowledged yet",
        noun="number in flight",
        is_kept=False,
    ),
    Metric.STORE: Meaning("Store", "%", "How full the store is, of its limit", of_broker=True),
    Metric.MEMORY: Meaning(
        "Memory", "%", "What the store takes of its machine's memory", of_broker=True, is_kept=False
    ),
    Metric.CONNECTIONS: Meaning("Connections", "connections", "STOMP connections that are open", of_broker=True),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """When somebody wants to be told. `threshold` in the unit of the metric."""

    metric: Metric
    threshold: float
    pattern: str = ">"  #: of destinations, as a scope is written; of no meaning for the whole broker
    below: bool = False  #: broken when the number is less, not when it is more
    hold: int = 0  #: seconds it must be broken until it fires

    @property
    def meaning(self) -> Meaning:
        """What its metric is."""
        return MEANINGS[self.metric]

    @property
    def is_about(self) -> Callable[[Destination], bool]:
        """A predicate that says whether a destination is one of its."""
        scope = Scope.parse(self.pattern)
        kinds = [each for each in self.meaning.kinds if scope.kind in (None, each)]
        return lambda destination: destination.kind in kinds and matches(scope.pattern, destination.name)

    @property
    def places(self) -> tuple[Destination, ...]:
        """The patterns it is about; of the whole broker: everything."""
        return (Scope(ANY_REST) if self.meaning.of_broker else Scope.parse(self.pattern)).destinations

    def is_broken(self, value: float) -> bool:
        """Whether this number is one to be told of."""
        return value < self.threshold if self.below else value > self.threshold

    @property
    def _which(self) -> str:
        every = "queue" if self.meaning.kinds == (Kind.QUEUE,) else "queue or topic"
        return f"any {every}" if self.pattern == ANY_REST else self.pattern

    def __str__(self) -> str:
        """`depth of orders.> above 100 messages for 5 min`"""
        meaning = self.meaning
        of = "" if meaning.of_broker else f" of {self._which}"
        sense = "below" if self.below else "above"
        held = f" for {figures.span(self.hold)}" if self.hold else ""
        return f"{meaning.said}{of} {sense} {amount(self.metric, self.threshold)}{held}"


#: Units that are nouns, so that one of them has no s.
_COUNTED = ("messages", "connections", "consumers", "producers")


def amount(metric: Metric, value: float) -> str:
    """A number of a metric with its unit: `1,204 messages`, `4 min`, `80 %`."""
    unit = MEANINGS[metric].unit
    if unit == "s":
        return figures.span(value)
    if unit in _COUNTED:
        return figures.counted(round(value), unit.removesuffix("s"))
    text = figures.whole(value) if unit != "msg/s" else figures.rate(value)
    return f"{text} {unit}"


@dataclass(frozen=True, slots=True)
class Readings:
    """What rules are judged by. `oldest`: when the first message came, ms since the epoch; `recent`: points of the
    last minutes, for the growth of dead letters.
    """

    now: float
    picture: Picture
    oldest: Mapping[Destination, int] = field(default_factory=dict)
    recent: Mapping[Destination, Sequence[Point]] = field(default_factory=dict)


Reading = Callable[[DestinationStats, Readings], float | None]


def _age(stats: DestinationStats, readings: Readings) -> float | None:
    came = readings.oldest.get(stats.destination)
    return max(0.0, readings.now - came / 1000) if came and stats.QueueSize else None


def _growth(stats: DestinationStats, readings: Readings) -> float | None:
    if not stats.DLQ:
        return None
    recent = [each for each in readings.recent.get(stats.destination, ()) if each.at > readings.now - GROWTH_SECONDS]
    return float(sum(each.arrived for each in recent))


_OF_DESTINATION: dict[Metric, Reading] = {
    Metric.DEPTH: lambda stats, _: stats.QueueSize,
    Metric.OLDEST: _age,
    Metric.NO_CONSUMER: lambda stats, _: None if stats.ConsumerCount else stats.QueueSize,
    Metric.DEAD: _growth,
    Metric.RATE_IN: lambda stats, readings: readings.picture.rates(stats.destination).enqueue,
    Metric.RATE_OUT: lambda stats, readings: _out(stats, readings.picture),
    Metric.CONSUMERS: lambda stats, _: stats.ConsumerCount,
    Metric.PRODUCERS: lambda stats, _: stats.ProducerCount,
    Metric.IN_FLIGHT: lambda stats, _: stats.InFlightCount,
}


def _out(stats: DestinationStats, picture: Picture) -> float:
    rates = picture.rates(stats.destination)
    return rates.dequeue if stats.destination.kind is Kind.QUEUE else rates.dispatch


def _of_broker(metric: Metric, picture: Picture) -> float | None:
    if not picture.nodes:
        return None
    if metric is Metric.CONNECTIONS:
        return float(sum(len(node.connections) for node in picture.nodes))
    shares = [each for each in (_share(metric, node.store) for node in picture.nodes) if each is not None]
    return max(shares, default=None)


def _share(metric: Metric, store: Mapping[str, float]) -> float | None:
    limit = store.get("machine") if metric is Metric.MEMORY else store.get("limit") or store.get("message_limit")
    return 100 * store.get("used", 0) / limit if limit else None


def broken(rule: Rule, readings: Readings) -> dict[str, float]:
    """What breaks a rule now, each with its number: destinations in native form, or BROKER. The worst MAX_OPEN."""
    if rule.meaning.of_broker:
        value = _of_broker(rule.metric, readings.picture)
        return {BROKER: value} if value is not None and rule.is_broken(value) else {}
    read = _OF_DESTINATION[rule.metric]
    found = {}
    for stats in concerned(rule, readings.picture):
        value = read(stats, readings)
        if value is not None and rule.is_broken(value):
            found[str(stats.destination)] = float(value)
    worst = sorted(found, key=found.__getitem__, reverse=not rule.below)[:MAX_OPEN]
    return {each: found[each] for each in worst}


def concerned(rule: Rule, picture: Picture) -> list[DestinationStats]:
    """The destinations that a rule is about."""
    if rule.meaning.of_broker:
        return []
    is_about = rule.is_about
    return [stats for stats in picture.stats.values() if is_about(stats.destination)]


def sentence(rule: Rule, subject: str, value: float) -> str:
    """What to tell somebody: `orders: depth is 1,204 messages, above 1,000`."""
    sense, limit = "below" if rule.below else "above", amount(rule.metric, rule.threshold)
    if rule.meaning.unit in _COUNTED:
        limit = limit.partition(" ")[0]
    return f"{short(subject)}: {rule.meaning.said} is {amount(rule.metric, value)}, {sense} {limit}"


@dataclass(frozen=True, slots=True)
class Open:
    """A subject that breaks a rule: since when (seconds since the epoch), and whether somebody was told."""

    since: float
    fired: bool


@dataclass(frozen=True, slots=True)
class Moves:
    """What follows from one look: subjects to begin with, to fire, to update, and to end."""

    begin: frozenset[str]
    fire: frozenset[str]
    end: frozenset[str]


def moves(rule: Rule, known: Mapping[str, Open], breaking: Mapping[str, float], now: float) -> Moves:
    """What changes, given who is open and who breaks the rule now."""
    begin = frozenset(breaking) - frozenset(known)
    due = {
        each for each in breaking if each in known and not known[each].fired and now - known[each].since >= rule.hold
    }
    at_once = begin if rule.hold <= 0 else frozenset()
    return Moves(begin, frozenset(due) | at_once, frozenset(known) - frozenset(breaking))


# -- what a rule would have done


@dataclass(frozen=True, slots=True)
class Episode:
    """A time in which a rule would have fired: seconds since the epoch, and the worst number in it."""

    subject: str
    fired: int
    ended: int | None  #: None: it lasts
    worst: float


#: A moment and the number then; None: there was none that a rule could be broken by.
Sample = tuple[int, float | None]


def replay(
    rule: Rule,
    destinations: Mapping[Destination, Sequence[Point]],
    looked: Sequence[Whole],
    step: int,
    is_dlq: Callable[[Destination], bool],
) -> list[Episode]:
    """When a rule would have fired over a past, kept in steps of so many seconds; newest first."""
    found: list[Episode] = []
    if rule.meaning.of_broker:
        found += _episodes(rule, BROKER, _past_of_broker(rule.metric, looked))
    is_about = rule.is_about
    for destination, points in destinations.items():
        if is_about(destination) and (rule.metric is not Metric.DEAD or is_dlq(destination)):
            found += _episodes(rule, str(destination), _past_of(rule.metric, points, looked, step))
    return sorted(found, key=lambda each: -each.fired)


def _past_of_broker(metric: Metric, looked: Iterable[Whole]) -> Iterator[Sample]:
    for each in looked:
        if metric is Metric.CONNECTIONS:
            yield each.at, float(each.connections)
        elif each.store_limit and metric is Metric.STORE:
            yield each.at, 100 * each.store_used / each.store_limit


def _past_of(metric: Metric, points: Sequence[Point], looked: Sequence[Whole], step: int) -> Iterator[Sample]:
    by_time = {each.at: each for each in points}
    standing = Point(0, 0, 0, 0, 0)
    if points:
        first = points[0]
        standing = first._replace(pending=max(0, first.pending - first.arrived + first.left))
    recent: list[Point] = []
    for whole in looked:
        point = by_time.get(whole.at)
        standing = point or standing._replace(at=whole.at, arrived=0, left=0)
        recent.append(standing)
        yield whole.at, _reading_of_past(metric, standing, recent, step)


def _reading_of_past(metric: Metric, now: Point, recent: list[Point], step: int) -> float | None:
    match metric:
        case Metric.DEPTH:
            return float(now.pending)
        case Metric.NO_CONSUMER:
            return None if now.consumers else float(now.pending)
        case Metric.CONSUMERS:
            return float(now.consumers)
        case Metric.RATE_IN:
            return now.arrived / step
        case Metric.RATE_OUT:
            return now.left / step
        case Metric.DEAD:
            grown = itertools.takewhile(lambda each: each.at > now.at - GROWTH_SECONDS, reversed(recent))
            return float(sum(each.arrived for each in grown))
        case Metric.OLDEST:
            return _age_of_past(now, recent)
    return None


def _age_of_past(now: Point, recent: list[Point]) -> float | None:
    """How long the oldest waited: messages leave in order, so it came when the last `pending` of them began to come."""
    missing = now.pending
    if not missing:
        return None
    for each in reversed(recent):
        missing -= each.arrived
        if missing <= 0:
            return float(now.at - each.at)
    return float(now.at - recent[0].at)


def _episodes(rule: Rule, subject: str, samples: Iterable[Sample]) -> Iterator[Episode]:
    since: int | None = None
    fired: int | None = None
    worst = 0.0
    for at, value in samples:
        if value is None or not rule.is_broken(value):
            if fired is not None:
                yield Episode(subject, fired, at, worst)
            since = fired = None
            continue
        if since is None:
            since, worst = at, value
        worst = min(worst, value) if rule.below else max(worst, value)
        if fired is None and at - since >= rule.hold:
            fired = since + rule.hold  # between two samples, where it would have been judged
    if fired is not None:
        yield Episode(subject, fired, None, worst)
