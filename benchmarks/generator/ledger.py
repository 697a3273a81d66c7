"""Ledger: whether each message was received once by everyone who was to get it, in order where that is promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from benchmarks.scenarios.messages import NUMBERS_PER_PRODUCER


def expected(sent: Iterable[range], takes: Callable[[int], bool]) -> list[int]:
    """Numbers of the messages that a group of consumers is to get, of those that the producers sent, ascending."""
    return [number for numbers in sent for number in numbers if takes(number)]


def faults(numbers: Sequence[int], received: Sequence[Sequence[int]], is_ordered: bool) -> list[str]:
    """What is wrong with what the consumers of a group received, of the messages with these ascending numbers.

    With `is_ordered` each consumer must have seen the messages of each producer in the order they were sent in.
    """
    got = sorted(number for each in received for number in each)
    found = []
    if got != list(numbers):
        wanted, came = set(numbers), set(got)
        twice = {number for number, following in pairwise(got) if number == following}
        for what, wrong in (("missing", wanted - came), ("not for it", came - wanted), ("received twice", twice)):
            if wrong:
                found.append(f"{len(wrong)} {what}, the first is {min(wrong)}")
    if is_ordered:
        found += [f"{number} before {following}" for each in received for number, following in _disorder(each)][:1]
    return found


def _disorder(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of messages of one producer that came in the wrong order."""
    last: dict[int, int] = {}
    found = []
    for number in numbers:
        producer = number // NUMBERS_PER_PRODUCER
        if number < last.get(producer, 0):
            found.append((last[producer], number))
        last[producer] = number
    return found
