"""Compute the expected counters from a ledger, in plain Python. Pure.

Where a client cannot know exactly when something happened at the broker the number has a least and a greatest value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from tests.ledger.ledger import (
    ACKED,
    DEAD,
    DROPPED,
    EXPIRED,
    LEFT,
    MOVED,
    PUT_OFF,
    REMOVED,
    RETURNED,
    Copy,
    Delivery,
    Ledger,
    Span,
)  # fmt: skip

SENT, ROLLED_BACK, STORED, GIVEN = "sent", "rolled back", "stored", "given"
#: How a copy leaves a place, however.
GONE = frozenset({ACKED, DEAD, DROPPED, EXPIRED, MOVED, PUT_OFF, REMOVED})


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a message somewhere, once."""

    what: str
    number: int  #: of the message
    place: str
    original: str
    client: str
    size: int
    when: Span
    born: Span  #: when the broker got the message
    reason: str = ""


def happenings(ledger: Ledger) -> list[Happening]:
    """All that happened, for counting."""
    return [*_sent(ledger), *(each for copy in ledger.copies for each in _of_copy(copy))]


def _sent(ledger: Ledger) -> Iterator[Happening]:
    for each in ledger.messages:
        what = SENT if each.is_kept else ROLLED_BACK
        yield Happening(what, each.number, each.to, each.to, each.by, each.size, each.when, each.born)


def _of_copy(copy: Copy) -> Iterator[Happening]:
    def happening(what: str, when: Span, client: str = "", reason: str = "") -> Happening:
        message = copy.message
        return Happening(
            what, message.number, copy.place, copy.original, client, message.size, when, message.born, reason
        )

    if copy.is_stored:
        yield happening(RETURNED if copy.by == RETURNED else STORED, copy.came)
    for each in copy.deliveries:
        yield happening(GIVEN, each.given, each.consumer)
        if each.ended is not None:
            yield happening(each.how, each.ended, each.consumer)
    if copy.gone is not None and copy.how != ACKED:  # which its delivery tells
        blamed = copy.deliveries[-1].consumer if copy.deliveries else copy.missed_by
        yield happening(copy.how, copy.gone, blamed, copy.reason)


def count(found: Iterable[Happening], *what: str, by: str = "place") -> Counter[str]:
    """How often these happened, by place (or another attribute)."""
    return Counter(getattr(each, by) for each in found if each.what in what)


def size(found: Iterable[Happening], *what: str, by: str = "place") -> Counter[str]:
    """The bytes of the bodies of what these happened to."""
    sums: Counter[str] = Counter()
    for each in found:
        if each.what in what:
            sums[getattr(each, by)] += each.size
    return sums


def counters(ledger: Ledger) -> dict[str, dict[str, int]]:
    """The broker's counters of each destination, by the names that JMX gave them; those that are 0 are left out."""
    found = happenings(ledger)
    at_topics = {each.to for each in ledger.kept if each.to.startswith("topic://")}
    came = [each for each in found if each.what in ((SENT,) if each.place in at_topics else (STORED, RETURNED))]
    left = [each for each in found if each.what in ((ACKED,) if each.place in at_topics else GONE)]
    held = Counter(each.copy.place for each in ledger.deliveries if each.ended is None)
    by_name = {
        "QueueSize": Counter(each.place for each in ledger.copies if each.is_stored and each.gone is None),
        "InFlightCount": held,
        "ConsumerCount": Counter(place for place, _ in ledger.subscribed.keys() - ledger.left.keys()),
        "EnqueueCount": Counter(each.place for each in came), "EnqueueBytes": size(came, STORED, RETURNED, SENT),
        "DequeueCount": Counter(each.place for each in left), "DequeueBytes": size(left, *GONE),
        "DispatchCount": count(found, GIVEN), "ExpiredCount": count(found, EXPIRED),
        "DeadLetterCount": count(found, DEAD, EXPIRED), "DiscardedCount": count(found, DROPPED),
        "DroppedCount": count(_unheard(found, at_topics), DROPPED, DEAD),
        "RedeliveredCount": count(found, LEFT, PUT_OFF),
    }  # fmt: skip
    for name, choose in (("MinMessageSize", min), ("MaxMessageSize", max)):
        by_name[name] = Counter({place: choose(each.size for each in came if each.place == place)
                                 for place in {each.place for each in came}})  # fmt: skip
    places = {place for values in by_name.values() for place in values}
    return {
        place: {name: value for name, values in by_name.items() if (value := values[place])} for place in sorted(places)
    }


def _unheard(found: Iterable[Happening], topics: set[str]) -> list[Happening]:
    """What was dropped in queues, and dead letters of topics: subscribers that were too slow missed them."""
    return [each for each in found if each.what == DROPPED or (each.what == DEAD and each.place in topics)]


def depths(ledger: Ledger, moment: int | None = None) -> dict[str, tuple[int, int]]:
    """The least and greatest number of copies at each place at a moment; without one, in the end."""
    found: dict[str, tuple[int, int]] = {}
    for each in ledger.copies:
        if each.is_stored:
            least, most = found.get(each.place, (0, 0))
            may, must = is_there(each, moment)
            found[each.place] = (least + must, most + may)
    return found


def is_there(copy: Copy, moment: int | None) -> tuple[bool, bool]:
    """Whether it may have been there then, and whether it must."""
    if moment is None:
        return copy.gone is None, copy.gone is None
    may = copy.came.after <= moment and (copy.gone is None or copy.gone.before >= moment)
    must = copy.came.before <= moment and (copy.gone is None or copy.gone.after >= moment)
    return may, must


def in_time(found: Iterable[Happening], after: int, before: int) -> tuple[int, int]:
    """How many of these must, and how many may, have happened between two moments."""
    spans = [each.when for each in found]
    least = sum(after <= each.after and each.before < before for each in spans)
    return least, sum(each.before >= after and each.after < before for each in spans)


def percentile(times: Iterable[Span], part: float) -> Span:
    """The least and greatest value below which this part lies (nearest rank)."""
    known = list(times)
    place = ceil(part * len(known)) - 1
    return Span(sorted(each.after for each in known)[place], sorted(each.before for each in known)[place])


def latencies(found: Iterable[Happening], key: Callable[[Happening], object]) -> dict[object, list[Span]]:
    """Microseconds from reaching the broker until acknowledged, of all of a key."""
    times: dict[object, list[Span]] = {}
    for each in found:
        if each.what == ACKED:
            times.setdefault(key(each), []).append(each.when - each.born)
    return times


def stays(ledger: Ledger) -> list[list[Copy]]:
    """Copies that are one to consumers: a copy, and what came back of it after a delay."""
    found = []
    for each in ledger.copies:
        if each.by == RETURNED:
            continue
        stay = [each]
        while (after := stay[-1].successor) is not None and after.by == RETURNED:
            stay.append(after)
        found.append(stay)
    return found


def holding(deliveries: Iterable[Delivery], until: int) -> Span:
    """How long a consumer held a message on average, at least and at most, microseconds."""
    times = [(each.ended or Span(until, until)) - each.given for each in deliveries]
    return Span(sum(each.after for each in times) // len(times), sum(each.before for each in times) // len(times))
