"""Evaluate a rule on the history of the last 24 hours."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.time_series import COARSE
from console.alerts.backtest import AlertEpisode, replay
from console.alerts.metrics import AlertMetric
from console.alerts.readings import COUNTED_LATELY, OF_BROKER
from console.alerts.rules import AlertCondition, subjects_of
from console.broker.gateway import Gateway, gateway
from console.broker.mirror import mirror
from console.broker.rollups import rollups
from console.metrics import charts_history
from console.metrics.charts_history import MAX_DESTINATIONS

#: Destinations that are replayed, those that moved last, and episodes that are shown.
MAX_REPLAYED, MAX_SHOWN = 200, 12


@dataclass(frozen=True, slots=True)
class AlertReplay:
    """How often a rule would have fired over the history that there is."""

    episodes: list[AlertEpisode]  #: newest first, those that are shown
    total: int
    looked_at: int  #: destinations
    left_out: int  #: destinations that were too many
    minutes: int  #: that the history holds
    cannot: str = ""  #: why the history says nothing about this metric


def replay_rule(rule: AlertCondition) -> AlertReplay:
    """Evaluate the rule on the recorded history. Raises BrokerError."""
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
