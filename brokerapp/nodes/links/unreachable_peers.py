"""Track how long live nodes have been unreachable, and decide which one steps back. Pure.

Two nodes that both beat, and do not reach each other, wait for each other: no log moves, and what all must know is not
known. One of the two has to go.
"""

from __future__ import annotations

from collections.abc import Iterable

from brokerapp.nodes.links.members import NodeMember

#: Times the timeout of a node after which operators are told: one that was killed is found out before.
WARN_TIMEOUTS = 1.5
#: Times the timeout of a node after which one of the two steps back: one that stands still is expelled long before.
STEP_DOWN_TIMEOUTS = 6


class UnreachablePeers:
    """Members without a link to the node of the session `me`; times are seconds of one clock."""

    def __init__(self, me: str, timeout: float) -> None:
        self._session, self._step_down_after, self._warn_after = (
            me,
            STEP_DOWN_TIMEOUTS * timeout,
            WARN_TIMEOUTS * timeout,
        )
        self._since: dict[NodeMember, float] = {}
        self._reported: set[NodeMember] = set()

    def update(self, silent: Iterable[NodeMember], now: float) -> list[NodeMember]:
        """Take the members that beat but have no link now; return those that operators must be told of."""
        self._since = {each: self._since.get(each, now) for each in silent}
        self._reported &= self._since.keys()
        due = [
            each
            for each, since in self._since.items()
            if now - since >= self._warn_after and each not in self._reported
        ]
        self._reported.update(due)
        return due

    def should_yield_to(self, now: float) -> NodeMember | None:
        """Return a member without a link for too long that stays while this one steps back."""
        over = (each for each, since in self._since.items() if now - since >= self._step_down_after)
        return next((each for each in over if each.session < self._session), None)
