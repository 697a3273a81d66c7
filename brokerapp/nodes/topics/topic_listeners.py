"""Forwards messages of topics to the nodes where somebody listens.

Each node tells the others to which topics and patterns its own clients listen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from brokerapp.core.ports import BrokerEvents
from brokerapp.engine.routing.destination_trie import DestinationTrie, matches
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import RetainedSource

#: The kind of a topic, and its name or a pattern.
TopicKey = tuple[str, str]


class TopicListeners(NodeObserver):
    """Knows who listens to topics on all nodes, and sends messages there."""

    def __init__(self, *, peers: Peers, requests: NodeRequests, retained: RetainedSource, events: BrokerEvents) -> None:
        self._peers, self._requests, self._retained, self._events = peers, requests, retained, events
        self._local: Counter[TopicKey] = Counter()  # subscribers among our own clients
        self._remote: dict[str, set[TopicKey]] = {}  # by session
        self._sessions_by_topic: dict[DestinationKind, DestinationTrie[str]] = {}

    # -- own clients

    def add(self, topic: Destination) -> None:
        """Count one more of our clients that listens to a topic, or to all that match a pattern."""
        key = (str(topic.kind), topic.name)
        self._local[key] += 1
        if self._local[key] == 1:
            self._requests.broadcast(PeerMessageType.LISTENERS, [[*key, True]])

    def remove(self, topic: Destination) -> None:
        """Count one less."""
        key = (str(topic.kind), topic.name)
        self._local[key] -= 1
        if self._local[key] <= 0:
            del self._local[key]
            self._requests.broadcast(PeerMessageType.LISTENERS, [[*key, False]])

    def local_count(self, topic: Destination) -> int:
        """Return how many of our clients listen to exactly this topic or pattern."""
        return self._local[str(topic.kind), topic.name]

    def is_heard_here(self, topic: Destination) -> bool:
        """Return whether one of our clients listens to a topic, by its name or a pattern."""
        return any(kind == topic.kind and matches(name, topic.name) for kind, name in self._local)

    def introduce(self, session: str) -> None:
        """Tell a node to what clients of this one listen."""
        rows = [[*key, True] for key, count in self._local.items() if count > 0]
        self._peers.send(session, PeerMessageType.LISTENERS, 0, rows)

    # -- clients of other nodes

    def on_listeners(self, session: str, id: int, rows: Iterable[tuple[str, str, bool]]) -> None:
        """Learn to what clients of another node begin or cease to listen."""
        known = self._remote.setdefault(session, set())
        for kind, name, begins in rows:
            (known.add if begins else known.discard)((kind, name))
        self._rebuild_index()
        self._events.topic_subscribers_changed()
        self._peers.confirm(session, id)

    def on_link_down(self, session: str) -> None:
        """Forget the listeners of a node, which names them again over the next link."""
        self._remote.pop(session, None)
        self._rebuild_index()

    def _rebuild_index(self) -> None:
        self._sessions_by_topic = {}
        for session, keys in self._remote.items():
            for kind, name in keys:
                self._sessions_by_topic.setdefault(DestinationKind(kind), DestinationTrie()).add(name, session)

    def names(self, kind: DestinationKind) -> list[str]:
        """Return the names and patterns of topics of this kind to which clients of any node listen."""
        every = set(self._local).union(*self._remote.values())
        return sorted(name for of_kind, name in every if of_kind == kind)

    def sessions_listening(self, topic: Destination) -> Iterable[str]:
        """Return the other nodes where somebody listens to a topic."""
        found = self._sessions_by_topic.get(topic.kind)
        return dict.fromkeys(found.find(topic.name)) if found is not None else ()

    # -- messages

    def publish(
        self, messages: Sequence[Message], copy: RoutedCopy, delivering_bridge: Callable[[Message], str | None]
    ) -> None:
        """Send messages of a topic to the nodes where somebody listens, or may be shown them later.

        `delivering_bridge` says whose bridge brought a message; another bridge may bring it to one of those nodes, too.
        """
        if not self._peers.other_sessions:
            return
        listening = self.sessions_listening(copy.destination)
        original, shown = (str(each) if each is not None else "" for each in (copy.original, copy.shown))
        for message in messages:
            is_retained = self._retained.keeps(message, copy.destination)  # by all nodes, for later subscribers
            sessions = self._peers.other_sessions if is_retained else listening
            if sessions:
                fields = (str(copy.destination), message.stored(), original, shown, delivering_bridge(message))
                for session in sessions:
                    self._peers.send(session, PeerMessageType.PUBLISH, *fields)
