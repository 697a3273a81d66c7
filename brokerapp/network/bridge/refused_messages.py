"""Trials: what a bridge does about messages that its target refuses. It decides; to send and to wait is given to it.

After a refusal nobody knows whether it is the message that is refused, or its destination. So what comes next of that
destination waits; when nothing of it is on its way any more, one message after the other is tried alone, in order,
until one is taken. Those that were refused alone are set aside, each for itself, and tried again later and later; all
others cross. Where too many are aside it is the destination that is refused.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from brokerapp.network.bridge.forwarder import PassedOn
from brokerapp.stomp.frames import Frame

#: Seconds after a refusal until the first message is tried alone: who had no room for a moment may have some then.
REST_SECONDS = 1.0
#: Seconds until a message is tried again that was refused alone: at first, and at most; each pause is twice the last.
AGAIN_SECONDS, LONGEST_AGAIN_SECONDS = 5.0, 60.0
#: Messages that are aside at a time, and bytes of their bodies, which the bridge holds in memory: of one subscription,
#: as each takes one of those that it may be given, and of all.
MAX_ASIDE, MAX_ASIDE_OF_ALL = 20, 200
MAX_ASIDE_BYTES = 64 * 1024 * 1024

Later = Callable[[float, Callable[[], None]], None]


@dataclass(slots=True, eq=False)
class Passing:
    """A message that the source gave to the bridge, until the target has confirmed it."""

    number: int  #: by which it comes after those that were given before
    subscription: str
    destination: str
    message: PassedOn
    size: int  #: bytes of its body
    told: Frame | None  #: as it came, where somebody wants to hear of it if it is refused
    answered: bool  #: the target says whether it takes it
    refused: str = ""  #: why it did not, the last time
    tries: int = 0  #: times that it was refused alone

    @property
    def ack(self) -> str:
        """By which the source knows it."""
        return self.message.ack


class Trial:
    """Of one destination of a subscription."""

    def __init__(self, send: Callable[[Passing], None], later: Later, under_way: Iterable[str] = ()) -> None:
        self.aside: dict[str, Passing] = {}  #: refused alone, by ack
        self._tried: set[str] = set()  # acks of those that are on their way again
        self._timed: set[str] = set()  # acks of those that are tried again after a while, see `_set_aside`
        self._send, self._later = send, later
        self._under_way = set(under_way)  # acks of what is on its way, but what is aside, or tried alone
        self._waiting: list[Passing] = []  # in order
        self._alone: Passing | None = None
        self._goes_on = True  # what comes is passed on at once
        self._rests = self._ended = False

    @property
    def refuses_all(self) -> bool:
        """Whether nothing that was sent has been taken since something was refused alone."""
        return not self._goes_on and bool(self.aside)

    @property
    def is_over(self) -> bool:
        """Whether all crosses again."""
        return self._goes_on and not self.aside

    def end(self) -> None:
        """What it holds is the source's again."""
        self._ended = True

    def given(self, passing: Passing) -> None:
        """The source gives this one, too."""
        if self._goes_on:
            self._pass_on(passing)
        else:
            self._waiting.append(passing)
            self.try_next()

    def taken(self, passing: Passing) -> None:
        """The target has this one, as it answered."""
        was_alone, was_aside = passing is self._alone, self.aside.pop(passing.ack, None) is not None
        self._answered(passing)
        if not self._goes_on and (was_alone or was_aside):
            self._go_on(refused=was_aside)
        self.try_next()

    def _go_on(self, *, refused: bool) -> None:
        """The target takes what is sent to this destination; it was `refused` until now, whatever was sent."""
        self._goes_on = True
        for each in sorted(self.aside.values(), key=_by_number) if refused else ():
            self._try_again(each)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._pass_on(each)

    def refused(self, passing: Passing) -> None:
        """The target does not take this one; see `try_next`."""
        was_alone = passing is self._alone
        self._answered(passing)
        if was_alone or passing.ack in self.aside:
            self._set_aside(passing)
        else:
            bisect.insort(self._waiting, passing, key=_by_number)
            self._goes_on = False
            if not self._rests:
                self._rests = True
                self._later(REST_SECONDS, self._rested)

    def _answered(self, passing: Passing) -> None:
        self._under_way.discard(passing.ack)
        self._tried.discard(passing.ack)
        if passing is self._alone:
            self._alone = None

    def _pass_on(self, passing: Passing) -> None:
        if passing.answered:
            self._under_way.add(passing.ack)
        self._send(passing)

    def _rested(self) -> None:
        self._rests = False
        self.try_next()

    def try_next(self) -> None:
        """Pass on one alone, if that may be, and before it those to which nothing is answered."""
        blocked = self._ended or self._goes_on or self._rests or self._under_way
        while self._waiting and self._alone is None and not blocked:
            passing = self._waiting.pop(0)
            if passing.answered:
                self._alone = passing
            self._send(passing)

    def _set_aside(self, passing: Passing) -> None:
        """It is tried again later, once, however often it was tried meanwhile because others were taken."""
        self.aside[passing.ack] = passing
        pause = min(AGAIN_SECONDS * 2**passing.tries, LONGEST_AGAIN_SECONDS)
        passing.tries += 1
        if passing.ack not in self._timed:
            self._timed.add(passing.ack)
            self._later(pause, lambda: self._due(passing))

    def _due(self, passing: Passing) -> None:
        self._timed.discard(passing.ack)
        self._try_again(passing)

    def _try_again(self, passing: Passing) -> None:
        if not self._ended and passing.ack in self.aside and passing.ack not in self._tried:
            self._tried.add(passing.ack)
            self._send(passing)


