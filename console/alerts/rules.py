"""Decide when a rule is broken, and what follows from how long it was. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan

from analytics.model.traffic_comparison import TrafficHour
from analytics.model.wording import short_name
from brokerapp.engine.routing.destination_trie import matches, overlap
from brokerapp.model.destination import ANY_REST, Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from brokerapp.model.subscription_identity import SubscriptionIdentity
from console.access.roles import Scope
from console.alerts.metrics import COUNTED, DESCRIPTIONS, AlertMetric, MetricDescription, amount, figure
from console.alerts.readings import COUNTED_LATELY, OF_DESTINATION, OF_OBJECTIVE, MetricReadings, of_broker
from console.broker.snapshot import BrokerSnapshot
from console.objectives.targets import Target
from console.ui.formatting import number_format

#: Subjects that one rule has open at a time; the worst begin first.
MAX_OPEN = 100
#: What the subject of an alert about an objective begins with.
OBJECTIVE_PREFIX = "objective "


@dataclass(frozen=True, slots=True)
class AlertCondition:
    """The condition of an alert rule. `threshold` is in the unit of the metric."""

    metric: AlertMetric
    threshold: float
    pattern: str = ">"  #: of destinations, as a scope is written; of no meaning for the whole broker
    below: bool = False  #: broken when the number is less, not when it is more
    hold: int = 0  #: seconds it must be broken until it fires

    @property
    def description(self) -> MetricDescription:
        """Return the description of the rule's metric."""
        return DESCRIPTIONS[self.metric]

    @property
    def is_about(self) -> Callable[[Destination], bool]:
        """Return a predicate for the destinations of the rule."""
        scope = Scope.parse(self.pattern)
        kinds = [each for each in self.description.kinds if scope.kind in (None, each)]
        return lambda destination: destination.kind in kinds and matches(scope.pattern, destination.name)

    def covers_subscription(self, subscription: SubscriptionIdentity) -> bool:
        """Return whether the rule covers a durable subscription: its pattern overlaps one of the topics."""
        pattern = Scope.parse(self.pattern).pattern
        return subscription.durable and any(overlap(pattern, each.physical.name) for each in subscription.topics)

    def covers_objective(self, target: Target) -> bool:
        """Return whether the rule covers all queues or topics of an objective."""
        return Scope.parse(self.pattern).contains(target.destination)

    @property
    def places(self) -> tuple[Destination, ...]:
        """Return the patterns of destinations that the rule covers; everything for a rule about the broker."""
        return (Scope(ANY_REST) if self.description.of_broker else Scope.parse(self.pattern)).destinations

    def is_broken(self, value: float) -> bool:
        """Return whether a value breaks the rule."""
        return value < self.threshold if self.below else value > self.threshold

    @property
    def _which(self) -> str:
        if self.description.of_objectives:
            return "any objective" if self.pattern == ANY_REST else f"objectives of {self.pattern}"
        if self.description.of_subscriptions:
            every = "durable subscription"
            return f"any {every}" if self.pattern == ANY_REST else f"any {every} to {self.pattern}"
        every = "queue" if self.description.kinds == (DestinationKind.QUEUE,) else "queue or topic"
        return f"any {every}" if self.pattern == ANY_REST else self.pattern

    def __str__(self) -> str:
        """Describe the condition: `depth of orders.> above 100 messages for 5 min`."""
        description = self.description
        of = "" if description.of_broker else f" of {self._which}"
        sense = "below" if self.below else "above"
        held = f" for {number_format.format_duration(self.hold)}" if self.hold else ""
        return f"{description.phrase}{of} {sense} {figure(self.metric, self.threshold)}{held}"


@dataclass(frozen=True, slots=True)
class RuleEvaluation:
    """The outcome of one evaluation: the subjects that break the rule, with their values.

    `unknown`: subjects without a history. `unseen`: subjects that were not watched for all of the time that counts.
    """

    breaking: Mapping[str, float]
    unknown: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()


