"""Compute when a message is delivered, by ActiveMQ's AMQ_SCHEDULED_* headers. Pure.

Without cron: once after `delay` (or else after `period`), then `repeat` times more, each a `period` later. With cron:
that whole row from each minute on that the cron names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from brokerapp.engine.scheduling.cron import Cron, parse_cron
from brokerapp.errors import RequestRefused
from brokerapp.model.jms.properties import PropertyType

#: ActiveMQ's headers. One of the first three (or the fourth, which is Artemis') makes a message a scheduled one.
CRON, PERIOD, DELAY = "AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_DELAY"
TIME = "AMQ_SCHEDULED_TIME"
REPEAT = "AMQ_SCHEDULED_REPEAT"
HEADERS = frozenset({CRON, PERIOD, DELAY, TIME, REPEAT})
#: Those that are numbers -> their type as properties of JMS messages.
JMS_TYPES = {DELAY: PropertyType.LONG, PERIOD: PropertyType.LONG, REPEAT: PropertyType.INT}
#: `repeat` without end.
FOR_EVER = -1
#: Longest delay or period, milliseconds: a hundred years.
LONGEST_MS = 100 * 366 * 86_400_000
#: Shortest period of a row without end: each repetition is a write.
SHORTEST_ENDLESS_MS = 100
MINUTE_MS = 60_000
#: More than any clock is put back at once: what was an hour ago comes again within that.
LONGEST_REPEATED_MS = 3 * 60 * MINUTE_MS


@dataclass(frozen=True, slots=True)
class DeliverySchedule:
    """Times are milliseconds; those that are moments are since the epoch."""

    delay: int = 0
    period: int = 0
    repeat: int = 0  #: deliveries after the first; FOR_EVER: without end
    cron: str = ""
    at: int = 0  #: the moment of the first delivery, when the client named one

    def first(self, now_ms: int) -> int:
        """When it is due first, asked for now."""
        if self.cron:
            return self._next_minute(now_ms)
        return self.at or now_ms + (self.delay or self.period)

    @property
    def starts_repetitions(self) -> bool:
        """Whether each minute of the cron begins a row of deliveries rather than being one itself."""
        return bool(self.cron) and bool(self.delay or self.repeat)

    @property
    def row(self) -> DeliverySchedule:
        """The row that a minute of the cron begins."""
        return replace(self, cron="")

    @property
    def recurs(self) -> bool:
        """Whether there is more than one delivery, so that each needs an id of its own."""
        return bool(self.cron) or self.repeat != 0

    def after(self, due_ms: int, now_ms: int) -> tuple[int, DeliverySchedule] | None:
        """When it is due again after it was, and what is left then; None when that was the last time.

        What was missed while nobody could deliver it is not made up for: the next time is in the future.
        """
        if self.cron:
            return self._next_minute(now_ms), self
        if self.repeat == 0:
            return None
        following = due_ms + self.period
        left = self.repeat if self.repeat == FOR_EVER else self.repeat - 1
        return following if following > now_ms else now_ms + self.period, replace(self, repeat=left, at=0)

    def _next_minute(self, now_ms: int) -> int:
        """A local time of the hour that summer time's end repeats is two moments.

        A cron that names hours means one of them, the first that is to come; another means both.
        """
        cron, moment = parse_cron(self.cron), datetime.fromtimestamp(now_ms / 1000)
        again_ms = _repeated_minute(cron, now_ms) if cron.every_hour else None
        while (following := cron.next_after(moment)) is not None:
            for fold in (0, 1):
                due_ms = int(following.replace(fold=fold).timestamp() * 1000)
                if due_ms > now_ms:
                    return min(due_ms, again_ms or due_ms)
            moment = following
        raise RequestRefused(f"{CRON}:{self.cron} never matches")

    def headers(self) -> dict[str, str]:
        """The headers that ask for it."""
        values = {CRON: self.cron, DELAY: self.delay, PERIOD: self.period, REPEAT: self.repeat, TIME: self.at}
        return {name: str(value) for name, value in values.items() if value}


def _repeated_minute(cron: Cron, now_ms: int) -> int | None:
    """The first of its minutes once the clock was put back; None when that is not about to happen."""
    turn_ms = _when_put_back(now_ms, now_ms + LONGEST_REPEATED_MS)
    if turn_ms is None:
        return None
    begin = datetime.fromtimestamp(turn_ms / 1000).replace(fold=0)
    following = cron.next_after(begin - timedelta(minutes=1))
    return int(following.replace(fold=1).timestamp() * 1000) if following is not None else None


def _when_put_back(start_ms: int, end_ms: int) -> int | None:
    """When the clock goes back between two moments, to a minute; None when it does not."""
    before = _offset(start_ms)
    if _offset(end_ms) >= before:
        return None
    while end_ms - start_ms > MINUTE_MS:
        middle = start_ms + (end_ms - start_ms) // 2
        start_ms, end_ms = (start_ms, middle) if _offset(middle) < before else (middle, end_ms)
    return end_ms - end_ms % MINUTE_MS


def _offset(moment_ms: int) -> timedelta:
    """Return the offset of local time from UTC at a time."""
    return datetime.fromtimestamp(moment_ms / 1000).astimezone().utcoffset() or timedelta()


def read_schedule(headers: Mapping[str, str], most_repeats: int = LONGEST_MS) -> DeliverySchedule | None:
    """Read the schedule in a message's headers, or None. Raises RequestRefused, which names the header.

    `most_repeats` limits the number of repetitions.
    """
    if not any(headers.get(name, "").strip() for name in (CRON, PERIOD, DELAY, TIME)):
        return None
    schedule = DeliverySchedule(
        delay=_number(headers, DELAY, 0),
        period=_number(headers, PERIOD, 0),
        repeat=_number(headers, REPEAT, FOR_EVER),
        cron=headers.get(CRON, "").strip(),
        at=_number(headers, TIME, 0),
    )
    if schedule.cron:
        parse_cron(schedule.cron)
    if schedule.repeat > most_repeats:
        raise RequestRefused(f"{REPEAT}:{schedule.repeat} is above {most_repeats} (maxSchedulerRepeatAllowed)")
    if schedule.repeat == FOR_EVER and schedule.period < SHORTEST_ENDLESS_MS:
        raise RequestRefused(f"{REPEAT}:-1 needs {PERIOD} of at least {SHORTEST_ENDLESS_MS} milliseconds")
    return schedule


def _number(headers: Mapping[str, str], name: str, least: int) -> int:
    text = headers.get(name, "0").strip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 15 and least <= int(text) <= LONGEST_MS):
        what = f"a whole number from {least} to {LONGEST_MS}"
        raise RequestRefused(f"{name}:{text[:40]} is not {what}")
    return int(text)
