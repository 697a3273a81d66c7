"""Knows the consumers of other nodes' clients, for listeners to advisories at this node.

What begins and ends there arrives as advisories do. When somebody begins to listen here, and when a lost link is there
again, the other nodes are asked for all their consumers: those that were not known began, those that are not among them
ended. So did all of a node that is no member any more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.destination_trie import overlap
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import LocalAdvisories
from brokerapp.nodes.topics.topic_listeners import TopicListeners

#: Topics that tell of consumers begin so.
_CONSUMER_TOPICS = tuple(f"{topics.PREFIX}{each}." for each in (topics.CONSUMER, topics.VIRTUAL_CONSUMER))
#: Consumers in one message to another node: bounds how long a link is busy with one.
BATCH_SIZE = 500
#: The body of an advisory; its values are JSON.
Document = dict[str, Any]
#: A topic, and the advisory of a consumer that began.
Row = Sequence[Any]


class RemoteAdvisories(NodeObserver):
    """Consumers at other nodes, as their advisories describe them."""

    def __init__(
        self, *, peers: Peers, requests: NodeRequests, listeners: TopicListeners, advisories: LocalAdvisories
    ) -> None:
        self._peers, self._requests, self._listeners, self._advisories = peers, requests, listeners, advisories
        #: By session: id of a consumer -> the topic of its advisory, and the advisory.
        self._known: dict[str, dict[str, tuple[str, Document]]] = defaultdict(dict)
        self._incomplete: dict[str, list[Row]] = defaultdict(list)  # what came so far of such a list, by session
        self._listening = False

    def known(self, event: str) -> list[tuple[str, Document]]:
        """Return topics and advisories of all consumers at other nodes, as this event announces them."""
        family = f"{topics.PREFIX}{event}."
        return [row for rows in self._known.values() for row in rows.values() if row[0].startswith(family)]

    # -- asking, and being asked

    def listen(self, wanted: Iterable[Destination], then: Callable[[], None]) -> None:
        """Learn of consumers at other nodes, as somebody listens to these topics; call `then` when they are known.

        Others are asked for what nobody here has listened to before; of the rest they have told.
        """
        about = (each for each in wanted if any(overlap(each.name, f"{family}>") for family in _CONSUMER_TOPICS))
        if any(self._listeners.local_count(each) <= 1 for each in about):
            self._listening = True
            self._requests.broadcast(PeerMessageType.GET_CONSUMERS)
        self._requests.when_confirmed(then)

    def introduce(self, session: str) -> None:
        """Ask a node for its consumers if somebody listens here: the link to it is new."""
        self._incomplete.pop(session, None)
        if self._listening:
            self._requests.send([session], PeerMessageType.GET_CONSUMERS, (), lambda _: None)

    def on_requested(self, session: str, id: int) -> None:
        """Tell a node of all consumers of our clients."""
        rows = [list(each) for each in self._advisories.local_consumers()]
        for start in range(0, len(rows) or 1, BATCH_SIZE):
            is_last = start + BATCH_SIZE >= len(rows)
            self._peers.send(session, PeerMessageType.CONSUMERS, rows[start : start + BATCH_SIZE], is_last)
        self._peers.confirm(session, id)

    # -- what other nodes tell

    def on_consumers(self, session: str, rows: Iterable[Row], is_last: bool) -> None:
        """Take a part of the list of all consumers there; the last part completes it."""
        self._incomplete[session].extend(rows)
        if not is_last:
            return
        known, all_rows = self._known[session], self._incomplete.pop(session)
        now = {_id(document["ConsumerInfo"]["consumerId"]): (topic, document) for topic, document in all_rows}
        for id in [id for id in known if id not in now]:
            self._publish_end(*known.pop(id))
        for id, row in now.items():
            if id not in known:
                known[id] = row
                self._advisories.publish_here(*row)

    def on_advisory(self, session: str, topic: str, body: bytes) -> None:
        """Note an advisory that was published there, if it is of a consumer."""
        if not topic.startswith(_CONSUMER_TOPICS):
            return
        document = json.loads(body)
        if "ConsumerInfo" in document:
            self._known[session][_id(document["ConsumerInfo"]["consumerId"])] = topic, document
        elif "RemoveInfo" in document:
            self._known[session].pop(_id(document["RemoveInfo"]["objectId"]), None)

    def on_member_removed(self, session: str) -> None:
        """Announce the end of all consumers of a node that is no member any more."""
        self._incomplete.pop(session, None)
        for row in self._known.pop(session, {}).values():
            self._publish_end(*row)

    def _publish_end(self, topic: str, document: Document) -> None:
        self._advisories.publish_consumer_gone(topic, document["ConsumerInfo"]["consumerId"])


def _id(id: Mapping[str, object]) -> str:
    return f"{id['connectionId']}:{id['sessionId']}:{id['value']}"
