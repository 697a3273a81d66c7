"""Claims client ids, of which each is connected to one node of a broker at a time.

A client with an id of its own choice is accepted when all nodes have said that nobody else has that id, or that whoever
has it may be disconnected: each node judges its own clients. Of two clients that ask at the same time, the one whose
node's session sorts first is accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import Principal
from brokerapp.errors import ClientIdTaken, ProtocolError
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import ClientIds


class ClientIdClaim(NamedTuple):
    """What other nodes must know of a client that wants a client id."""

    client_id: str
    user: str
    shares: bool
    reconnect_ms: int
    way: str
    steals: bool  #: it may take the id over, whoever has it; else the node of that client judges

    @staticmethod
    def from_client(client: Client, *, steals: bool) -> ClientIdClaim:
        """Return the claim of a client that has logged in."""
        return ClientIdClaim(
            client.client_id,
            client.principal.name,
            client.shares_client_id,
            client.reconnect_ms,
            client.bridge_connection,
            steals,
        )

    @property
    def can_take_over(self) -> bool:
        """Whether another client may be disconnected for it. The node of that client checks, see is_reconnecting."""
        return bool(self.steals or self.reconnect_ms or self.way)

    def excludes(self, other: ClientIdClaim) -> bool:
        """Return whether not both can be granted."""
        return self.client_id == other.client_id and not (self.shares and other.shares)

    def as_client(self) -> Client:
        """Return a stand-in for the client, at another node."""
        return Client(
            "", None, client_id=self.client_id, has_client_id=True, shares_client_id=self.shares,  # type: ignore[arg-type]
            principal=Principal(self.user), reconnect_ms=self.reconnect_ms, bridge_connection=self.way,
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class PendingClaim:
    """A claim of one of our clients that is not granted yet."""

    claim: ClientIdClaim
    is_yielding: bool = False  #: the same id goes to a client of another node


class ClientIdClaims:
    """Grants client ids to clients of this node when all other nodes agree."""

    def __init__(self, *, peers: Peers, requests: NodeRequests, clients: ClientIds) -> None:
        self._peers, self._requests, self._clients = peers, requests, clients
        self._pending: list[PendingClaim] = []

    def is_needed(self, client: Client, client_id: str | None) -> bool:
        """Return whether other nodes must agree to a client id: the client chose it, and there are other nodes."""
        return bool(client_id) and bool(self._peers.other_sessions) and not client.is_internal

    @asynccontextmanager
    async def hold(self, client: Client, *, steals: bool) -> AsyncIterator[None]:
        """Reserve the client id of a client at all nodes meanwhile. Raises ProtocolError where somebody has it.

        A client that has it and may be disconnected is disconnected when all nodes agree, not before.
        """
        claim = ClientIdClaim.from_client(client, steals=steals)
        pending = PendingClaim(claim)
        self._pending.append(pending)
        try:
            await self._ask_others(claim, agreed=False)
            if claim.can_take_over:
                await self._ask_others(claim, agreed=True)
            if pending.is_yielding:
                raise ClientIdTaken(claim.client_id)
            yield
        finally:
            self._pending.remove(pending)

    async def _ask_others(self, claim: ClientIdClaim, *, agreed: bool) -> None:
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def then(refusal: str) -> None:
            if not answered.done():
                answered.set_result(refusal)

        self._requests.send(self._peers.other_sessions, PeerMessageType.CLAIM, (claim, agreed), then)
        if await answered:
            raise ClientIdTaken(claim.client_id)

    def on_claim(self, session: str, id: int, claim: Sequence[Any], agreed: bool) -> None:
        """Answer a claim of another node; once all have `agreed`, disconnect our client that has the id."""
        wanted, refusal = ClientIdClaim(*claim), ""
        claimant = wanted.as_client()
        try:
            self._resolve_conflict(wanted, session)
            steals = wanted.steals or self._clients.is_reconnecting(claimant)
            (self._clients.disconnect_conflicting if agreed else self._clients.check_conflicts)(claimant, steal=steals)
        except ProtocolError as error:
            refusal = str(error)
        self._peers.confirm(session, id, refusal)

    def _resolve_conflict(self, wanted: ClientIdClaim, session: str) -> None:
        """Let one of two claims yield that are made at the same time.

        That of the other node does where this raises ProtocolError; else ours do. The other node may never have been
        asked for ours, as it was no member then.
        """
        rivals = [each for each in self._pending if each.claim.excludes(wanted)]
        if self._peers.session < session and not all(each.is_yielding for each in rivals):
            raise ClientIdTaken(wanted.client_id)
        for each in rivals:
            each.is_yielding = True
