"""Replaying: what a rule would have done over the last 24 hours, by the history."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.model.destination import Destination, Kind
from brokerapp.model.time_series import COARSE
from console.alerts.backtest import Episode, replay
from console.alerts.metrics import Metric
from console.alerts.readings import COUNTED_LATELY, OF_BROKER
from console.alerts.rules import Rule, concerned
from console.broker.gateway import Gateway, gateway
from console.broker.mirror import mirror
from console.metrics import charts_history
from console.metrics.sampling.sampler import MAX_DESTINATIONS

#: Destinations that are replayed, those that moved last, and episodes that are shown.
MAX_REPLAYED, MAX_SHOWN = 200, 12


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of it."""

    episodes: list[Episode]  #: newest first, those that are shown
    total: int
    looked_at: int  #: destinations
    left_out: int  #: destinations that were too many
    minutes: int  #: that the history holds
    cannot: str = ""  #: why the history says nothing about this metric


def replayed(rule: Rule) -> Replay:
    """What the rule would have done. Raises BrokerError."""
    door = gateway()
    looked = charts_history.past_of_whole(door, COARSE)
    if not rule.meaning.is_kept:
        return Replay([], 0, 0, 0, len(looked), f"The history does not hold the {rule.meaning.said}.")
    if rule.meaning.of_parts and rule.threshold >= 1:
        return Replay([], 0, 0, 0, len(looked), f"The history holds the {rule.meaning.said} in all, not of each.")
    if rule.meaning.of_broker:
        told = [each for each in looked if OF_BROKER[rule.metric](each) is not None]
        episodes = replay(rule, {}, told, COARSE.step)
        return Replay(episodes[:MAX_SHOWN], len(episodes), 0, 0, len(told))
    found = _concerned(rule, door)
    shown = found[:MAX_REPLAYED]
    past = dict(zip(shown, charts_history.past(door, COARSE, shown), strict=True))
    episodes = replay(rule, past, looked, COARSE.step)
    return Replay(episodes[:MAX_SHOWN], len(episodes), len(shown), len(found) - len(shown), len(looked))


def without_history(rule: Rule) -> int:
    """Destinations that the rule is about and that nobody can judge, as the history is full. Raises BrokerError."""
    if rule.metric not in COUNTED_LATELY:
        return 0
    moved = gateway().run(gateway().admin.rings.moved())
    if len(moved) < MAX_DESTINATIONS:
        return 0
    about = [each for each in concerned(rule, mirror().current()) if rule.metric is not Metric.DEAD or each.DLQ]
    return sum(str(each.destination) not in moved for each in about)


def _concerned(rule: Rule, door: Gateway) -> list[Destination]:
    """What it is about and has a history, what moved last first."""
    moved = door.run(door.admin.rings.moved())
    known = list(map(Destination.parse, sorted(moved, key=moved.__getitem__, reverse=True)))
    if rule.meaning.of_subscriptions:
        logs = [each for each in known if each.kind is Kind.SUBSCRIPTION]
        named = door.run(door.admin.peers.named(logs))
        return [each for each in logs if each in named and rule.is_of(named[each])]
    stats = mirror().current().stats
    is_about = rule.is_about
    found = [each for each in known if is_about(each)]
    return [each for each in found if each in stats and stats[each].DLQ] if rule.metric is Metric.DEAD else found
