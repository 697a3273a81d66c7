"""Publish advisories here about consumers whose clients are at other nodes.

What begins and ends there comes as advisories do. Who begins to listen, and a link between nodes that was lost, make a
node ask the others for all their consumers: what it did not know began, what is not among them ended. So did all of a
node that is a member no more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brokerapp.core.advisories import documents
from brokerapp.core.advisories.documents import Document
from brokerapp.engine.routing import advisory_topics as topics
from brokerapp.engine.routing.destination_trie import overlap
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.protocol import PeerMessageType

if TYPE_CHECKING:
    from brokerapp.core.ports import Placement

#: Topics that tell of consumers begin so.
_ABOUT_CONSUMERS = tuple(f"{topics.PREFIX}{each}." for each in (topics.CONSUMER, topics.VIRTUAL_CONSUMER))
#: Consumers told of in one word: bounds how long a link is busy with one.
AT_ONCE = 500
#: A topic, and the advisory of a consumer that began.
Row = Sequence[Any]


class RemoteAdvisories:
    """Of one node. `here` are the consumers of its own clients, `tell` tells listeners here, and nobody else."""

    def __init__(
        self,
        *,
        placement: Placement,
        here: Callable[[], Iterable[tuple[str, Document]]],
        tell: Callable[[str, Document], None],
    ) -> None:
        self._placement = placement
        self._here, self._tell = here, tell
        #: By session: id of a consumer -> the topic it is told on, and its advisory.
        self._known: dict[str, dict[str, tuple[str, Document]]] = defaultdict(dict)
        self._coming: dict[str, list[Row]] = defaultdict(list)  # of such a list, what came of it, by session
        self._listening = False

    def known(self, event: str) -> list[tuple[str, Document]]:
        """All that is told as such an event: topics and advisories."""
        family = f"{topics.PREFIX}{event}."
        return [row for rows in self._known.values() for row in rows.values() if row[0].startswith(family)]

    # -- asking, and being asked

    def listen(self, wanted: Iterable[Destination], then: Callable[[], None]) -> None:
        """Somebody here listens to these topics from now on; `then` is called when what others have of that is known.

        Others are asked for what nobody here heard of before: of the rest they have told.
        """
        homes = self._placement
        about = (each for each in wanted if any(overlap(each.name, f"{family}>") for family in _ABOUT_CONSUMERS))
        if any(homes.propagation.local_listener_count(each) <= 1 for each in about):
            self._listening = True
            homes.propagation.request(homes.other_sessions, PeerMessageType.GET_CONSUMERS, (), lambda _: None)
        homes.propagation.when_propagated(then)

    def ask(self, session: str) -> None:
        """A node hears us, again perhaps."""
        self._coming.pop(session, None)
        if self._listening:
            self._placement.propagation.request([session], PeerMessageType.GET_CONSUMERS, (), lambda _: None)

    def wanted(self, session: str, id: int) -> None:
        """A node asks."""
        homes, rows = self._placement, [list(each) for each in self._here()]
        for start in range(0, len(rows) or 1, AT_ONCE):
            homes.send(session, PeerMessageType.CONSUMERS, rows[start : start + AT_ONCE], start + AT_ONCE >= len(rows))
        homes.send(session, PeerMessageType.CONFIRMED, id, "")

    # -- what is heard

    def heard_all(self, session: str, rows: Iterable[Row], *, last: bool) -> None:
        """These are all consumers there, with those that came before; or more follow."""
        self._coming[session].extend(rows)
        if not last:
            return
        known, rows = self._known[session], self._coming.pop(session)
        now = {_id(document["ConsumerInfo"]["consumerId"]): (topic, document) for topic, document in rows}
        for id in [id for id in known if id not in now]:
            self._ended(*known.pop(id))
        for id, row in now.items():
            if id not in known:
                known[id] = row
                self._tell(*row)

    def heard(self, session: str, topic: str, body: bytes) -> None:
        """An advisory was published there: of a consumer, perhaps."""
        if not topic.startswith(_ABOUT_CONSUMERS):
            return
        document = json.loads(body)
        if "ConsumerInfo" in document:
            self._known[session][_id(document["ConsumerInfo"]["consumerId"])] = topic, document
        elif "RemoveInfo" in document:
            self._known[session].pop(_id(document["RemoveInfo"]["objectId"]), None)

    def gone(self, session: str) -> None:
        """A node is no member any more, nor are its clients."""
        self._coming.pop(session, None)
        for row in self._known.pop(session, {}).values():
            self._ended(*row)

    def _ended(self, topic: str, document: Document) -> None:
        self._tell(topic, documents.gone_by_id(document["ConsumerInfo"]["consumerId"]))


def _id(id: Mapping[str, object]) -> str:
    return f"{id['connectionId']}:{id['sessionId']}:{id['value']}"