def _by_number(passing: Passing) -> int:
    return passing.number


class Trials:
    """Those of one bridge. `prefetch`: messages that a subscription is given until some are confirmed."""

    def __init__(self, send: Callable[[Passing], None], later: Later, prefetch: int) -> None:
        self._send, self._later, self._most = send, later, min(MAX_ASIDE, prefetch - 1)
        self._trials: dict[tuple[str, str], Trial] = {}  # by subscription and destination
        self._kept: list[Passing] = []  # what the target never takes

    def takes(self, passing: Passing) -> bool:
        """Whether there is one of its destination, which passes it on when it may."""
        trial = self._trials.get((passing.subscription, passing.destination)) if self._trials else None
        if trial is not None:
            trial.given(passing)
        return trial is not None

    def taken(self, passing: Passing) -> None:
        """The target has this one, or is not asked for an answer: that says nothing of what it takes."""
        key = passing.subscription, passing.destination
        trial = self._trials.get(key) if self._trials and passing.answered else None
        if trial is not None:
            trial.taken(passing)
            if trial.is_over:
                del self._trials[key]

    def refused(self, passing: Passing, under_way: Iterable[Passing]) -> bool:
        """The target does not take this one, while others are on their way; whether it is to be held here.

        Else too many are: all of its subscription is to go back to the source, see `end`.
        """
        key = passing.subscription, passing.destination
        if key not in self._trials:
            beside = [each.ack for each in under_way if (each.subscription, each.destination) == key and each.answered]
            self._trials[key] = Trial(self._send, self._later, beside)
        self._trials[key].refused(passing)
        if holds := self._fits(passing.subscription):
            self._trials[key].try_next()
        return holds

    def keep(self, passing: Passing) -> bool:
        """The target never takes this one: it is held here without a try; whether there is room for it."""
        self._kept.append(passing)
        passing.tries = 1
        return self._fits(passing.subscription)

    def _fits(self, subscription: str) -> bool:
        here, all_ = list(self.aside(subscription)), list(self.aside())
        is_few = len(here) <= self._most and len(all_) <= MAX_ASIDE_OF_ALL
        return is_few and sum(each.size for each in all_) <= MAX_ASIDE_BYTES

    def end(self, subscription: str) -> None:
        """What is held of a subscription is the source's again."""
        for key in [key for key in self._trials if key[0] == subscription]:
            self._trials.pop(key).end()
        self._kept = [each for each in self._kept if each.subscription != subscription]

    def refused_of(self, subscription: str, destination: str) -> Passing | None:
        """A message of a destination of which none is taken."""
        trial = self._trials.get((subscription, destination))
        return next(iter(trial.aside.values())) if trial is not None and trial.refuses_all else None

    def aside(self, subscription: str | None = None) -> Iterator[Passing]:
        """What was set aside, of one subscription or of all."""
        refused = (each for trial in self._trials.values() for each in trial.aside.values())
        for each in (*self._kept, *refused):
            if subscription in (None, each.subscription):
                yield each
