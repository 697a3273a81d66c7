"""Keeps requests of clients that wait for answers of other nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.errors import RequestRefused

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker

#: Told with "" when it can be done, or with why it cannot: as other nodes say, or as this one would refuse it.
OnAnswer = Callable[[str | RequestRefused], None]


class PendingConfirmations:
    """Keeps requests of this node's clients until other nodes have confirmed them."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._counts: Counter[Client] = Counter()  # what clients asked that is not answered yet
        self._callbacks: dict[Client, list[Callable[[], None]]] = defaultdict(list)

    def wait(
        self, client: Client, receipt: str | None, ask: Callable[[OnAnswer], None], then: Callable[[], None]
    ) -> None:  # fmt: skip
        """Ask this for a client, which goes on when it can be done, or is told why it cannot."""
        client.on_write_started()
        self._counts[client] += 1

        def done(refusal: str | RequestRefused) -> None:
            client.on_write_done()
            if client.id in self._broker.clients:  # else nobody wants the rest
                try:
                    if refusal:
                        raise refusal if isinstance(refusal, RequestRefused) else RequestRefused(refusal)
                    then()
                except RequestRefused as error:
                    self._broker.replies.refuse(client, error, receipt)
            self._on_done(client)

        ask(done)

    def _on_done(self, client: Client) -> None:
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]
            for farewell in self._callbacks.pop(client, ()):
                farewell()

    def defer(self, client: Client, farewell: Callable[[], None]) -> bool:
        """Whether something that a client asked is not answered yet: then this is done when it is."""
        if client in self._counts:
            self._callbacks[client].append(farewell)
            return True
        return False
