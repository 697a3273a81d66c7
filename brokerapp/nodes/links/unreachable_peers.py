"""Silences: since when members of a broker live, but have no link with this one, and who steps back for it. Pure.

Two nodes that both beat, and do not reach each other, wait for each other: no log moves, and what all must know is not
known. One of the two has to go.
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.nodes.membership.ownership import Member

#: Times the timeout of a node after which operators are told: one that was killed is found out before.
WARN_TIMEOUTS = 1.5
#: Times the timeout of a node after which one of the two steps back: one that stands still is expelled long before.
PATIENCE_TIMEOUTS = 6


class Silences:
    """Of the node of the session `me`; times are seconds of one clock."""

    def __init__(self, me: str, timeout: float) -> None:
        self._me, self._patience, self._warn = me, PATIENCE_TIMEOUTS * timeout, WARN_TIMEOUTS * timeout
        self._since: dict[Member, float] = {}
        self._told: set[Member] = set()

    def note(self, silent: Iterable[Member], now: float) -> list[Member]:
        """There is no link with these members now, which beat; those that operators are to be told of."""
        self._since = {each: self._since.get(each, now) for each in silent}
        self._told &= self._since.keys()
        due = [each for each, since in self._since.items() if now - since >= self._warn and each not in self._told]
        self._told.update(due)
        return due

    def stronger(self, now: float) -> Member | None:
        """A member that has been silent for too long, and before which this one steps back: the other one stays."""
        over = (each for each, since in self._since.items() if now - since >= self._patience)
        return next((each for each in over if each.session < self._me), None)
