"""Exchanges the selectors of queues' consumers among nodes, for virtual topics that are selectorAware.

These copy to a queue only what one of its consumers would take. Each node tells the others the selectors of its own
clients; a SUBSCRIBE is confirmed when all nodes know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from brokerapp.core.ports import Destinations, RoutingPort
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.model.definitions import VirtualTopic
from brokerapp.model.destination import DestinationKind
from brokerapp.nodes.delivery.outbound_consumers import OutboundConsumers
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.selectors import Selector, compile_selector

#: A queue, and the selectors of its consumers; None: one takes everything.
QueueSelectors = tuple[str, Sequence[str | None]]


class SelectorInterest(NodeObserver):
    """Knows the selectors of each queue's consumers on all nodes."""

    def __init__(
        self,
        *,
        peers: Peers,
        requests: NodeRequests,
        queues: Destinations,
        routing: RoutingPort,
        outbound_consumers: OutboundConsumers,
    ) -> None:
        self._peers, self._requests, self._queues = peers, requests, queues
        self._routing, self._outbound_consumers = routing, outbound_consumers
        self._announced: dict[str, frozenset[str | None]] = {}  # what others know of our own consumers, by queue
        self._remote: dict[str, dict[str, set[Selector | None]]] = defaultdict(dict)  # by queue, then session

    def selectors_of(self, log: MessageLog) -> set[Selector | None]:
        """Return the selectors of all consumers of a queue, wherever they are; None: one takes everything."""
        found = {each.consumer_selector for each in self._outbound_consumers.known_consumers(log)}
        return found.union(*self._remote[log.name].values()) if log.name in self._remote else found

    # -- own clients

    def on_consumers_changed(self, log: MessageLog) -> None:
        """Tell other nodes of the selectors of a queue if that is new to them."""
        self._announce([log])

    def on_definitions_changed(self) -> None:
        """Tell other nodes what is new to them, as other topics are selectorAware now."""
        self._announce(self._queues)

    def _announce(self, logs: Iterable[MessageLog]) -> None:
        if not self._peers.other_sessions:
            return
        rows = [row for log in logs if (row := self._unannounced(log)) is not None]
        if rows:
            self._requests.broadcast(PeerMessageType.SELECTORS, False, rows)

    def introduce(self, session: str) -> None:
        """Tell a node all; what it was told before this link counts no more."""
        own = {log.name: selectors for log in self._queues if (selectors := self._local_selectors(log))}
        self._announced = own
        rows = [(name, list(selectors)) for name, selectors in own.items()]
        self._peers.send(session, PeerMessageType.SELECTORS, 0, True, rows)

    def _unannounced(self, log: MessageLog) -> QueueSelectors | None:
        """Return the selectors of a queue if others do not know them yet, and count them as announced."""
        own = self._local_selectors(log)
        if own == self._announced.get(log.name, frozenset()):
            return None
        if own:
            self._announced[log.name] = own
        else:
            del self._announced[log.name]
        return log.name, list(own)

    def _local_selectors(self, log: MessageLog) -> frozenset[str | None]:
        """Return the selectors of our own clients, where they matter."""
        if log.destination.kind is not DestinationKind.QUEUE or not self._is_selector_aware(log):
            return frozenset()
        consumers = (each for each in self._outbound_consumers.known_consumers(log) if not each.owner_session)
        return frozenset(
            each.consumer_selector.text if each.consumer_selector is not None else None for each in consumers
        )

    def _is_selector_aware(self, log: MessageLog) -> bool:
        name = log.destination.name
        return any(
            isinstance(each, VirtualTopic) and each.selector_aware and topic_behind(each, name) is not None
            for each in self._routing.table.definitions.virtual_destinations
        )

    # -- clients of other nodes

    def on_selectors(self, session: str, id: int, replace: bool, rows: Iterable[QueueSelectors]) -> None:
        """Take the selectors of another node, all that it has if they `replace` the former ones."""
        if replace:
            self.on_member_removed(session)
        for name, texts in rows:
            selectors = {compile_selector(text) if text is not None else None for text in texts}
            if selectors:
                self._remote[name][session] = selectors
            else:
                self._remove(name, session)
        self._peers.confirm(session, id)

    def on_member_removed(self, session: str) -> None:
        """Forget the selectors of a node."""
        for name in list(self._remote):
            self._remove(name, session)

    def on_log_removed(self, name: str) -> None:
        """Forget the selectors of a queue."""
        self._remote.pop(name, None)
        self._announced.pop(name, None)

    def _remove(self, name: str, session: str) -> None:
        self._remote[name].pop(session, None)
        if not self._remote[name]:
            del self._remote[name]
