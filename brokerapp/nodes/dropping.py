"""Dropping: named subscriptions that go because a client wants it, wherever their logs are at home. A part of Homes.

Whether somebody consumes one is known at its home alone: that lets it go, or says why not. While a log moves, its next
home is asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp import clock
from brokerapp.client import Client
from brokerapp.durables import Durable
from brokerapp.errors import RequestRefused
from brokerapp.nodes.words import Word
from brokerapp.store import Unit

if TYPE_CHECKING:
    from brokerapp.broker import Broker
    from brokerapp.nodes.homes import Homes

#: Milliseconds until it is tried again where there is no home that could say.
AGAIN_MS = 50
#: Told with "" when it is gone, or with why it stays.
Then = Callable[[str], None]


class Dropping:
    """Those of one node's clients, and those at home here."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._open: Counter[Client] = Counter()  # what our clients want to go and is not gone yet
        self._farewells: dict[Client, list[Callable[[], None]]] = defaultdict(list)

    def drop(self, durable: Durable, then: Then) -> None:
        """Let it exist no longer, with what it holds, unless somebody consumes it."""
        # after what is said of our own consumers, see Abroad.attach
        self._broker.committer.submit(Unit(then=lambda *_: self._ask(durable, then)))

    def drop_for(self, client: Client, durable: Durable, receipt: str | None, then: Callable[[], None]) -> None:
        """The same for a client, which goes on when it is gone, or is told why it stays."""
        client.started_unit()
        self._open[client] += 1

        def done(refusal: str) -> None:
            client.ended_unit()
            if client.id in self._broker.clients:  # else nobody wants the rest
                try:
                    if refusal:
                        raise RequestRefused(refusal)
                    then()
                except RequestRefused as error:
                    self._broker.refuse(client, error, receipt)
            self._ended(client)

        self.drop(durable, done)

    def _ended(self, client: Client) -> None:
        self._open[client] -= 1
        if not self._open[client]:
            del self._open[client]
            for farewell in self._farewells.pop(client, ()):
                farewell()

    def holds_up(self, client: Client, farewell: Callable[[], None]) -> bool:
        """Whether something that a client wanted to go is not gone yet: then this is done when it is."""
        if client in self._open:
            self._farewells[client].append(farewell)
            return True
        return False

    def _ask(self, durable: Durable, then: Then) -> None:
        log = durable.log

        def answered(refusal: str) -> None:
            if refusal:
                then(refusal)
            elif self._broker.durables.known(log.name) is not durable:
                then("")
            else:  # who was asked is its home no more
                self._broker.timers.at(clock.now_ms() + AGAIN_MS, lambda: self._ask(durable, then))

        if self._broker.durables.known(log.name) is not durable or not log.away:
            self._drop_here(log.name, then)
        elif (home := self._homes.home(log.name)) != self._homes.me:
            self._homes.known.ask([home], Word.DROP, (log.name,), answered)
        else:
            answered("")

    def heard(self, session: str, id: int, log: str) -> None:
        """A client of another node wants a named subscription to go. One that is not at home here stays as it is."""

        def say(refusal: str) -> None:
            self._homes.tell(session, Word.KNOWN, id, refusal)

        durable = self._broker.durables.known(log)
        if durable is not None and durable.log.away:
            say("")
        else:
            self._drop_here(log, say)

    def _drop_here(self, log: str, then: Then) -> None:
        durable = self._broker.durables.known(log)
        try:
            if durable is not None:
                self._broker.durables.remove(durable)
        except RequestRefused as error:
            then(str(error))
            return
        self._broker.committer.submit(Unit(then=lambda *_: then("")))
