"""Exchanges the selectors of queues' consumers among nodes, for virtual topics that are selectorAware.

These give a queue only what one of its consumers would take. Each node tells the others of those among its own
clients; who subscribes waits until all nodes know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.routing.consumer_queues import topic_behind
from brokerapp.model.definitions import VirtualTopic
from brokerapp.model.destination import DestinationKind
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.selectors import Selector, compile_selector

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: A queue, and the selectors of its consumers; None: one takes everything.
QueueSelectors = tuple[str, Sequence[str | None]]


class SelectorInterest:
    """Knows the selectors of each queue's consumers on all nodes."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._announced: dict[str, frozenset[str | None]] = {}  # what others know of our own consumers, by queue
        self._remote: dict[str, dict[str, set[Selector | None]]] = defaultdict(dict)  # by queue, then session

    def selectors_of(self, log: MessageLog) -> set[Selector | None]:
        """The selectors of all its consumers, wherever they are; None: one takes everything."""
        found = {each.consumer_selector for each in self._ownership.outbound_consumers.known_consumers(log)}
        return found.union(*self._remote[log.name].values()) if log.name in self._remote else found

    def on_consumers_changed(self, log: MessageLog) -> None:
        """Consumers of ours came or went: others are told, if that is new to them."""
        if self._ownership.other_sessions and (row := self._unannounced(log)) is not None:
            self._ownership.propagation.request(
                self._ownership.other_sessions, PeerMessageType.SELECTORS, (False, [row]), lambda _: None
            )

    def on_definitions_changed(self) -> None:
        """Other topics are selectorAware now."""
        if not self._ownership.other_sessions:
            return
        rows = [row for log in self._broker.queues if (row := self._unannounced(log)) is not None]
        if rows:
            self._ownership.propagation.request(
                self._ownership.other_sessions, PeerMessageType.SELECTORS, (False, rows), lambda _: None
            )

    def send_all(self, session: str) -> None:
        """Let a node know all of it; what was told before it could hear us counts no more."""
        own = {log.name: wanted for log in self._broker.queues if (wanted := self._local_selectors(log))}
        self._announced = own
        self._ownership.send(
            session, PeerMessageType.SELECTORS, 0, True, [(name, list(wanted)) for name, wanted in own.items()]
        )

    def _unannounced(self, log: MessageLog) -> QueueSelectors | None:
        """What others do not know yet."""
        own = self._local_selectors(log)
        if own == self._announced.get(log.name, frozenset()):
            return None
        if own:
            self._announced[log.name] = own
        else:
            del self._announced[log.name]
        return log.name, list(own)

    def _local_selectors(self, log: MessageLog) -> frozenset[str | None]:
        """What those of our own clients want, where it matters to anybody."""
        if log.destination.kind is not DestinationKind.QUEUE or not self._is_selector_aware(log):
            return frozenset()
        consumers = (each for each in self._ownership.outbound_consumers.known_consumers(log) if not each.owner_session)
        selectors = (each.consumer_selector for each in consumers)
        return frozenset(each.text if each is not None else None for each in selectors)

    def _is_selector_aware(self, log: MessageLog) -> bool:
        name = log.destination.name
        return any(
            isinstance(each, VirtualTopic) and each.selector_aware and topic_behind(each, name) is not None
            for each in self._broker.routing.table.definitions.virtual_destinations
        )

    def on_selectors(self, session: str, id: int, anew: bool, rows: Iterable[QueueSelectors]) -> None:
        """What is wanted at another node; `anew`: that is all of it."""
        if anew:
            self.forget(session)
        for name, texts in rows:
            wanted = {compile_selector(text) if text is not None else None for text in texts}
            if wanted:
                self._remote[name][session] = wanted
            else:
                self._remove(name, session)
        self._ownership.send(session, PeerMessageType.CONFIRMED, id, "")

    def forget(self, session: str) -> None:
        """A node is no member any more."""
        for name in list(self._remote):
            self._remove(name, session)

    def on_log_removed(self, name: str) -> None:
        """A queue is gone."""
        self._remote.pop(name, None)
        self._announced.pop(name, None)

    def _remove(self, name: str, session: str) -> None:
        self._remote[name].pop(session, None)
        if not self._remote[name]:
            del self._remote[name]
