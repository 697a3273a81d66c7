"""Makes what one node declares known to all others before clients may rely on it.

That is which logs exist, with what attributes, and to which topics somebody listens. Whoever must be sure waits until
all other members have said that they know; one that leaves or dies is waited for no longer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from brokerapp.engine.routing.advisory_topics import is_advisory
from brokerapp.engine.routing.destination_trie import DestinationTrie
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.links.protocol import INDEPENDENT_QUESTIONS, PeerMessageType

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

logger = logging.getLogger(__name__)

#: Told with "", or with why it cannot be.
OnConfirmed = Callable[[str], None]


@dataclass(slots=True)
class PendingPropagation:
    """What was said and is not known by all yet."""

    message_type: PeerMessageType
    arguments: tuple[Any, ...]
    waiting: set[str]  #: sessions that did not answer
    callbacks: list[OnConfirmed]  #: what goes on when all have
    refusal: str = ""

    def run_callbacks(self) -> None:
        """All have answered. A fault in what follows keeps nobody else waiting."""
        for then in self.callbacks:
            try:
                then(self.refusal)
            except Exception:
                logger.exception("what waited for the answers of other nodes could not be done")


class Propagation:
    """Sends declarations to other nodes, and calls back when all have confirmed them."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._ids = itertools.count(1)
        self._pending: dict[int, PendingPropagation] = {}
        self._unreachable: set[str] = set()  # sessions that answer no more, though Homes does not go by that yet
        self._local_topics: Counter[tuple[str, str]] = Counter()  # own subscribers, by kind of topic and name
        self._remote_topics: dict[str, set[tuple[str, str]]] = {}  # session -> what is listened to there
        self._sessions_by_topic: dict[DestinationKind, DestinationTrie[str]] = {}

    # -- saying, and being sure

    def request(
        self, sessions: Iterable[str], word: PeerMessageType, facts: tuple[Any, ...], then: OnConfirmed
    ) -> None:
        """Say it to these nodes; `then` is called when all have answered."""
        asked = PendingPropagation(word, facts, set(sessions) - self._unreachable, [then])
        if not asked.waiting:
            then("")
            return
        id = next(self._ids)
        self._pending[id] = asked
        for session in asked.waiting:
            self._ownership.send(session, word, id, *facts)

    def on_confirmed(self, session: str, id: int, refusal: str) -> None:
        """A node knows, or says why it cannot be."""
        asked = self._pending.get(id)
        if asked is None:
            return
        asked.waiting.discard(session)
        asked.refusal = asked.refusal or refusal
        if not asked.waiting:
            del self._pending[id]
            asked.run_callbacks()

    def when_propagated(self, then: Callable[[], None]) -> None:
        """Go on when all that was said before is known to whom it was said; at once where nothing is open."""
        pending = {id for id, asked in self._pending.items() if asked.message_type not in INDEPENDENT_QUESTIONS}
        if not pending:
            then()
            return

        def done(id: int, _refusal: str) -> None:
            pending.discard(id)
            if not pending:
                then()

        for id in pending:
            self._pending[id].callbacks.append(partial(done, id))

    def on_link_up(self, session: str) -> None:
        """A node hears us from now on: say what it has not answered."""
        for id, asked in self._pending.items():
            if session in asked.waiting and asked.message_type is not PeerMessageType.ATTACH:
                self._ownership.send(session, asked.message_type, id, *asked.arguments)

    def send_listeners(self, session: str) -> None:
        """Let a node know what is listened to here."""
        rows = [[*key, True] for key, count in self._local_topics.items() if count > 0]
        self._ownership.send(session, PeerMessageType.LISTENERS, 0, rows)

    def on_link_down(self, session: str) -> None:
        """A node says again what is listened to there when it hears us again."""
        self._remote_topics.pop(session, None)
        self._rebuild_index()
        self._confirm_for(
            session, [id for id, asked in self._pending.items() if asked.message_type is PeerMessageType.ATTACH]
        )

    def on_member_lost(self, session: str) -> None:
        """A node is no member any more: what is said from now on does not wait for it, either."""
        self._unreachable.add(session)
        self._confirm_for(session, list(self._pending))

    def is_lost(self, session: str) -> bool:
        """Whether a node is no member any more, though Homes may not go by that yet."""
        return session in self._unreachable

    def forget(self, session: str) -> None:
        """Nobody says anything to it from now on."""
        self._unreachable.discard(session)

    def _confirm_for(self, session: str, ids: Iterable[int]) -> None:
        """Wait no longer for what this node was to answer."""
        for id in ids:
            if session in self._pending[id].waiting:
                self.on_confirmed(session, id, "")

    # -- logs

    async def declare_logs(self, declarations: Sequence[tuple[str, str | None]]) -> None:
        """These logs were declared in the store, or removed there: be sure that all nodes know."""
        for log, attributes in declarations:
            if attributes is None:
                self._ownership.on_log_removed(log)
        others = self._ownership.other_sessions
        if not others:
            return
        done = asyncio.get_running_loop().create_future()
        self.request(
            others, PeerMessageType.LOGS, ([list(each) for each in declarations],), lambda _: done.set_result(None)
        )
        await done

    def announce_removed(self, log: str) -> None:
        """A log is in the store no more: its name may be used again."""
        self.request(self._ownership.other_sessions, PeerMessageType.LOGS, ([[log, None]],), lambda _: None)

    # -- listeners of topics

    def add_listener(self, topic: Destination) -> None:
        """One more of our clients listens to a topic, or to all that match a pattern."""
        key = (str(topic.kind), topic.name)
        self._local_topics[key] += 1
        if self._local_topics[key] == 1:
            self.request(self._ownership.other_sessions, PeerMessageType.LISTENERS, ([[*key, True]],), lambda _: None)

    def local_listener_count(self, topic: Destination) -> int:
        """How many of our clients listen to just this: a topic, or a pattern."""
        return self._local_topics[str(topic.kind), topic.name]

    def remove_listener(self, topic: Destination) -> None:
        """One less."""
        key = (str(topic.kind), topic.name)
        self._local_topics[key] -= 1
        if self._local_topics[key] <= 0:
            del self._local_topics[key]
            self.request(self._ownership.other_sessions, PeerMessageType.LISTENERS, ([[*key, False]],), lambda _: None)

    def on_listeners(self, session: str, id: int, rows: Iterable[tuple[str, str, bool]]) -> None:
        """What is listened to at another node, or is no longer."""
        known = self._remote_topics.setdefault(session, set())
        for kind, name, begins in rows:
            (known.add if begins else known.discard)((kind, name))
        self._rebuild_index()
        self._broker.events.topic_subscribers_changed()
        self._ownership.send(session, PeerMessageType.CONFIRMED, id, "")

    def _rebuild_index(self) -> None:
        self._sessions_by_topic = {}
        for session, keys in self._remote_topics.items():
            for kind, name in keys:
                self._sessions_by_topic.setdefault(DestinationKind(kind), DestinationTrie()).add(name, session)

    def listened_topics(self, kind: DestinationKind) -> list[str]:
        """The names and patterns of topics of this kind that clients of any node listen to."""
        every = set(self._local_topics).union(*self._remote_topics.values())
        return sorted(name for of_kind, name in every if of_kind == kind)

    def sessions_listening(self, topic: Destination) -> Iterable[str]:
        """The nodes where somebody listens to this topic."""
        wanted = self._sessions_by_topic.get(topic.kind)
        return dict.fromkeys(wanted.find(topic.name)) if wanted is not None else ()

    def publish_to_listeners(self, message: Message, copy: RoutedCopy, by: str | None) -> None:
        """A message of a topic goes to the nodes where somebody listens, or may be told of it later.

        What came by a bridge may come to one of them by another bridge, too; see bridging.bringer.
        """
        if not self._ownership.other_sessions:
            return
        is_kept = self._broker.retained.keeps(message, copy.destination)  # by all nodes, for who subscribes later
        sessions = self._ownership.other_sessions if is_kept else self.sessions_listening(copy.destination)
        if sessions:
            original, shown = (str(each) if each is not None else "" for each in (copy.original, copy.shown))
            facts = (str(copy.destination), message.stored(), original, shown, by)
            for session in sessions:
                self._ownership.send(session, PeerMessageType.PUBLISH, *facts)

    def on_topic_message(
        self, session: str, topic: str, stored: bytes, original: str, shown: str, by: str | None
    ) -> None:  # fmt: skip
        """A message of a topic was published at another node: our listeners get it."""
        at = [Destination.parse(each) if each else None for each in (original, shown)]
        copy, message = RoutedCopy(Destination.parse(topic), *at), Message.load(stored)
        if by is not None and self._broker.bridges.came_before(message, copy.destination, by):
            return
        if is_advisory(copy.destination):
            self._broker.remote_advisories.heard(session, copy.destination.name, message.body)
        self._broker.dispatcher.publish_locally((message,), copy, None)
