"""Choose consumers of a queue by selectors and message groups.

Each message is offered to the consumers that may be given one: the highest priority first, in turn among equals. What
none of them takes stays where it is, and is not offered to the same consumers again (`Subscription.scanned_up_to`).
"""

from __future__ import annotations

from collections import deque
from itertools import groupby
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_groups import MessageGroups, group_of, position_in_group
from brokerapp.engine.dispatch.round_robin import highest_ranked
from brokerapp.engine.routing.bridge_eligibility import BridgeDecision, BridgeEligibility
from brokerapp.selectors import SelectorView

if TYPE_CHECKING:
    from brokerapp.engine.dispatch.bridge_rate_filter import BridgeRateFilter
    from brokerapp.engine.dispatch.dispatch_policy import DispatchPolicy
    from brokerapp.engine.dispatch.subscription import Subscription
    from brokerapp.engine.entries.log_entry import LogEntry
    from brokerapp.engine.entries.message_order import OrderKey
    from brokerapp.model.destination import Destination
    from brokerapp.model.policy_strategies import NetworkBridgeFilter
    from brokerapp.selectors import Selector


class SelectiveDispatch:
    """Assign messages to the consumers with credit, in one round."""

    def __init__(
        self, able: list[tuple[Subscription, int]], log: str, destination: Destination, groups: MessageGroups | None,
        rules: DispatchPolicy, place: OrderKey, turn: int, gate: BridgeRateFilter | None = None,
    ) -> None:  # fmt: skip
        self.turn = turn  #: turns that were taken so far
        self._log, self._destination, self._groups, self._policy = log, destination, groups, rules
        self._order_key, self._bridge_filter = place, gate
        self._credit = dict(able)
        self._ranks = [deque(same) for _, same in groupby(self._credit, key=highest_ranked(rules))]
        self._assigned: dict[Subscription, list[LogEntry]] = {consumer: [] for consumer, _ in able}
        self._after = 0
        self._evaluation: SelectorEvaluation | None = None  # of the entry that is assigned

    @property
    def assignments(self) -> list[tuple[Subscription, list[LogEntry]]]:
        """Return which consumer gets which messages."""
        return [(consumer, entries) for consumer, entries in self._assigned.items() if entries]

    def scanned_up_to(self, consumer: Subscription) -> int:
        """Return the position up to which nothing is left for a consumer."""
        return consumer.scanned_up_to.get(self._log, 0)

    def offer(self, entries: deque[LogEntry], upto: int, after: int = 0) -> list[LogEntry]:
        """Assign what is wanted of these messages, which stay in order; return what was assigned.

        They are what is left of the messages from `after` to `upto`, and are for those who have seen all before them.
        """
        self._after = after
        assigned: list[LogEntry] = []
        able = [consumer for consumer in self._credit if self.scanned_up_to(consumer) >= after]
        if able and entries:
            new = self._take_after(entries, min(map(self.scanned_up_to, able)))
            for position, entry in enumerate(new):
                if not self._credit:
                    entries.extend(new[position:])
                    break
                (assigned if self._assign(entry) else entries).append(entry)
        for consumer in self._credit:
            if self.scanned_up_to(consumer) >= after:
                consumer.scanned_up_to[self._log] = max(upto, self.scanned_up_to(consumer))
        return assigned

    def _take_after(self, entries: deque[LogEntry], place: int) -> list[LogEntry]:
        """Take the messages from the end that have a later position, in order."""
        taken = []
        while entries and self._order_key(entries[-1]) > place:
            taken.append(entries.pop())
        taken.reverse()
        return taken

    def _assign(self, entry: LogEntry) -> bool:
        groups, group = self._groups, group_of(entry)
        self._evaluation = None
        if groups is None or group is None:
            consumer = self._find_consumer(entry)
        else:
            consumer = self._find_group_consumer(entry, group, groups)
        if consumer is None:
            return False
        self._assigned[consumer].append(entry)
        self._credit[consumer] -= 1
        self._spend_credit(consumer, entry)
        return True

    def _find_consumer(self, entry: LogEntry) -> Subscription | None:
        for rank in self._ranks:
            for consumer in rank:
                if self._is_wanted(consumer, entry):
                    return consumer
        return None

    def _find_group_consumer(self, entry: LogEntry, group: str, groups: MessageGroups) -> Subscription | None:
        """Return the owner of a group; without one, the consumer that wants the message and owns the fewest groups."""
        owner, position = groups.owner(group), position_in_group(entry)
        if owner is not None and position != 1:
            if owner not in self._credit or not self._is_wanted(owner, entry):
                return None
            if position < 0:
                groups.close(group)
            return owner
        candidates = (each for rank in self._ranks for each in sorted(rank, key=groups.count_owned_by))
        consumer = next((each for each in candidates if self._is_wanted(each, entry)), None)
        if consumer is not None:
            groups.assign(group, consumer)
            entry.first_of_group = True
        return consumer

    def _is_wanted(self, consumer: Subscription, entry: LogEntry) -> bool:
        if not self._after <= self.scanned_up_to(consumer) < self._order_key(entry):
            return False
        if consumer.selector is None:
            return True
        if self._evaluation is None:
            rules = self._policy.bridge_filter
            self._evaluation = SelectorEvaluation(entry, self._destination, self._bridge_filter, rules)
        return self._evaluation(consumer.selector)

    def _spend_credit(self, consumer: Subscription, entry: LogEntry) -> None:
        self.turn += 1
        consumer.last_turn_by_log[self._log] = self.turn
        rank = next(each for each in self._ranks if consumer in each)
        if not self._credit[consumer]:
            del self._credit[consumer]
            rank.remove(consumer)
            consumer.scanned_up_to[self._log] = max(self._order_key(entry), self.scanned_up_to(consumer))
        elif not self._policy.strict_order:
            rank.remove(consumer)
            rank.append(consumer)


