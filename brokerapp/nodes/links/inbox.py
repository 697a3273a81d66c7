"""Hearing: what other nodes say, each word in the epoch in which it was said. A part of Homes.

What is said of logs in an epoch to come waits until this node has come to it, with all that the same node says later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from brokerapp.nodes.links.protocol import OF_LOGS, Word

if TYPE_CHECKING:
    from brokerapp.nodes.ownership.coordinator import Homes

#: Of what a node says, that which holds in its epoch only.
_IN_ITS_EPOCH = frozenset({*OF_LOGS, Word.ARRIVED, Word.GIVEN, Word.WISHED, Word.REACHED})


class Hearing:
    """`perform` says what is done with each word."""

    def __init__(self, homes: Homes, perform: Mapping[Word, Callable[..., None]]) -> None:
        self._homes, self._perform = homes, perform
        self._speaks_in: dict[str, int] = {}  # session -> epoch of what it says
        self._early: dict[str, list[tuple[Word, list[Any]]]] = defaultdict(list)  # said in an epoch to come

    def begins(self, session: str) -> None:
        """A node hears us from now on, and says in which epoch it is before it says anything else."""
        self._speaks_in[session] = -1

    def ends(self, session: str) -> None:
        """It does no more: what it said is said anew."""
        self._early.pop(session, None)

    def forget(self, session: str) -> None:
        """It is no member any more."""
        self._speaks_in.pop(session, None)
        self._early.pop(session, None)

    def heard(self, session: str, word: Word, facts: list[Any]) -> None:
        """A node says something."""
        if word is Word.EPOCH:
            self._speaks_in[session] = facts[0]
        elif word is Word.LOGS and self._homes.joining:
            self._homes.tell(session, Word.KNOWN, facts[0], "")  # it must not wait for us, who read all logs soon
            self._early[session].append((word, [0, *facts[1:]]))
        else:
            self._hear(session, word, facts)

    def _hear(self, session: str, word: Word, facts: list[Any]) -> None:
        homes, epoch = self._homes, self._speaks_in.get(session, -1)
        at_once = word is Word.REACHED and homes.joining
        is_early = homes.joining or epoch > homes.members.epoch or self._early.get(session)
        if not at_once and is_early and word in _IN_ITS_EPOCH:
            self._early[session].append((word, facts))
        elif epoch == homes.members.epoch or word not in (Word.CONSUME, Word.HELD):
            self._perform[word](session, *facts)
        elif word is Word.CONSUME:  # it says so again when it has come to this epoch: nobody waits for this answer
            homes.tell(session, Word.KNOWN, facts[0], "")

    def hear_early(self) -> None:
        """What was said in this epoch before we came to it."""
        for session, said in list(self._early.items()):
            if self._speaks_in.get(session, -1) <= self._homes.members.epoch:
                del self._early[session]
                for word, facts in said:
                    self._hear(session, word, facts)
