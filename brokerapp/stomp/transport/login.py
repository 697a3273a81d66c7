"""LoginHandler: authenticates and admits the clients of one connector."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import ANONYMOUS, Principal
from brokerapp.engine.policy.life_cycles import reconnect_window_ms
from brokerapp.errors import AuthenticationFailed, ProtocolError
from brokerapp.model.commands import ClientCommand, ConnectCommand
from brokerapp.model.message import escape
from brokerapp.stomp.transport.connector_state import ConnectorState

logger = logging.getLogger(__name__)


class LoginHandler:
    """Authenticates and admits the clients of one connector. Refusals are ProtocolErrors that say why."""

    def __init__(self, connector: ConnectorState) -> None:
        self._connector, self._broker = connector, connector.broker

    def is_asynchronous(self, client: Client, connect: ConnectCommand) -> bool:
        """Return whether login has to wait: for the password check, or for the client id at other nodes."""
        return self._connector.authenticate is not None or self._must_claim_client_id(client, connect)

    def _must_claim_client_id(self, client: Client, connect: ConnectCommand) -> bool:
        return self._broker.placement.client_id_claims.is_needed(client, connect.client_id)

    async def authenticate(self, client: Client, connect: ConnectCommand) -> Principal:
        """Return the client's principal after checking its password. Raises ProtocolError."""
        if self._connector.authenticate is None:
            return ANONYMOUS
        try:
            address = client.remote_address.rpartition(":")[0]
            principal = await self._connector.authenticate(connect.login, connect.passcode, address)
        except Exception as error:
            logger.exception("the login of %s could not be checked", client.id)
            raise ProtocolError("the login cannot be checked now") from error
        if principal is None:
            raise AuthenticationFailed(f"user name {connect.login or ''!r} or its password is wrong")
        return principal

    def identify(
        self, client: Client, connect: ConnectCommand, principal: Principal
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Note the client's principal and id; return handlers of its own for some commands. Raises ProtocolError."""
        if connect.bridge is not None and connect.cluster is None and not client.is_internal:
            self._broker.bridges.check(principal, connect.bridge)
        client.principal, client.client_id = principal, connect.client_id or f"ID:{client.id}"
        client.way = connect.way
        client.named, client.shares_client_id = bool(connect.client_id), connect.shares_client_id
        client.reconnect_ms = reconnect_window_ms(connect.reconnect, self._broker.settings.reconnect_window)
        if client.reconnect_ms and not client.named:
            raise ProtocolError("reconnect needs a client-id, by which the client is known again")
        return self._broker.admit(client, connect)

    async def claim_client_id(self, client: Client, connect: ConnectCommand, welcome: Callable[[], None]) -> None:
        """Accept the client when no other node has a client of its id. Raises ProtocolError."""
        if not self._must_claim_client_id(client, connect):
            welcome()
            return
        async with self._broker.placement.client_id_claims.hold(
            client, steals=self._connector.limits.allow_link_stealing
        ):
            welcome()

    def register(self, client: Client, connect: ConnectCommand) -> None:
        """Make it a client of the broker. Raises ProtocolError where its client id is taken."""
        self._broker.connections.connect(client, steal=self._may_steal(client))
        client.copies = connect.copies
        if connect.bridge is not None and not client.is_internal:
            self._broker.bridges.came(client, connect.bridge, duplex=connect.duplex)

    def _may_steal(self, client: Client) -> bool:
        """Whether it may take over its client id from who has it."""
        return self._connector.limits.allow_link_stealing or self._broker.connections.is_back(client)

    def user_headers(self, login: str | None, principal: Principal) -> str:
        """Return the header lines that messages of the client carry to name their producer."""
        settings = self._broker.settings
        user = principal.name if settings.use_authenticated_principal else login
        return f"JMSXUserID:{escape(user)}\n" if settings.populate_jmsx_user_id and user else ""
