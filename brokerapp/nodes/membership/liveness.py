"""Decide by its own heartbeats whether a node is certainly a member, and may judge others dead.

A member that does not beat may be dead, or the store, or the network to it, was away, so that nobody could. Who beat
itself meanwhile knows: a silence counts as far as the store answered. Pure; times are seconds of one clock.
"""

from __future__ import annotations

#: How often a node beats, and looks for others that do not, while it may be silent before it is taken for dead.
HEARTBEATS_PER_TIMEOUT = 5
#: Periods after which a beat is asked again, over another connection, whether or not the last one is answered yet.
RETRY_PERIODS = 1.25
#: Periods between two beats that were answered, of which others in between were not: so long a network swallowed some.
LOST_PERIODS = 2.5
#: Periods more than the timeout for which the store must have answered before others are judged: one that found it
#: away asks again within two.
RECOVERY_PERIODS = 2


class Liveness:
    """The heartbeats of one node. Each counts from when it was sent, as the store may have taken it then."""

    def __init__(self, timeout: float) -> None:
        self.timeout, self.period = timeout, timeout / HEARTBEATS_PER_TIMEOUT
        self._asked_at = self._answered_at = float("-inf")
        self._heartbeat_at = float("-inf")  # when the last one that counts was asked
        self._stable_since = float("inf")  # since when all others could beat, too, as far as is known

    def on_heartbeat_sent(self, now: float) -> None:
        """Note that a heartbeat is sent to the store."""
        self._asked_at = now

    def on_heartbeat_confirmed(self, began: float, answered: float) -> None:
        """Note that the store took a heartbeat, or made the node a member."""
        swallowed = began - self._heartbeat_at > LOST_PERIODS * self.period
        away = answered - self._answered_at > self.timeout - self.period  # others may have been a period earlier
        if swallowed or away:
            self._stable_since = answered
        self._heartbeat_at, self._answered_at = max(self._heartbeat_at, began), answered

    def is_late(self, now: float) -> bool:
        """Return whether the next heartbeat is overdue."""
        return now - self._asked_at > RETRY_PERIODS * self.period

    def is_member(self, now: float) -> bool:
        """Return whether no other node can have taken this one for dead yet."""
        return now - self._heartbeat_at < self.timeout

    def can_expel(self, now: float) -> bool:
        """Return whether the store has answered for so long that only dead nodes sent no heartbeat."""
        steady_for = now - self._stable_since
        return self.is_member(now) and steady_for >= self.timeout + RECOVERY_PERIODS * self.period
