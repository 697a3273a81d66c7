"""Decide which destinations a bridge subscribes to, for the consumers of the other broker. Pure.

Consumers are heard of by advisories. What they want becomes the bridge's own subscriptions at this end: one for all
that want the same (conduit), or one for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from brokerapp.engine.routing.destination_trie import covers
from brokerapp.model.broker_path import RECORD_QUEUE_PREFIX, UNLIMITED, Path
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.network.links.remote_consumers import RemoteConsumer
from brokerapp.network.options.destination_filter import included_part, is_listed
from brokerapp.network.options.options import ConnectorOptions
from brokerapp.selectors.joining import join_selectors

#: Of bridges themselves: advisories, and records of what they passed on. Wanting them is no demand.
_OWN = ("ActiveMQ.Advisory.", RECORD_QUEUE_PREFIX)


#: Consumers that are named where a subscription is for many: of so many more none is, and it stands aside for nobody.
MAX_ORIGINS = 50


@dataclass(frozen=True, slots=True)
class DemandOrigin:
    """One of those a subscription is for."""

    target: Destination
    selector: str | None
    origins: frozenset[str]  #: ids of the consumers, wherever they are: itself, or those behind another bridge
    path: Path  #: from here to the nearest of them
    priority: int  #: that it asks for


@dataclass(slots=True, eq=False)
class DemandSubscription:
    """One subscription of the bridge at this end."""

    id: str
    destination: Destination
    selector: str | None
    priority: int
    path: Path  #: from here to the nearest of those who want it
    durable: bool = False
    #: For whom it is: consumers by their ids; of a durable one subscriptions by client and name.
    consumers: dict[str, DemandOrigin] = field(default_factory=dict)
    static: bool = False  #: wanted whoever consumes
    forwarded: int = 0  #: messages that were passed on for it

    @property
    def origins(self) -> frozenset[str]:
        """Return the consumers that the subscription is for, wherever they are."""
        found = frozenset[str]().union(*[each.origins for each in self.consumers.values()])
        return found if len(found) <= MAX_ORIGINS else frozenset()


@dataclass(frozen=True, slots=True)
class DemandChange:
    """Changes of demand: subscriptions to begin, to end, and those whose consumers changed."""

    begin: tuple[DemandSubscription, ...] = ()
    end: tuple[DemandSubscription, ...] = ()
    other: tuple[DemandSubscription, ...] = ()

    @staticmethod
    def merge(changes: Iterable[DemandChange]) -> DemandChange:
        """Merge several changes into one."""
        several = list(changes)
        parts = ([each for change in several for each in getattr(change, part)] for part in ("begin", "end", "other"))
        return DemandChange(*map(tuple, parts))


NO_CHANGE = DemandChange()


class Demand:
    """Decides which subscriptions a bridge needs here, for the consumers of the broker `there`."""

    def __init__(self, terms: ConnectorOptions, here: str, there: str) -> None:
        self._terms, self._here, self._there = terms, here, there
        self.subscriptions: dict[str, DemandSubscription] = {}  #: by id
        self._last_id = 0
        self._inactive_topics: set[str] = (
            set()
        )  # topics with durable subscriptions that count when somebody consumes them

    @property
    def durable_topics(self) -> set[str]:
        """Return the topics whose messages are stored for the other broker while the bridge is away."""
        return {each.destination.name for each in self.subscriptions.values() if each.durable} | self._inactive_topics

    def start_static(self) -> DemandChange:
        """Begin the subscriptions to statically included destinations, which need no consumer."""
        return DemandChange(tuple([
            self._add_subscription(each, None, 0, (self._there,), self._is_forced(each), static=True)
            for each in self._terms.statically_included
            if not (self._terms.exclude_static and is_listed(each, self._terms.excluded))
        ]))  # fmt: skip

    def on_consumer_started(self, consumer: RemoteConsumer) -> DemandChange:
        """Add a consumer there, or a durable subscription without consumers."""
        if consumer.is_browser or not self._is_near(path := self._path_to(consumer)):
            return NO_CHANGE
        targets = [each for target in consumer.destinations for each in included_part(self._terms, target)]
        if not consumer.is_active and self._terms.dynamic_only:
            self._inactive_topics.update(each.name for each in targets)
            return NO_CHANGE
        return DemandChange.merge([self._add_consumer(target, consumer, path) for target in targets])

    def on_origins_changed(self, consumer: RemoteConsumer) -> DemandChange:
        """The consumer of another bridge is there for others than before: nearer ones, or some that are too far."""
        who, path = _origin_key(consumer), self._path_to(consumer)
        known = [each for each in self.subscriptions.values() if who in each.consumers]
        if not known:
            return self.on_consumer_started(consumer)
        if not self._is_near(path):
            return self._remove_consumer(who)
        for each in known:
            each.consumers[who] = replace(each.consumers[who], origins=consumer.origins, path=path)
        return DemandChange.merge(map(self._update_subscription, known))

    def _path_to(self, consumer: RemoteConsumer) -> Path:
        return (self._there, *consumer.path)

    def _add_consumer(self, target: Destination, consumer: RemoteConsumer, path: Path) -> DemandChange:
        named = consumer.subscription_name is not None and target.kind is DestinationKind.TOPIC
        behind = DemandOrigin(target, consumer.selector, consumer.origins, path, consumer.priority)
        return self._serve(_origin_key(consumer), behind, named or self._is_forced(target))

    def _is_forced(self, target: Destination) -> bool:
        """Whether whoever consumes it is served as a durable subscriber, for as long as it consumes (forceDurable)."""
        return target.kind is DestinationKind.TOPIC and is_listed(target, self._terms.forced_durable)

    def _serve(self, who: str, behind: DemandOrigin, durable: bool) -> DemandChange:
        """By what there is, or by a subscription of its own."""
        known = self._find_shared(behind.target, behind.path, durable)
        if known is not None:
            known.consumers[who] = behind
            return self._update_subscription(known)
        said = behind.selector if self._heeds_selectors(durable) else None
        wanted = self._add_subscription(
            behind.target, said, self._priority(behind.priority, behind.path), behind.path, durable
        )
        wanted.consumers[who] = behind
        return DemandChange((wanted,))

    def _heeds_selectors(self, durable: bool) -> bool:
        """A durable subscription of several keeps what any of them may want: changing its selector would drop that."""
        if self._terms.conduit_subscriptions:
            return self._terms.conduit_selectors and not durable
        return not durable

    def _update_subscription(self, wanted: DemandSubscription) -> DemandChange:
        """It is for others now. One for all takes what any of their selectors takes, if it heeds them."""
        if wanted.static:
            return NO_CHANGE
        path = min((each.path for each in wanted.consumers.values()), key=len)
        if wanted.durable and path == wanted.path:
            return NO_CHANGE
        selector = wanted.selector
        if self._terms.conduit_subscriptions and self._heeds_selectors(wanted.durable):
            selector = join_selectors(each.selector for each in wanted.consumers.values())
        priority = self._priority(wanted.priority, path)
        if selector == wanted.selector and (priority == wanted.priority or not wanted.destination.is_queue):
            wanted.path, wanted.priority = path, priority
            return DemandChange(other=(wanted,))
        del self.subscriptions[wanted.id]
        new = self._add_subscription(wanted.destination, selector, priority, path)
        new.consumers, new.forwarded = wanted.consumers, wanted.forwarded
        return DemandChange((new,), (wanted,))

    def on_consumer_stopped(self, id: str) -> DemandChange:
        """Remove a consumer there; its durable subscription stays."""
        return self._remove_consumer(id)

    def on_subscription_removed(self, client_id: str, name: str) -> DemandChange:
        """Remove a durable subscription that was deleted there."""
        change = self._remove_consumer(_subscription(client_id, name))
        # some brokers tell of its consumers without their client
        return change if change != NO_CHANGE else self._remove_consumer(_subscription("", name))

    def _remove_consumer(self, who: str) -> DemandChange:
        changes = []
        for each in list(self.subscriptions.values()):
            if who in each.consumers:
                del each.consumers[who]
                changes.append(self._on_consumer_removed(each))
        return DemandChange.merge(changes)

    def _on_consumer_removed(self, wanted: DemandSubscription) -> DemandChange:
        """Some of its consumers are gone. With a pattern's last one it is as wide as what the others want."""
        if not wanted.consumers and not wanted.static:
            return DemandChange(end=(self.subscriptions.pop(wanted.id),))
        if wanted.static or any(each.target == wanted.destination for each in wanted.consumers.values()):
            return self._update_subscription(wanted)
        del self.subscriptions[wanted.id]
        others = sorted(wanted.consumers.items(), key=lambda each: not each[1].target.is_pattern)
        served = [self._serve(who, behind, wanted.durable) for who, behind in others]
        return DemandChange.merge([*served, DemandChange(end=(wanted,))])

    def _add_subscription(
        self, target: Destination, selector: str | None, priority: int, path: Path, durable: bool = False,
        *, static: bool = False,
    ) -> DemandSubscription:  # fmt: skip
        self._last_id += 1
        wanted = DemandSubscription(str(self._last_id), target, selector, priority, path, durable, static=static)
        self.subscriptions[wanted.id] = wanted
        return wanted

    def _find_shared(self, target: Destination, path: Path, durable: bool) -> DemandSubscription | None:
        """The subscription that serves such a consumer already."""
        terms, farther = self._terms, len(path) > 1
        if not terms.conduit_subscriptions and not durable:
            return None
        if target.is_queue and farther and not terms.conduit_network_queue_subscriptions:
            return None
        for each in self.subscriptions.values():
            if each.durable is durable and each.destination.kind is target.kind:
                if target.is_queue and len(each.path) > 1 and not terms.conduit_network_queue_subscriptions:
                    continue
                if each.destination == target or (not durable and covers(each.destination.name, target.name)):
                    return each
        return None

    def _is_near(self, path: Path) -> bool:
        """Whether demand from there counts: not too many bridges away, nor behind this broker itself."""
        ttl = self._terms.consumer_ttl
        return (ttl == UNLIMITED or len(path) <= ttl) and self._here not in path

    def _priority(self, asked: int, path: Path) -> int:
        terms = self._terms
        if not terms.decrease_network_consumer_priority:
            return asked
        return terms.consumer_priority_base - (len(path) + 1 if len(path) > 1 else 0)


def _subscription(client_id: str, name: str) -> str:
    return f"durable:{client_id}:{name}"


def _origin_key(consumer: RemoteConsumer) -> str:
    """Return the durable subscription that is consumed, or else the consumer."""
    if consumer.subscription_name is None:
        return consumer.id
    return _subscription(consumer.client_id, consumer.subscription_name)