class SelectorEvaluation:
    """Evaluate selectors for one message, equal ones once. At a queue its bridge filter decides for bridges."""

    __slots__ = ("_bridge_filter", "_bridge_policy", "_destination", "_entry", "_headers", "_results")

    def __init__(
        self, entry: LogEntry, destination: Destination, gate: BridgeRateFilter | None = None,
        of_bridges: NetworkBridgeFilter | None = None,
    ) -> None:  # fmt: skip
        self._entry, self._destination = entry, destination
        self._bridge_filter, self._bridge_policy = gate, of_bridges
        self._headers: SelectorView | None = None
        self._results: dict[Selector | BridgeEligibility, bool] = {}

    def __call__(self, selector: Selector | BridgeEligibility) -> bool:
        known = self._results.get(selector)
        if known is None:
            known = self._may_cross(selector) if isinstance(selector, BridgeEligibility) else self._matches(selector)
            self._results[selector] = known
        return known

    def _matches(self, selector: Selector) -> bool:
        if self._headers is None:
            self._headers = selector_headers(self._entry, self._destination)
        return selector.matches(self._headers)

    def _may_cross(self, crossing: BridgeEligibility) -> bool:
        if self._bridge_filter is None:  # a topic: it is not offered again
            found = crossing.verdict(self._entry.message.path, self)
            crossing.tally.too_far += found is BridgeDecision.TOO_FAR
            return found is BridgeDecision.CROSSES
        return self._bridge_filter.admit(crossing, self._entry, self, self._bridge_policy)


def selector_headers(entry: LogEntry, destination: Destination) -> SelectorView:
    """Return the headers of an entry as its consumer would get them, with its body, for a selector."""
    headers = SelectorView(entry.message.headers, entry.message.body)
    headers["destination"] = entry.shown_destination or destination.stomp
    if entry.original_destination:
        headers["original-destination"] = entry.original_destination
    headers["JMSXDeliveryCount"] = str(entry.redelivery_count + 1)
    if entry.redelivery_count:
        headers["redelivered"] = "true"
    return headers
