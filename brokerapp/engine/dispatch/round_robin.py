"""Choose the next consumer of a log in turn, where any consumer may get any message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry

#: Consumers with credit, and how much, in the order in which they are next.
EligibleConsumers = list[tuple[Subscription, int]]
#: Who gets which messages, each consumer's in order.
Assignments = list[tuple[Subscription, list[LogEntry]]]

_by_priority: Callable[[Subscription], int] = attrgetter("priority")


def _same_priority(_consumer: Subscription) -> int:
    return 0


def highest_ranked(rules: DispatchPolicy) -> Callable[[Subscription], int]:
    """Return the key that puts consumers of a higher priority first."""
    return _by_priority if rules.consumer_priority else _same_priority


def eligible_consumers(consumers: Sequence[Subscription], turn: int, rules: DispatchPolicy) -> EligibleConsumers:
    """Return the consumers with credit, and how much: the highest priority first, in turn among equals.

    An exclusive consumer is alone, the first that came among those of the highest priority.
    """
    rank = highest_ranked(rules)
    exclusive = [consumer for consumer in consumers if consumer.exclusive]
    if exclusive:
        only = max(exclusive, key=rank)
        return [(only, only.credit)] if only.is_ready else []
    first = 0 if rules.strict_order else turn % len(consumers)
    in_turn = sorted([*consumers[first:], *consumers[:first]], key=rank, reverse=True)
    return [(consumer, consumer.credit) for consumer in in_turn if consumer.is_ready]


def eligible_by_selectivity(
    consumers: Sequence[Subscription], log: str, turn: int, rules: DispatchPolicy
) -> EligibleConsumers:
    """Return the consumers with credit where not each takes every message: who took one longest ago is next.

    A newcomer has its turn after all who are there.
    """
    if rules.strict_order:
        return eligible_consumers(consumers, turn, rules)
    in_turn = sorted(consumers, key=lambda consumer: consumer.last_turn_by_log.setdefault(log, turn))
    return eligible_consumers(in_turn, 0, rules)


def deal_round_robin(
    ready: deque[LogEntry], takers: EligibleConsumers, rules: DispatchPolicy
) -> tuple[Assignments, int]:
    """Take from the ready messages as much as there is credit for: who gets what, and how many turns that took."""
    if len(takers) == 1:
        consumer, room = takers[0]
        return [(consumer, _take(ready, room))], 0
    if rules.strict_order:
        dealt = [(consumer, _take(ready, room)) for consumer, room in takers]
        return [(consumer, entries) for consumer, entries in dealt if entries], 0
    return _round_robin(ready, takers, rules)


def _take(ready: deque[LogEntry], room: int) -> list[LogEntry]:
    if room < len(ready):
        return [ready.popleft() for _ in range(room)]
    entries = list(ready)
    ready.clear()
    return entries


def _round_robin(ready: deque[LogEntry], takers: EligibleConsumers, rules: DispatchPolicy) -> tuple[Assignments, int]:
    """Give one each in turn: to the highest priority until it has no credit, then to the next."""
    rank, waiting = highest_ranked(rules), len(ready)
    dealt: list[tuple[Subscription, list[LogEntry], int]] = [(consumer, [], room) for consumer, room in takers]
    for _, equals in groupby(dealt, key=lambda each: rank(each[0])):
        unfilled = [(entries, room) for _, entries, room in equals]
        while ready and unfilled:
            for entries, _ in unfilled[: len(ready)]:
                entries.append(ready.popleft())
            unfilled = [(entries, room) for entries, room in unfilled if len(entries) < room]
    return [(consumer, entries) for consumer, entries, _ in dealt if entries], waiting - len(ready)
