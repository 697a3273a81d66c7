"""Authenticate clients and register them with the broker."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from brokerapp.connections.log_throttle import LogThrottle
from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import ANONYMOUS, Principal
from brokerapp.engine.policy.life_cycles import reconnect_window_ms
from brokerapp.errors import AuthenticationFailed, ProtocolError
from brokerapp.model.commands import ClientCommand, ConnectCommand
from brokerapp.model.message import escape
from brokerapp.model.settings import Settings

logger = logging.getLogger(__name__)

#: The most characters that a log line has of a text which a client chose.
MAX_LOGGED_CHARACTERS = 300
#: How the ids begin that client libraries make up for each connection; they say nothing of who connects.
_GENERATED = "ID:"

#: Return the principal of a login and passcode sent from an address; None when they are wrong. Raises
#: AuthenticationFailed with the reason for a user who may not connect. A connector without it lets everybody connect.
Authenticate = Callable[[str | None, str | None, str], Awaitable[Principal | None]]
#: The handlers that a client has of its own, for some commands.
OwnHandlers = Mapping[type[ClientCommand], Callable[[Client, Any], None]]


class ClientRegistration(Protocol):
    """Registers clients by their client ids."""

    def connect(self, client: Client, steal: bool = False) -> None: ...

    def is_reconnecting(self, client: Client) -> bool: ...


class BridgeRegistration(Protocol):
    """Checks and registers clients that are bridges of other brokers."""

    def check(self, principal: Principal, broker: str) -> None: ...

    def on_bridge_connected(self, client: Client, broker: str, *, duplex: bool) -> None: ...


class ClientIdClaimsPort(Protocol):
    """Claims client ids at the other nodes of the broker."""

    def is_needed(self, client: Client, client_id: str | None) -> bool: ...

    def hold(self, client: Client, *, steals: bool) -> AbstractAsyncContextManager[None]: ...


class LoginHandler:
    """Authenticates clients and registers them with the broker. Refusals are ProtocolErrors that say why."""

    def __init__(
        self,
        *,
        settings: Settings,
        clients: ClientRegistration,
        bridges: BridgeRegistration,
        claims: ClientIdClaimsPort,
        admit: Callable[[Client, ConnectCommand], OwnHandlers],
    ) -> None:
        self._settings, self._clients, self._bridges = settings, clients, bridges
        self._claims, self._admit = claims, admit
        self._refusals = LogThrottle()

    def must_claim_client_id(self, client: Client, connect: ConnectCommand) -> bool:
        """Return whether login has to wait until the other nodes have agreed to the client id."""
        if connect.cluster is not None:  # a broker of the cluster has a link to each node
            return False
        return self._claims.is_needed(client, connect.client_id)

    async def authenticate(
        self, authenticate: Authenticate | None, client: Client, connect: ConnectCommand
    ) -> Principal:
        """Return the client's principal after checking its password. Raises ProtocolError."""
        if authenticate is None:
            return ANONYMOUS
        try:
            address = client.remote_address.rpartition(":")[0]
            principal = await authenticate(connect.login, connect.passcode, address)
        except AuthenticationFailed:
            raise
        except Exception as error:
            logger.exception("the login of %s could not be checked", client.id)
            raise ProtocolError("the login cannot be checked now") from error
        if principal is None and not connect.login:
            raise AuthenticationFailed("no user name was given; this broker requires a login")
        if principal is None:
            raise AuthenticationFailed(f"user name {connect.login!r} or its password is wrong")
        return principal

    def identify(self, client: Client, connect: ConnectCommand, principal: Principal) -> OwnHandlers:
        """Set the client's principal and id; return handlers of its own for some commands. Raises ProtocolError."""
        if connect.bridge is not None and connect.cluster is None and not client.is_internal:
            self._bridges.check(principal, connect.bridge)
        client.principal, client.client_id = principal, connect.client_id or f"ID:{client.id}"
        client.bridge_connection, client.connection_id = connect.way, connect.connection_id
        client.has_client_id, client.shares_client_id = bool(connect.client_id), connect.shares_client_id
        client.reconnect_ms = reconnect_window_ms(connect.reconnect, self._settings.reconnect_window)
        if client.reconnect_ms and not client.has_client_id:
            raise ProtocolError("reconnect needs a client-id, by which the client is known again")
        return self._admit(client, connect)

    async def claim_client_id(
        self, client: Client, connect: ConnectCommand, accept: Callable[[], None], *, steal: bool
    ) -> None:
        """Call `accept` when no other node has a client of this id, or it may `steal` the id. Raises ProtocolError."""
        if not self.must_claim_client_id(client, connect):
            accept()
            return
        async with self._claims.hold(client, steals=steal):
            accept()

    def register(self, client: Client, connect: ConnectCommand, *, steal: bool) -> None:
        """Register the client; it may `steal` its client id. Raises ProtocolError where that is taken."""
        self._clients.connect(client, steal=steal or self._clients.is_reconnecting(client))
        client.sends_copy_per_subscriber = connect.copies
        if connect.bridge is not None and not client.is_internal:
            self._bridges.on_bridge_connected(client, connect.bridge, duplex=connect.duplex)

    def log_refusal(self, connector: str, client: Client, connect: ConnectCommand | None, error: ProtocolError) -> None:
        """Write one line about a client that was refused at its login; the same refusal at most once a minute.

        `connect` is None where the client was refused before it said who it is.
        """
        client_id, user = (connect.client_id or "", connect.login or "") if connect is not None else ("", "")
        reason, host = str(error), client.remote_address.rpartition(":")[0]
        known_id = "" if client_id.startswith(_GENERATED) else client_id
        count = self._refusals.count_to_report((connector, known_id, user, host, reason), time.monotonic())
        if count:
            logger.warning(
                "connector %s: login of client %s (user %s, address %s) was refused: %s%s",
                connector, _loggable(client_id), _loggable(user), client.remote_address, _loggable(reason),
                f" ({count} times since this was logged last)" if count > 1 else "",
            )  # fmt: skip

    def user_headers(self, login: str | None, principal: Principal) -> str:
        """Return the header lines that messages of the client carry to name their producer."""
        user = principal.name if self._settings.use_authenticated_principal else login
        return f"JMSXUserID:{escape(user)}\n" if self._settings.populate_jmsx_user_id and user else ""


def _loggable(text: str) -> str:
    """Return a text that a client chose as it may stand in a line of the log; "-" for none."""
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:MAX_LOGGED_CHARACTERS])
    return shown + ("..." if len(text) > MAX_LOGGED_CHARACTERS else "") or "-"
