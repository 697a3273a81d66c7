"""Waits: what clients asked that other nodes are asked about first. A part of Homes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.errors import RequestRefused

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker

#: Told with "" when it can be done, or with why it cannot: as other nodes say, or as this one would refuse it.
Then = Callable[[str | RequestRefused], None]


class Waits:
    """Those of one node's clients."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._open: Counter[Client] = Counter()  # what clients asked that is not answered yet
        self._farewells: dict[Client, list[Callable[[], None]]] = defaultdict(list)

    def wait(
        self, client: Client, receipt: str | None, ask: Callable[[Then], None], then: Callable[[], None]
    ) -> None:  # fmt: skip
        """Ask this for a client, which goes on when it can be done, or is told why it cannot."""
        client.started_unit()
        self._open[client] += 1

        def done(refusal: str | RequestRefused) -> None:
            client.ended_unit()
            if client.id in self._broker.clients:  # else nobody wants the rest
                try:
                    if refusal:
                        raise refusal if isinstance(refusal, RequestRefused) else RequestRefused(refusal)
                    then()
                except RequestRefused as error:
                    self._broker.refuse(client, error, receipt)
            self._ended(client)

        ask(done)

    def _ended(self, client: Client) -> None:
        self._open[client] -= 1
        if not self._open[client]:
            del self._open[client]
            for farewell in self._farewells.pop(client, ()):
                farewell()

    def holds_up(self, client: Client, farewell: Callable[[], None]) -> bool:
        """Whether something that a client asked is not answered yet: then this is done when it is."""
        if client in self._open:
            self._farewells[client].append(farewell)
            return True
        return False
