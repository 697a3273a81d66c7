"""Keeps requests of clients that wait for answers of other nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from brokerapp.core.ports import Replies
from brokerapp.engine.clients.client import Client
from brokerapp.errors import RequestRefused

#: Called with "" when a request can be done, else with the refusal of another node, or of this one.
OnAnswer = Callable[[str | RequestRefused], None]


class PendingConfirmations:
    """Requests of this node's clients that other nodes have not confirmed yet."""

    def __init__(self, *, clients: Mapping[str, Client], replies: Replies) -> None:
        self._clients, self._replies = clients, replies
        self._counts: Counter[Client] = Counter()  # requests that are not answered yet
        self._callbacks: dict[Client, list[Callable[[], None]]] = defaultdict(list)

    def wait(
        self, client: Client, receipt: str | None, ask: Callable[[OnAnswer], None], then: Callable[[], None]
    ) -> None:
        """Ask other nodes for a client, then call `then` if they confirm, or tell the client why they refuse."""
        client.on_write_started()
        self._counts[client] += 1

        def on_answer(refusal: str | RequestRefused) -> None:
            client.on_write_done()
            if client.id in self._clients:  # else nobody wants the rest
                try:
                    if refusal:
                        raise refusal if isinstance(refusal, RequestRefused) else RequestRefused(refusal)
                    then()
                except RequestRefused as error:
                    self._replies.refuse(client, error, receipt)
            self._on_done(client)

        ask(on_answer)

    def _on_done(self, client: Client) -> None:
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]
            for callback in self._callbacks.pop(client, ()):
                callback()

    def defer(self, client: Client, callback: Callable[[], None]) -> bool:
        """Call back when all requests of a client are answered; return False, without calling, if none is open."""
        if client in self._counts:
            self._callbacks[client].append(callback)
            return True
        return False
