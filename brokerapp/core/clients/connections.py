"""Register clients and their client ids, and clean up when they disconnect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerapp.engine.clients.client import Client
from brokerapp.errors import ClientIdTaken

if TYPE_CHECKING:
    from brokerapp.core.ports import BrokerEvents, FlowControlPort, Placement, Replies
    from brokerapp.engine.clients.quotas import Quotas


class ClientRegistry:
    """Registers clients that have logged in, and knows which client ids are taken."""

    def __init__(
        self,
        *,
        clients: dict[str, Client],
        events: BrokerEvents,
        flow_control: FlowControlPort,
        placement: Placement,
        quotas: Quotas,
        replies: Replies,
    ) -> None:
        self._clients, self._events, self._flow_control = clients, events, flow_control
        self._placement, self._quotas, self._replies = placement, quotas, replies
        self._client_ids: dict[str, set[Client]] = {}  # to those that have it

    def __contains__(self, client: Client) -> bool:
        return client.id in self._clients

    def is_reconnecting(self, client: Client) -> bool:
        """Return whether the client replaces a connection of its own, which may have broken without our knowing."""
        if client.cluster_member:
            return True
        others, user = self._client_ids.get(client.client_id, ()), client.principal.name
        if not client.has_client_id or not others or any(each.principal.name != user for each in others):
            return False
        if client.bridge_connection:  # a bridge: what is not read from, for want of room, may be dead for long
            return all(each.bridge_connection == client.bridge_connection and each.bridge for each in others)
        return client.reconnect_ms > 0 and all(each.reconnect_ms > 0 for each in others)

    def connect(self, client: Client, steal: bool = False) -> None:
        """Register a client that has logged in. Raises ProtocolError as `check_conflicts` does."""
        self.disconnect_conflicting(client, steal=steal)
        self._client_ids.setdefault(client.client_id, set()).add(client)
        self._clients[client.id] = client
        if client.reconnect_ms:
            self._events.client_returned(client)
        client.quota = self._quotas.share
        self._quotas.divide_among(len(self._clients))
        self._events.client_connected(client)

    def check_conflicts(self, client: Client, *, steal: bool) -> None:
        """Raise ProtocolError where a client that comes, here or at another node, must go: another one has its client
        id, which it may not `steal`. Those that all share an id stay together.
        """
        if not steal and self._clients_in_conflict(client):
            raise ClientIdTaken(client.client_id)

    def disconnect_conflicting(self, client: Client, *, steal: bool) -> None:
        """Disconnect clients whose client id a new one takes over. Raises ProtocolError as `check_conflicts` does."""
        self.check_conflicts(client, steal=steal)
        for each in self._clients_in_conflict(client):
            self.disconnect(each)
            each.sink.close()

    def _clients_in_conflict(self, client: Client) -> list[Client]:
        """Return the clients that have its client id and cannot keep it beside this one."""
        others = self._client_ids.get(client.client_id, ())
        return [] if all(each.shares_client_id for each in (client, *others)) else list(others)

    def disconnect(self, client: Client) -> None:
        """Forget a client that is gone; its transactions are rolled back, and what it held is taken back."""
        if self._clients.pop(client.id, None) is None:
            return
        self._quotas.divide_among(len(self._clients))
        sharers = self._client_ids[client.client_id]
        sharers.discard(client)
        if not sharers:
            del self._client_ids[client.client_id]
        self._events.client_disconnected(client)

    def leave(self, client: Client, receipt: str | None, then: Callable[[], None]) -> None:
        """Disconnect a client when all that it requested before is done, and confirm its DISCONNECT."""
        client.disconnected = True

        def again() -> None:
            self.leave(client, receipt, then)

        def done() -> None:
            if client.blocked_sends:
                self._flow_control.on_unblocked(client, again)
                return
            if self._placement.pending_confirmations.defer(client, again):
                return
            self._replies.confirm(client, receipt)
            self.disconnect(client)
            then()

        self._replies.confirm_after(client, None, done)
