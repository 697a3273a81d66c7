"""Knows what exists at other nodes, as its advisories describe it, for listeners to advisories at this node.

Connections, consumers, producers and destinations: what begins and ends there arrives as advisories do. When somebody
begins to listen here, and when a lost link is there again, the other nodes are asked for all that exists there of what
is listened to here: what was not known began, what is not among it ended. So did all of a node that is no member any
more.

A destination may be at several nodes, of which each tells that it begins and ends there. Who listens is told of the
first and the last of these. What a JMS client opens has the same id at each node to which the client connects, and may
begin at the next one before the last one has noticed its end. Who listens is not told of such an end.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.advisory_subjects import Document, ending_of, is_of_destination, subject_of
from brokerapp.engine.routing.destination_trie import matches, overlap
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import LocalAdvisories
from brokerapp.nodes.topics.topic_listeners import TopicListeners

#: Patterns of the topics that tell of consumers, of which nodes of every version tell each other.
_OF_CONSUMERS = tuple(f"{topics.PREFIX}{each}.>" for each in (topics.CONSUMER, topics.VIRTUAL_CONSUMER))
#: Topics, or patterns of topics, that tell what begins and ends.
_SHARED = (*_OF_CONSUMERS, f"{topics.PREFIX}{topics.PRODUCER}.>", topics.CONNECTION, *topics.OF_KIND.values())
#: Rows in one message to another node: bounds how long a link is busy with one.
BATCH_SIZE = 500
#: A topic, and the advisory of what began.
Row = Sequence[Any]
#: The topic of an advisory, and the id of what it is about.
_Key = tuple[str, str]


class RemoteAdvisories(NodeObserver):
    """What exists at other nodes, as its advisories describe it."""

    def __init__(
        self, *, peers: Peers, requests: NodeRequests, listeners: TopicListeners, advisories: LocalAdvisories
    ) -> None:
        self._peers, self._requests, self._listeners, self._advisories = peers, requests, listeners, advisories
        self._known: dict[str, dict[_Key, Document]] = defaultdict(dict)  # by session
        self._incomplete: dict[str, list[Row]] = defaultdict(list)  # what came so far of such a list, by session
        self._listening = False

    def known(self, family: str) -> list[tuple[str, Document]]:
        """Return topics and advisories of all that exists at other nodes, of the topics that match this pattern.

        A destination that this node has, too, is left out.
        """
        rows = {key: document for known in self._known.values() for key, document in known.items()}
        return [
            (topic, document)
            for (topic, _), document in rows.items()
            if matches(family, topic) and not self._advisories.exists_here(document)
        ]

    def is_known(self, topic: str, document: Document) -> bool:
        """Return whether what a document is about exists at another node."""
        subject = subject_of(document)
        return subject is not None and any((topic, subject.id) in known for known in self._known.values())

    def publish_there(self, topic: str, message: Message) -> None:
        """Publish an advisory to listeners at other nodes alone."""
        self._listeners.publish([message], RoutedCopy(Destination.topic(topic)), lambda _: None)

    # -- asking, and being asked

    def listen(self, wanted: Iterable[Destination], then: Callable[[], None]) -> None:
        """Learn what exists at other nodes, as somebody listens to these topics; call `then` when that is known.

        Others are asked for what nobody here has listened to before; of the rest they have told.
        """
        about = (each for each in wanted if any(overlap(each.name, family) for family in _SHARED))
        if any(self._listeners.local_count(each) <= 1 for each in about):
            self._listening = True
            self._requests.broadcast(PeerMessageType.GET_CONSUMERS)
        self._requests.when_confirmed(then)

    def on_listener_removed(self, topic: Destination) -> None:
        """Forget what nobody here listens to any more: other nodes tell no more of it."""
        if not self._listeners.local_count(topic):
            for known in self._known.values():
                for key in [key for key in known if matches(topic.name, key[0])]:
                    if not self._listeners.is_heard_here(Destination.topic(key[0])):
                        del known[key]

    def introduce(self, session: str) -> None:
        """Ask a node what exists there if somebody listens here: the link to it is new."""
        self._incomplete.pop(session, None)
        if self._listening:
            self._requests.send([session], PeerMessageType.GET_CONSUMERS, (), lambda _: None)

    def on_requested(self, session: str, id: int) -> None:
        """Tell a node all that exists here of what is listened to there; one of an older version of consumers alone."""
        knows_all = self._peers.members.understands(session, PeerMessageType.BRANCH)
        wanted = _SHARED if knows_all else _OF_CONSUMERS
        rows = [list(row) for row in self._advisories.existing_here() if self._is_wanted(session, row[0], wanted)]
        for start in range(0, len(rows) or 1, BATCH_SIZE):
            is_last = start + BATCH_SIZE >= len(rows)
            self._peers.send(session, PeerMessageType.CONSUMERS, rows[start : start + BATCH_SIZE], is_last)
        self._peers.confirm(session, id)

    def _is_wanted(self, session: str, topic: str, families: Iterable[str]) -> bool:
        is_heard = session in self._listeners.sessions_listening(Destination.topic(topic))
        return is_heard and any(matches(family, topic) for family in families)

    # -- what other nodes tell

    def on_consumers(self, session: str, rows: Iterable[Row], is_last: bool) -> None:
        """Take a part of the list of all that exists there; the last part completes it."""
        self._incomplete[session].extend(rows)
        if not is_last:
            return
        known, now = self._known[session], dict[_Key, Document]()
        for topic, document in self._incomplete.pop(session):
            if (subject := subject_of(document)) is not None:
                now[topic, subject.id] = document
        for key in [key for key in known if key not in now]:
            self._end(session, key)
        for key, document in now.items():
            is_news = not self._exists(key, document)
            known[key] = document
            if is_news:
                self._advisories.publish_here(key[0], document)

    def on_advisory(self, session: str, topic: str, body: bytes) -> bool:
        """Note an advisory that was published there; return whether listeners here are to be told of it."""
        if not any(matches(family, topic) for family in _SHARED):
            return True
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):  # a client can send to such a topic, too
            return True
        subject = subject_of(document)
        if subject is None:
            return True
        key, known = (topic, subject.id), self._known[session]
        if subject.began:
            is_news = not (is_of_destination(document) and self._exists(key, document))
            known[key] = document
            return is_news
        was_known = known.pop(key, None) is not None
        return (was_known or not is_of_destination(document)) and not self._exists(key, document)

    def _exists(self, key: _Key, document: Document) -> bool:
        """Whether listeners here were told of this already."""
        return any(key in known for known in self._known.values()) or self._advisories.exists_here(document)

    def on_member_removed(self, session: str) -> None:
        """Announce the end of all that existed at a node that is no member any more."""
        self._incomplete.pop(session, None)
        for key in list(self._known.get(session, ())):
            self._end(session, key)
        self._known.pop(session, None)

    def _end(self, session: str, key: _Key) -> None:
        document = self._known[session].pop(key)
        if not self._exists(key, document):
            self._advisories.publish_here(key[0], ending_of(document))
