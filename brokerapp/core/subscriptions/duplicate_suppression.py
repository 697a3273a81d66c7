"""Choose one of several bridge consumers that serve the same consumers by different paths.

Where brokers are joined in a circle a consumer is heard of by more than one way. Of the bridges that would take its
messages there one serves it, that of the highest priority and among those that of the shortest way; the others rest,
until that one ends (ActiveMQ's suppressDuplicateTopicSubscriptions and suppressDuplicateQueueSubscriptions). The way is
counted also where bridges have one priority (decreaseNetworkConsumerPriority is false): who serves must not depend on
which of them was heard of first, as it does in ActiveMQ, nor messages take two bridges where one leads.

Rivals may be clients of different nodes of a broker. Each node tells the others of its own, and each comes to the same
answer by itself; who subscribes waits until all nodes know.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brokerapp.core.subscriptions.served_subscriptions import ServedSubscriptions
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.routing.bridge_eligibility import BridgeEligibility
from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerEvents, Placement

#: What one node tells another: a destination, the key of a bid, and what else it says; None: it is taken back.
Row = tuple[str, str, Sequence[Any] | None]


@dataclass(frozen=True, slots=True)
class BridgeBid:
    """Describes one consumer of a bridge, at any node, as a candidate for serving."""

    key: str  #: unlike that of any other, at any node
    priority: int
    hops: int  #: from here to the nearest of its consumers
    since_us: int  #: when it began, since the epoch
    consumers: frozenset[str]  #: ids of those it is there for; empty: whoever
    yields: bool  #: it stands aside while others serve all of them

    def told(self) -> Sequence[Any]:
        """Return the bid as other nodes are told, without its key."""
        return self.priority, self.hops, self.since_us, sorted(self.consumers), self.yields


@dataclass(slots=True)
class _LocalBid:
    """Of a consumer whose client is ours."""

    bid: BridgeBid
    serves: bool = False


class DuplicateSuppression:
    """Decides which of several consumers of bridges serve the same consumers elsewhere."""

    def __init__(self, *, events: BrokerEvents, placement: Placement, served: ServedSubscriptions) -> None:
        self._events, self._placement, self._served = events, placement, served
        self._here: dict[Destination, dict[Subscription, _LocalBid]] = {}
        self._there: dict[Destination, dict[str, dict[str, BridgeBid]]] = {}  # by session of another node, then key

    # -- consumers of our own clients

    def admits(self, subscription: Subscription) -> bool:
        """Add a consumer; return whether it is served. Others that it replaces are suspended."""
        if subscription.bridge_eligibility is None:
            return True
        target = subscription.destinations[0]
        standing = _LocalBid(_bid(subscription, time.time_ns() // 1000))
        serving = who_serve([*self._bids(target), standing.bid])
        standing.serves = standing.bid in serving
        self._here.setdefault(target, {})[subscription] = standing
        self._tell(target, standing.bid)
        self._follow(target, serving)
        return standing.serves

    def update_origins(self, subscription: Subscription, crossing: BridgeEligibility, priority: int) -> None:
        """Note that a consumer of a bridge is there for other consumers now, nearer or farther away.

        Whoever listens is told, but for what rests: of that they are told when it does so no longer.
        """
        before = subscription.bridge_eligibility
        assert before is not None  # of a bridge
        if (before.consumers, before.path, subscription.priority) == (crossing.consumers, crossing.path, priority):
            return
        before.consumers, before.path, subscription.priority = crossing.consumers, crossing.path, priority
        target = subscription.destinations[0]
        standing = self._here.get(target, {}).get(subscription)
        if standing is None or standing.serves:
            self._events.consumer_moved(subscription)
        if standing is not None:
            standing.bid = _bid(subscription, standing.bid.since_us)
            self._tell(target, standing.bid)
            self._follow(target)

    def is_suppressed(self, subscription: Subscription) -> bool:
        """Return whether a consumer is suspended."""
        standing = self._here.get(subscription.destinations[0], {}).get(subscription)
        return standing is not None and not standing.serves

    def left(self, subscription: Subscription) -> bool:
        """Remove a consumer that ends, and resume those it replaced; return whether it was suspended."""
        target = subscription.destinations[0]
        standing = self._here.get(target, {}).pop(subscription, None)
        if standing is None:
            return False
        if not self._here[target]:
            del self._here[target]
        self._tell(target, standing.bid, gone=True)
        if standing.serves:
            self._follow(target)
        return not standing.serves

    def _bids(self, target: Destination) -> Iterator[BridgeBid]:
        for standing in self._here.get(target, {}).values():
            yield standing.bid
        for bids in self._there.get(target, {}).values():
            yield from bids.values()

    def _follow(self, target: Destination, serving: set[BridgeBid] | None = None) -> None:
        """Let serve who is to, and the others rest."""
        serving = who_serve(self._bids(target)) if serving is None else serving
        for each, standing in list(self._here.get(target, {}).items()):
            if standing.serves is not (standing.bid in serving):
                standing.serves = not standing.serves
                (self._served.resume if standing.serves else self._served.suspend)(each)

    # -- other nodes

    def _tell(self, target: Destination, bid: BridgeBid, *, gone: bool = False) -> None:
        self._placement.bridge_bids.announce(target, bid.key, None if gone else bid.told())

    def local_bids(self) -> list[tuple[str, str, Sequence[Any]]]:
        """Return all bids of our own clients, as other nodes are told."""
        return [
            (str(target), each.bid.key, each.bid.told())
            for target, known in self._here.items()
            for each in known.values()
        ]

    def on_remote_bids(self, session: str, rows: Iterable[Row], *, replace: bool) -> None:
        """Take bids of another node, all that it has if they `replace` the former ones."""
        changed = self._drop(session) if replace else set()
        for name, key, told in rows:
            target = Destination.parse(name)
            changed.add(target)
            bids = self._there.setdefault(target, defaultdict(dict))[session]
            if told is None:
                bids.pop(key, None)
            else:
                priority, hops, since_us, consumers, yields = told
                bids[key] = BridgeBid(key, priority, hops, since_us, frozenset(consumers), yields)
            self._tidy(target, session)
        for target in changed:
            self._follow(target)

    def forget(self, session: str) -> None:
        """A node is no member any more."""
        for target in self._drop(session):
            self._follow(target)

    def _drop(self, session: str) -> set[Destination]:
        """Know of none there; where there were some."""
        found = {target for target, known in self._there.items() if session in known}
        for target in found:
            self._there[target][session].clear()
            self._tidy(target, session)
        return found

    def _tidy(self, target: Destination, session: str) -> None:
        if not self._there[target][session]:
            del self._there[target][session]
        if not self._there[target]:
            del self._there[target]


def _bid(subscription: Subscription, since_us: int) -> BridgeBid:
    crossing = subscription.bridge_eligibility
    assert crossing is not None  # of a bridge
    key = f"{subscription.client.id} {subscription.key}"
    return BridgeBid(key, subscription.priority, len(crossing.path), since_us, crossing.consumers, crossing.yields)


def who_serve(bids: Iterable[BridgeBid]) -> set[BridgeBid]:
    """Return the bids that are to serve: for each consumer one at least. All nodes that know them agree.

    The higher priority comes first, then the shorter way; among equals who was there first, so that it goes on.
    """
    covered: set[str] = set()
    serving = set()
    for each in sorted(bids, key=lambda bid: (-bid.priority, bid.hops, bid.since_us, bid.key)):
        if not (each.yields and each.consumers and each.consumers <= covered):
            serving.add(each)
            covered |= each.consumers
    return serving
