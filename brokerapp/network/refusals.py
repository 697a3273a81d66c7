"""Refusals: what the target of a bridge does not take, and whether that is for one message's sake or its destination's.

Who refuses says why in words of its own. What tells is what comes after: a message that is refused, and others of its
destination that were passed on later are taken, is refused for itself. Pure.
"""

from __future__ import annotations

from collections import defaultdict

#: So many messages of a destination, one after the other, are refused for themselves at most: more mean all of it.
MAX_DOUBTS = 3
#: Seconds in which another one must have been taken; without one nobody knows, and all of it stays.
DOUBT_SECONDS = 5.0


class Refusals:
    """Of one bridge, by subscription. `number` is a message's place among all that were passed on."""

    def __init__(self) -> None:
        self._doubts: dict[str, dict[str, int]] = defaultdict(dict)  # subscription -> ack -> number

    def note(self, subscription: str, ack: str, number: int) -> bool:
        """One more is refused; whether it may be so for its own sake."""
        self._doubts[subscription][ack] = number
        return len(self._doubts[subscription]) <= MAX_DOUBTS

    def taken(self, subscription: str, number: int) -> list[str]:
        """The target took a message; those that were refused for themselves, which are told of once."""
        doubts = self._doubts.get(subscription)
        if not doubts:
            return []
        found = [ack for ack, refused in doubts.items() if refused < number]
        for each in found:
            del doubts[each]
        return found

    def is_open(self, subscription: str, ack: str) -> bool:
        """Whether nobody knows yet for whose sake it was refused."""
        return ack in self._doubts.get(subscription, ())

    def forget(self, subscription: str) -> None:
        """All that is given for it goes back."""
        self._doubts.pop(subscription, None)
