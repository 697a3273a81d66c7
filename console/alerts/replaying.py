"""Replaying: what a rule would have done over the last 24 hours, by the history."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.destination import Destination
from brokerapp.history import COARSE
from console import history
from console.alerts.rules import Episode, Rule, replay
from console.gateway import gateway
from console.live.mirror import mirror

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
    door, picture = gateway(), mirror().current()
    looked = history.past_of_whole(door, COARSE)
    if not rule.meaning.is_kept:
        return Replay([], 0, 0, 0, len(looked), f"The history does not hold the {rule.meaning.said}.")
    moved = door.run(door.admin.rings.moved())
    about = rule.is_about
    names = sorted(moved, key=moved.__getitem__, reverse=True)
    found = [] if rule.meaning.of_broker else [each for each in map(Destination.parse, names) if about(each)]
    shown = found[:MAX_REPLAYED]
    past = dict(zip(shown, history.past(door, COARSE, shown), strict=True))
    episodes = replay(rule, past, looked, COARSE.step, lambda each: each in picture.stats and picture.stats[each].DLQ)
    return Replay(episodes[:MAX_SHOWN], len(episodes), len(shown), len(found) - len(shown), len(looked))
