"""Known: what one node begins and all others must know before who asked for it may rely on it.

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
from brokerapp.nodes.links.protocol import ASIDE, Word

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker
    from brokerapp.nodes.ownership.coordinator import Homes

logger = logging.getLogger(__name__)

#: Told with "", or with why it cannot be.
Then = Callable[[str], None]


@dataclass(slots=True)
class Asked:
    """What was said and is not known by all yet."""

    word: Word
    facts: tuple[Any, ...]
    waiting: set[str]  #: sessions that did not answer
    thens: list[Then]  #: what goes on when all have
    refusal: str = ""

    def go_on(self) -> None:
        """All have answered. A fault in what follows keeps nobody else waiting."""
        for then in self.thens:
            try:
                then(self.refusal)
            except Exception:
                logger.exception("what waited for the answers of other nodes could not be done")


class Known:
    """A part of Homes."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._ids = itertools.count(1)
        self._asked: dict[int, Asked] = {}
        self._gone: set[str] = set()  # sessions that answer no more, though Homes does not go by that yet
        self._listening: Counter[tuple[str, str]] = Counter()  # own subscribers, by kind of topic and name
        self._listened: dict[str, set[tuple[str, str]]] = {}  # session -> what is listened to there
        self._interest: dict[DestinationKind, DestinationTrie[str]] = {}

    # -- saying, and being sure

    def ask(self, sessions: Iterable[str], word: Word, facts: tuple[Any, ...], then: Then) -> None:
        """Say it to these nodes; `then` is called when all have answered."""
        asked = Asked(word, facts, set(sessions) - self._gone, [then])
        if not asked.waiting:
            then("")
            return
        id = next(self._ids)
        self._asked[id] = asked
        for session in asked.waiting:
            self._homes.tell(session, word, id, *facts)

    def answered(self, session: str, id: int, refusal: str) -> None:
        """A node knows, or says why it cannot be."""
        asked = self._asked.get(id)
        if asked is None:
            return
        asked.waiting.discard(session)
        asked.refusal = asked.refusal or refusal
        if not asked.waiting:
            del self._asked[id]
            asked.go_on()

    def when_known(self, then: Callable[[], None]) -> None:
        """Go on when all that was said before is known to whom it was said; at once where nothing is open."""
        pending = {id for id, asked in self._asked.items() if asked.word not in ASIDE}
        if not pending:
            then()
            return

        def done(id: int, _refusal: str) -> None:
            pending.discard(id)
            if not pending:
                then()

        for id in pending:
            self._asked[id].thens.append(partial(done, id))

    def linked(self, session: str) -> None:
        """A node hears us from now on: say what it has not answered."""
        for id, asked in self._asked.items():
            if session in asked.waiting and asked.word is not Word.CONSUME:
                self._homes.tell(session, asked.word, id, *asked.facts)

    def say_listeners(self, session: str) -> None:
        """Let a node know what is listened to here."""
        rows = [[*key, True] for key, count in self._listening.items() if count > 0]
        self._homes.tell(session, Word.LISTENERS, 0, rows)

    def unlinked(self, session: str) -> None:
        """A node says again what is listened to there when it hears us again."""
        self._listened.pop(session, None)
        self._refresh()
        self._answer_for(session, [id for id, asked in self._asked.items() if asked.word is Word.CONSUME])

    def gone(self, session: str) -> None:
        """A node is no member any more: what is said from now on does not wait for it, either."""
        self._gone.add(session)
        self._answer_for(session, list(self._asked))

    def is_gone(self, session: str) -> bool:
        """Whether a node is no member any more, though Homes may not go by that yet."""
        return session in self._gone

    def forget(self, session: str) -> None:
        """Nobody says anything to it from now on."""
        self._gone.discard(session)

    def _answer_for(self, session: str, ids: Iterable[int]) -> None:
        """Wait no longer for what this node was to answer."""
        for id in ids:
            if session in self._asked[id].waiting:
                self.answered(session, id, "")

    # -- logs

    async def announce(self, declarations: Sequence[tuple[str, str | None]]) -> None:
        """These logs were declared in the store, or removed there: be sure that all nodes know."""
        for log, attributes in declarations:
            if attributes is None:
                self._homes.lost(log)
        others = self._homes.others
        if not others:
            return
        done = asyncio.get_running_loop().create_future()
        self.ask(others, Word.LOGS, ([list(each) for each in declarations],), lambda _: done.set_result(None))
        await done

    def tell_removed(self, log: str) -> None:
        """A log is in the store no more: its name may be used again."""
        self.ask(self._homes.others, Word.LOGS, ([[log, None]],), lambda _: None)

    # -- listeners of topics

    def listens(self, topic: Destination) -> None:
        """One more of our clients listens to a topic, or to all that match a pattern."""
        key = (str(topic.kind), topic.name)
        self._listening[key] += 1
        if self._listening[key] == 1:
            self.ask(self._homes.others, Word.LISTENERS, ([[*key, True]],), lambda _: None)

    def listeners_here(self, topic: Destination) -> int:
        """How many of our clients listen to just this: a topic, or a pattern."""
        return self._listening[str(topic.kind), topic.name]

    def listens_no_more(self, topic: Destination) -> None:
        """One less."""
        key = (str(topic.kind), topic.name)
        self._listening[key] -= 1
        if self._listening[key] <= 0:
            del self._listening[key]
            self.ask(self._homes.others, Word.LISTENERS, ([[*key, False]],), lambda _: None)

    def heard_listeners(self, session: str, id: int, rows: Iterable[tuple[str, str, bool]]) -> None:
        """What is listened to at another node, or is no longer."""
        known = self._listened.setdefault(session, set())
        for kind, name, begins in rows:
            (known.add if begins else known.discard)((kind, name))
        self._refresh()
        self._broker.advisories.listeners_changed()
        self._homes.tell(session, Word.KNOWN, id, "")

    def _refresh(self) -> None:
        self._interest = {}
        for session, keys in self._listened.items():
            for kind, name in keys:
                self._interest.setdefault(DestinationKind(kind), DestinationTrie()).add(name, session)

    def listened(self, kind: DestinationKind) -> list[str]:
        """The names and patterns of topics of this kind that clients of any node listen to."""
        every = set(self._listening).union(*self._listened.values())
        return sorted(name for of_kind, name in every if of_kind == kind)

    def listeners_elsewhere(self, topic: Destination) -> Iterable[str]:
        """The nodes where somebody listens to this topic."""
        wanted = self._interest.get(topic.kind)
        return dict.fromkeys(wanted.find(topic.name)) if wanted is not None else ()

    def pass_on(self, message: Message, copy: RoutedCopy, by: str | None) -> None:
        """A message of a topic goes to the nodes where somebody listens, or may be told of it later.

        What came by a bridge may come to one of them by another bridge, too; see bridging.bringer.
        """
        if not self._homes.others:
            return
        is_kept = self._broker.retained.keeps(message, copy.destination)  # by all nodes, for who subscribes later
        sessions = self._homes.others if is_kept else self.listeners_elsewhere(copy.destination)
        if sessions:
            original, shown = (str(each) if each is not None else "" for each in (copy.original, copy.shown))
            facts = (str(copy.destination), message.stored(), original, shown, by)
            for session in sessions:
                self._homes.tell(session, Word.TOPIC, *facts)

    def heard_topic(
        self, session: str, topic: str, stored: bytes, original: str, shown: str, by: str | None
    ) -> None:  # fmt: skip
        """A message of a topic was published at another node: our listeners get it."""
        at = [Destination.parse(each) if each else None for each in (original, shown)]
        copy, message = RoutedCopy(Destination.parse(topic), *at), Message.load(stored)
        if by is not None and self._broker.bridges.came_before(message, copy.destination, by):
            return
        if is_advisory(copy.destination):
            self._broker.advisories.elsewhere.heard(session, copy.destination.name, message.body)
        self._broker.dispatcher.spread(message, copy, None)
