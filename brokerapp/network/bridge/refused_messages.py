"""Decide what a bridge does with messages that its target refuses; sending and waiting are passed in.

After a refusal nobody knows whether it is the message that is refused, or its destination. So what comes next of that
destination waits; when nothing of it is on its way any more, one message after the other is tried alone, in order,
until one is taken. Those that were refused alone are set aside, each for itself, and tried again later and later; all
others cross. Where too many are aside it is the destination that is refused.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from brokerapp.network.bridge.forwarder import ForwardedMessage
from brokerapp.network.links.broker_link import BridgedMessage

#: Seconds after a refusal until the first message is tried alone: who had no room for a moment may have some then.
PAUSE_SECONDS = 1.0
#: Seconds until a message is tried again that was refused alone: at first, and at most; each pause is twice the last.
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 5.0, 60.0
#: Messages that are aside at a time, and bytes of their bodies, which the bridge holds in memory: of one subscription,
#: as each takes one of those that it may be given, and of all.
MAX_HELD, MAX_HELD_IN_TOTAL = 20, 200
MAX_HELD_BYTES = 64 * 1024 * 1024

CallLater = Callable[[float, Callable[[], None]], None]


@dataclass(slots=True, eq=False)
class MessageInTransit:
    """A message that the source gave to the bridge, until the target has confirmed it."""

    sequence: int  #: by which it comes after those that were given before
    subscription: str
    destination: str
    message: ForwardedMessage
    size: int  #: bytes of its body
    original: BridgedMessage | None  #: as it came, where somebody wants to hear of it if it is refused
    is_confirmed_by_target: bool  #: the target says whether it takes it
    refusal: str = ""  #: why it did not, the last time
    attempts: int = 0  #: times that it was refused alone

    @property
    def ack(self) -> str:
        """By which the source knows it."""
        return self.message.ack


class DestinationRefusal:
    """Of one destination of a subscription."""

    def __init__(
        self, send: Callable[[MessageInTransit], None], later: CallLater, under_way: Iterable[str] = ()
    ) -> None:
        self.held: dict[str, MessageInTransit] = {}  #: refused alone, by ack
        self._retrying: set[str] = set()  # acks of those that are on their way again
        self._scheduled: set[str] = set()  # acks of those that are tried again after a while, see `_set_aside`
        self._send, self._later = send, later
        self._unconfirmed = set(under_way)  # acks of what is on its way, but what is aside, or tried alone
        self._waiting: list[MessageInTransit] = []  # in order
        self._single: MessageInTransit | None = None
        self._is_open = True  # what comes is passed on at once
        self._is_pausing = self._is_ended = False

    @property
    def refuses_all(self) -> bool:
        """Whether nothing that was sent has been taken since something was refused alone."""
        return not self._is_open and bool(self.held)

    @property
    def is_over(self) -> bool:
        """Whether all crosses again."""
        return self._is_open and not self.held

    def end(self) -> None:
        """End the trials; the source has the messages again."""
        self._is_ended = True

    def on_message(self, passing: MessageInTransit) -> None:
        """The source gives this one, too."""
        if self._is_open:
            self._forward(passing)
        else:
            self._waiting.append(passing)
            self.try_single()

    def on_accepted(self, passing: MessageInTransit) -> None:
        """The target has this one, as it answered."""
        was_alone, was_aside = passing is self._single, self.held.pop(passing.ack, None) is not None
        self._on_answer(passing)
        if not self._is_open and (was_alone or was_aside):
            self._reopen(refused=was_aside)
        self.try_single()

    def _reopen(self, *, refused: bool) -> None:
        """The target takes what is sent to this destination; it was `refused` until now, whatever was sent."""
        self._is_open = True
        for each in sorted(self.held.values(), key=_sequence_of) if refused else ():
            self._retry(each)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._forward(each)

    def on_refused(self, passing: MessageInTransit) -> None:
        """The target does not take this one; see `try_next`."""
        was_alone = passing is self._single
        self._on_answer(passing)
        if was_alone or passing.ack in self.held:
            self._hold(passing)
        else:
            bisect.insort(self._waiting, passing, key=_sequence_of)
            self._is_open = False
            if not self._is_pausing:
                self._is_pausing = True
                self._later(PAUSE_SECONDS, self._on_pause_over)

    def _on_answer(self, passing: MessageInTransit) -> None:
        self._unconfirmed.discard(passing.ack)
        self._retrying.discard(passing.ack)
        if passing is self._single:
            self._single = None

    def _forward(self, passing: MessageInTransit) -> None:
        if passing.is_confirmed_by_target:
            self._unconfirmed.add(passing.ack)
        self._send(passing)

    def _on_pause_over(self) -> None:
        self._is_pausing = False
        self.try_single()

    def try_single(self) -> None:
        """Pass on one alone, if that may be, and before it those to which nothing is answered."""
        blocked = self._is_ended or self._is_open or self._is_pausing or self._unconfirmed
        while self._waiting and self._single is None and not blocked:
            passing = self._waiting.pop(0)
            if passing.is_confirmed_by_target:
                self._single = passing
            self._send(passing)

    def _hold(self, passing: MessageInTransit) -> None:
        """It is tried again later, once, however often it was tried meanwhile because others were taken."""
        self.held[passing.ack] = passing
        pause = min(RETRY_SECONDS * 2**passing.attempts, LONGEST_RETRY_SECONDS)
        passing.attempts += 1
        if passing.ack not in self._scheduled:
            self._scheduled.add(passing.ack)
            self._later(pause, lambda: self._on_retry_due(passing))

    def _on_retry_due(self, passing: MessageInTransit) -> None:
        self._scheduled.discard(passing.ack)
        self._retry(passing)

    def _retry(self, passing: MessageInTransit) -> None:
        if not self._is_ended and passing.ack in self.held and passing.ack not in self._retrying:
            self._retrying.add(passing.ack)
            self._send(passing)


def _sequence_of(passing: MessageInTransit) -> int:
    return passing.sequence


class RefusedMessages:
    """Refused messages of one bridge. `prefetch` is that of its subscriptions."""

    def __init__(self, send: Callable[[MessageInTransit], None], later: CallLater, prefetch: int) -> None:
        self._send, self._later, self._max_held = send, later, min(MAX_HELD, prefetch - 1)
        self._by_destination: dict[tuple[str, str], DestinationRefusal] = {}  # by subscription and destination
        self._never_accepted: list[MessageInTransit] = []  # what the target never takes

    def handle(self, passing: MessageInTransit) -> bool:
        """Whether there is one of its destination, which passes it on when it may."""
        trial = self._by_destination.get((passing.subscription, passing.destination)) if self._by_destination else None
        if trial is not None:
            trial.on_message(passing)
        return trial is not None

    def on_accepted(self, passing: MessageInTransit) -> None:
        """The target has this one, or is not asked for an answer: that says nothing of what it takes."""
        key = passing.subscription, passing.destination
        trial = self._by_destination.get(key) if self._by_destination and passing.is_confirmed_by_target else None
        if trial is not None:
            trial.on_accepted(passing)
            if trial.is_over:
                del self._by_destination[key]

    def on_refused(self, passing: MessageInTransit, under_way: Iterable[MessageInTransit]) -> bool:
        """The target does not take this one, while others are on their way; whether it is to be held here.

        Else too many are: all of its subscription is to go back to the source, see `end`.
        """
        key = passing.subscription, passing.destination
        if key not in self._by_destination:
            beside = [
                each.ack
                for each in under_way
                if (each.subscription, each.destination) == key and each.is_confirmed_by_target
            ]
            self._by_destination[key] = DestinationRefusal(self._send, self._later, beside)
        self._by_destination[key].on_refused(passing)
        if holds := self._is_within_limits(passing.subscription):
            self._by_destination[key].try_single()
        return holds

    def hold_permanently(self, passing: MessageInTransit) -> bool:
        """The target never takes this one: it is held here without a try; whether there is room for it."""
        self._never_accepted.append(passing)
        passing.attempts = 1
        return self._is_within_limits(passing.subscription)

    def _is_within_limits(self, subscription: str) -> bool:
        here, all_ = list(self.held(subscription)), list(self.held())
        is_few = len(here) <= self._max_held and len(all_) <= MAX_HELD_IN_TOTAL
        return is_few and sum(each.size for each in all_) <= MAX_HELD_BYTES

    def end(self, subscription: str) -> None:
        """Forget the messages of a subscription, which the source has again."""
        for key in [key for key in self._by_destination if key[0] == subscription]:
            self._by_destination.pop(key).end()
        self._never_accepted = [each for each in self._never_accepted if each.subscription != subscription]

    def first_refused(self, subscription: str, destination: str) -> MessageInTransit | None:
        """A message of a destination of which none is taken."""
        trial = self._by_destination.get((subscription, destination))
        return next(iter(trial.held.values())) if trial is not None and trial.refuses_all else None

    def held(self, subscription: str | None = None) -> Iterator[MessageInTransit]:
        """Yield the messages that are set aside, of one subscription or of all."""
        refused = (each for trial in self._by_destination.values() for each in trial.held.values())
        for each in (*self._never_accepted, *refused):
            if subscription in (None, each.subscription):
                yield each
