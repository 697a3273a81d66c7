"""Evaluate a rule on recorded history: of the last 24 hours, of weeks if it is about the weekly pattern, or of two days
if it is about objectives.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from analytics.model.service_level import FAST, HOUR, SLOW
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.time_series import COARSE
from console.alerts.backtest import AlertEpisode, replay, replay_hours, replay_objective
from console.alerts.metrics import AlertMetric
from console.alerts.readings import COUNTED_LATELY, OF_BROKER
from console.alerts.rules import AlertCondition, subjects_of
from console.broker.gateway import Gateway, gateway
from console.broker.mirror import mirror
from console.broker.rollups import rollups
from console.metrics import charts_history
from console.metrics.charts_history import MAX_DESTINATIONS
from console.objectives.attainment import counted_destinations, known_destinations
from console.objectives.models import Objective
from console.objectives.past_attainment import measure_past, replay_range
from console.traffic_ranges.comparisons import nothing_expected, replay_traffic, too_little_history
from console.traffic_ranges.models import TrafficRange
from console.ui.formatting.number_format import pluralize_count

#: Destinations that are replayed, those that moved last, and episodes that are shown.
MAX_REPLAYED, MAX_SHOWN = 200, 12
#: Destinations whose weeks are compared with their pattern: each takes a quarter of a second.
MAX_COMPARED = 10
#: Queues and subscriptions of objectives that are measured at each minute: each takes 45 ms.
MAX_MEASURED = 100
DAY_MINUTES = 1440
#: The longest time range in seconds that each metric of objectives needs of the counts by the minute.
_LONGEST = {AlertMetric.BURN_FAST: max(FAST), AlertMetric.BURN_SLOW: max(SLOW), AlertMetric.BUDGET: HOUR}


@dataclass(frozen=True, slots=True)
class AlertReplay:
    """How often a rule would have fired over the history that there is."""

    episodes: list[AlertEpisode]  #: newest first, those that are shown
    total: int
    looked_at: int  #: destinations, or objectives
    left_out: int  #: those that were too many
    minutes: int  #: that the history holds
    cannot: str = ""  #: why the history says nothing about this metric
    is_hourly: bool = False  #: whether hours of the last weeks were compared, not minutes of the last day
    omitted: int = 0  #: queues and subscriptions of these objectives that were too many

    @property
    def period(self) -> str:
        """Return the length of the history as text."""
        if self.minutes < DAY_MINUTES:
            return f"the {pluralize_count(self.minutes, 'minute')} of history"
        days = self.minutes // DAY_MINUTES
        return f"the last {days} days" if days > 1 else f"the last {round(self.minutes / 60)} hours"


def replay_rule(rule: AlertCondition) -> AlertReplay:
    """Evaluate the rule on the recorded history. Raises BrokerError."""
    if rule.description.is_of_pattern:
        return _replay_pattern(rule)
    if rule.description.of_objectives:
        return _replay_objectives(rule)
    door = gateway()
    looked = charts_history.read_broker_points(door, COARSE)
    if not rule.description.has_history:
        return AlertReplay([], 0, 0, 0, len(looked), f"No history of the {rule.description.phrase}.")
    if rule.description.is_per_part and rule.threshold >= 1:
        return AlertReplay([], 0, 0, 0, len(looked), f"The history has only the total {rule.description.phrase}.")
    if rule.description.of_broker:
        told = [each for each in looked if OF_BROKER[rule.metric](each) is not None]
        episodes = replay(rule, {}, told, COARSE.step)
        return AlertReplay(episodes[:MAX_SHOWN], len(episodes), 0, 0, len(told))
    found = _concerned(rule, door)
    shown = found[:MAX_REPLAYED]
    past = dict(zip(shown, charts_history.read_points(door, COARSE, shown), strict=True))
    episodes = replay(rule, past, looked, COARSE.step)
    return AlertReplay(episodes[:MAX_SHOWN], len(episodes), len(shown), len(found) - len(shown), len(looked))


def _replay_pattern(rule: AlertCondition) -> AlertReplay:
    """Compare the last weeks of the destinations of a rule with what was expected, the longest histories first."""
    found = _ranged(rule)
    if not found:
        return AlertReplay([], 0, 0, 0, 0, nothing_expected(), is_hourly=True)
    shown = [row.destination for row in found[:MAX_COMPARED]]
    compared = {name: hours for name, hours in replay_traffic(shown).items() if hours}
    if not compared:
        most = max(row.recorded_hours for row in found)
        return AlertReplay([], 0, 0, 0, 0, too_little_history(most), is_hourly=True)
    episodes = replay_hours(rule, compared)
    begin = min(hours[0].start for hours in compared.values())
    end = max(hours[-1].start for hours in compared.values())
    minutes = (end - begin) // 60 + 60
    return AlertReplay(
        episodes[:MAX_SHOWN], len(episodes), len(compared), len(found) - len(compared), minutes, is_hourly=True
    )


def _replay_objectives(rule: AlertCondition) -> AlertReplay:
    """Measure the objectives of a rule at each minute for which the archive has counts by the minute."""
    past, now = rollups(), int(time.time())
    found = [row for row in Objective.objects.all() if rule.covers_objective(row.target)]
    if not found:
        return AlertReplay([], 0, 0, 0, 0, "No objective has all its queues or topics in this pattern.")
    episodes: list[AlertEpisode] = []
    looked_at = read = omitted = minutes = 0
    for row in found:
        if read >= MAX_MEASURED:
            break
        target = row.target
        names = counted_destinations(past, target, known_destinations(past, target))
        times = replay_range(past, target, now, _LONGEST[rule.metric])
        with_period = rule.metric is AlertMetric.BUDGET
        measured = measure_past(past, target, names[:MAX_MEASURED], times, with_period=with_period)
        episodes += replay_objective(rule, row.name, measured)
        looked_at, read, minutes = looked_at + 1, read + len(names), max(minutes, len(times))
        omitted += max(0, len(names) - MAX_MEASURED)
    if not minutes:
        return AlertReplay([], 0, 0, 0, 0, "Too little traffic is recorded by the minute.")
    episodes.sort(key=lambda each: -each.fired)
    left_out = len(found) - looked_at
    return AlertReplay(episodes[:MAX_SHOWN], len(episodes), looked_at, left_out, minutes, omitted=omitted)


def _ranged(rule: AlertCondition) -> list[TrafficRange]:
    """Return the stored ranges of the destinations of a rule, the longest history first."""
    is_about = rule.is_about
    rows = [row for row in TrafficRange.objects.all() if is_about(Destination.parse(row.destination))]
    return sorted(rows, key=lambda row: -row.recorded_hours)


def count_without_range(rule: AlertCondition) -> int:
    """Return the destinations of a rule on the weekly pattern that have no expected range. Raises BrokerError."""
    if not rule.description.is_of_pattern:
        return 0
    ranged = {row.destination for row in _ranged(rule) if row.ranges}
    return sum(str(each.destination) not in ranged for each in subjects_of(rule, mirror().current()))


def count_without_history(rule: AlertCondition) -> int:
    """Return the destinations of a rule that have no history because it is full. Raises BrokerError."""
    if rule.metric not in COUNTED_LATELY:
        return 0
    moved = gateway().run(gateway().admin.rings.last_points())
    if len(moved) < MAX_DESTINATIONS:
        return 0
    about = [each for each in subjects_of(rule, mirror().current()) if rule.metric is not AlertMetric.DEAD or each.DLQ]
    return sum(str(each.destination) not in moved for each in about)


def _concerned(rule: AlertCondition, door: Gateway) -> list[Destination]:
    """Return the destinations of a rule that have a history, the most recently changed first."""
    moved = door.run(door.admin.rings.last_points())
    known = list(map(Destination.parse, sorted(moved, key=moved.__getitem__, reverse=True)))
    if rule.description.of_subscriptions:
        logs = [each for each in known if each.kind is DestinationKind.SUBSCRIPTION]
        named = door.run(door.admin.peers.named(logs))
        return [each for each in logs if each in named and rule.covers_subscription(named[each])]
    stats = mirror().current().stats
    is_about = rule.is_about
    found = [each for each in known if is_about(each)]
    if rule.metric is AlertMetric.CONSUMER_GONE:  # queues that never had a consumer miss none
        had = rollups().consumers_since()
        return [each for each in found if str(each) in had]
    return [each for each in found if each in stats and stats[each].DLQ] if rule.metric is AlertMetric.DEAD else found