def evaluate_rule(rule: AlertCondition, readings: MetricReadings) -> RuleEvaluation:
    """Destinations in native form, or parts of the broker, as they are to a rule now."""
    if rule.description.of_objectives:
        numbers = _of_objectives(rule, readings)
    elif rule.description.of_broker:
        numbers = of_broker(rule.metric, readings)
    else:
        numbers = _numbers(rule, readings)
    unseen = frozenset[str]()
    if rule.metric in COUNTED_LATELY and not readings.watched:  # there may have been more: only what is enough is known
        unseen = frozenset(subject for subject, value in numbers.items() if rule.is_broken(value) == rule.below)
    breaking = {
        subject: float(value) for subject, value in numbers.items() if rule.is_broken(value) and subject not in unseen
    }
    unknown = frozenset(subject for subject, value in numbers.items() if isnan(value)) - unseen
    return RuleEvaluation(breaking, unknown, unseen)


def _of_objectives(rule: AlertCondition, readings: MetricReadings) -> dict[str, float]:
    """Return the values of the objectives whose queues or topics are all covered by the rule."""
    read = OF_OBJECTIVE[rule.metric]
    values = (
        (f"{OBJECTIVE_PREFIX}{name}", read(found))
        for name, found in readings.objectives.items()
        if rule.covers_objective(found.target)
    )
    return {subject: value for subject, value in values if value is not None}


def _numbers(rule: AlertCondition, readings: MetricReadings) -> dict[str, float]:
    read = OF_DESTINATION[rule.metric]
    values = (
        (stats.destination, read(stats, readings)) for stats in subjects_of(rule, readings.picture, readings.named)
    )
    return {str(destination): value for destination, value in values if value is not None}


def subjects_of(
    rule: AlertCondition, picture: BrokerSnapshot, named: Mapping[Destination, SubscriptionIdentity] | None = None
) -> list[DestinationStats]:
    """Return the destinations, or the logs of `named` subscriptions, that a rule is about."""
    if rule.description.of_broker or rule.description.of_objectives:
        return []
    if rule.description.of_subscriptions:
        logs = [log for log, each in (named or {}).items() if rule.covers_subscription(each)]
        return [picture.subscriptions[log] for log in logs if log in picture.subscriptions]
    is_about = rule.is_about
    return [stats for stats in picture.stats.values() if is_about(stats.destination)]


def sentence(rule: AlertCondition, subject: str, value: float, hour: TrafficHour | None = None, cause: str = "") -> str:
    """Format the alert text: `orders: depth is 1,204 messages, above 1,000`.

    `hour`: what was observed and expected, for metrics that are compared with the weekly pattern. `cause`: why.
    """
    if rule.description.is_of_pattern and hour is not None:
        return f"{short_name(subject)}: {hour}"
    if rule.description.fact:
        return f"{subject} {rule.description.fact}"
    sense, limit = "below" if rule.below else "above", amount(rule.metric, rule.threshold)
    if rule.description.unit in COUNTED:
        limit = limit.partition(" ")[0]
    text = f"{short_name(subject)}: {rule.description.phrase} is {figure(rule.metric, value)}, {sense} {limit}"
    return f"{text}. {cause}" if cause else text


@dataclass(frozen=True, slots=True)
class OpenSubject:
    """A subject that breaks a rule: since when (seconds since the epoch), and whether the alert has fired."""

    since: float
    fired: bool


@dataclass(frozen=True, slots=True)
class AlertTransitions:
    """Changes that follow from one evaluation: subjects that become pending, fire, or end."""

    begin: frozenset[str]
    fire: frozenset[str]
    end: frozenset[str]


def transitions(
    rule: AlertCondition, known: Mapping[str, OpenSubject], seen: RuleEvaluation, now: float
) -> AlertTransitions:
    """Compute the changes of a rule's alerts from its open subjects and one evaluation.

    The worst subjects become pending, up to the limit; open ones stay open, however bad others are. An open subject
    that is unknown now has dropped out of the history because it did not change for long: it counts as 0. A subject
    that was not watched stays open: a gap in the data resolves nothing.
    """
    breaking = seen.breaking
    end = frozenset(known) - frozenset(breaking) - seen.unseen - (seen.unknown if rule.is_broken(0) else frozenset())
    worst = sorted(breaking.keys() - known.keys(), key=breaking.__getitem__, reverse=not rule.below)
    begin = frozenset(worst[: max(0, MAX_OPEN - len(known) + len(end))])
    due = {each for each, was in known.items() if not was.fired and now - was.since >= rule.hold}
    at_once = begin if rule.hold <= 0 else frozenset()
    return AlertTransitions(begin, frozenset(due & breaking.keys()) | at_once, end)
