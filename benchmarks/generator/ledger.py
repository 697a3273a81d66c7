"""Ledger: whether each message was received once by everyone who was to get it, in order where that is promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from benchmarks.scenarios.messages import NUMBERS_PER_PRODUCER
from benchmarks.scenarios.routes import Route


def sent_in_order(route: Route) -> Callable[[int], object]:
    """What messages have in common that must come in order: their producer and their destination."""
    return lambda number: (number // NUMBERS_PER_PRODUCER, route.destination(number))


def expected(sent: Iterable[range], takes: Callable[[int], bool]) -> list[int]:
    """Numbers of the messages that a group of consumers is to get, of those that the producers sent, ascending."""
    return [number for numbers in sent for number in numbers if takes(number)]


def faults(
    numbers: Sequence[int],
    received: Sequence[Sequence[int]],
    order: Callable[[int], object] | None = None,
    group_of: Callable[[int], int] | None = None,
) -> list[str]:
    """What is wrong with what the consumers of a group received, of the messages with these ascending numbers.

    Each consumer must have seen messages of which `order` says the same in ascending order, if it is given; and
    messages of which `group_of` says the same must all have come to one consumer.
    """
    got = sorted(number for each in received for number in each)
    found = []
    if got != list(numbers):
        wanted, came = set(numbers), set(got)
        twice = {number for number, following in pairwise(got) if number == following}
        for what, wrong in (("missing", wanted - came), ("not for it", came - wanted), ("received twice", twice)):
            if wrong:
                found.append(f"{len(wrong)} {what}, the first is {min(wrong)}")
    if order:
        found += [f"{first} came before {second}" for each in received for first, second in _disorder(each, order)][:1]
    if group_of:
        consumers: dict[int, set[int]] = {}
        for consumer, each in enumerate(received):
            for number in each:
                consumers.setdefault(group_of(number), set()).add(consumer)
        torn = [group for group, several in consumers.items() if len(several) > 1]
        found += [f"{len(torn)} message groups came to several consumers, the first is {torn[0]}"] if torn else []
    return found


def _disorder(numbers: Sequence[int], order: Callable[[int], object]) -> list[tuple[int, int]]:
    """Pairs of messages that came in the wrong order."""
    last: dict[object, int] = {}
    found = []
    for number in numbers:
        of = order(number)
        if number < last.get(of, 0):
            found.append((last[of], number))
        last[of] = number
    return found
