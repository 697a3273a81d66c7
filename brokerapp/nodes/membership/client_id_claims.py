"""Ensure that each client id is connected to one node of a broker at a time.

Who connects under an id of its own choice is let in when all nodes have said that nobody else has it, or that who has
it may be taken for gone: each node judges its own clients. Of two that ask at the same time the one whose node's
session sorts first is let in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import Principal
from brokerapp.errors import ProtocolError
from brokerapp.nodes.links.protocol import PeerMessageType

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership


class ClientIdClaim(NamedTuple):
    """Who wants to be known by a client id, as far as others who have it must know."""

    client_id: str
    user: str
    shares: bool
    reconnect_ms: int
    way: str
    steals: bool  #: it may take the id over, whoever has it; else who has it judges

    @staticmethod
    def from_client(client: Client, *, steals: bool) -> ClientIdClaim:
        """That of a client that has logged in."""
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
        """Whether somebody may have to go for it. What it says of itself counts where the other one is, see is_back."""
        return bool(self.steals or self.reconnect_ms or self.way)

    def excludes(self, other: ClientIdClaim) -> bool:
        """Whether not both may have what they want."""
        return self.client_id == other.client_id and not (self.shares and other.shares)

    def as_client(self) -> Client:
        """What stands for the client where it is not."""
        return Client(
            "", None, client_id=self.client_id, has_client_id=True, shares_client_id=self.shares,  # type: ignore[arg-type]
            principal=Principal(self.user), reconnect_ms=self.reconnect_ms, bridge_connection=self.way,
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class PendingClaim:
    """A claim of one of our clients, until that is let in."""

    claim: ClientIdClaim
    is_yielding: bool = False  #: the same id goes to a client of another node


class ClientIdClaims:
    """A part of OwnershipCoordinator."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._pending: list[PendingClaim] = []

    def is_needed(self, client: Client, client_id: str | None) -> bool:
        """Whether others are to be asked before a client has this id: it gave itself one, and there are others."""
        return bool(client_id) and bool(self._ownership.other_sessions) and not client.is_internal

    @asynccontextmanager
    async def hold(self, client: Client, *, steals: bool) -> AsyncIterator[None]:
        """No other node lets anybody have its id meanwhile. Raises ProtocolError where somebody has it.

        Who has it and can be taken it from goes when all nodes agree, not before.
        """
        claim = ClientIdClaim.from_client(client, steals=steals)
        opened = PendingClaim(claim)
        self._pending.append(opened)
        try:
            await self._ask_others(claim, agreed=False)
            if claim.can_take_over:
                await self._ask_others(claim, agreed=True)
            if opened.is_yielding:
                raise ProtocolError(_already_connected(claim))
            yield
        finally:
            self._pending.remove(opened)

    async def _ask_others(self, claim: ClientIdClaim, *, agreed: bool) -> None:
        answered = asyncio.get_running_loop().create_future()

        def then(refusal: str) -> None:
            if not answered.done():
                answered.set_result(refusal)

        self._ownership.propagation.request(
            self._ownership.other_sessions, PeerMessageType.CLAIM, (claim, agreed), then
        )
        if refusal := await answered:
            raise ProtocolError(refusal)

    def on_claim(self, session: str, id: int, claim: list, agreed: bool) -> None:
        """A client of another node wants a client id; once all have `agreed`, it takes it from who has it here."""
        wanted, refusal = ClientIdClaim(*claim), ""
        claimant, connecting = wanted.as_client(), self._broker.connections
        try:
            self._resolve_conflict(wanted, session)
            steals = wanted.steals or connecting.is_back(claimant)
            (connecting.make_room if agreed else connecting.check_room)(claimant, steal=steals)
        except ProtocolError as error:
            refusal = str(error)
        self._ownership.send(session, PeerMessageType.CONFIRMED, id, refusal)

    def _resolve_conflict(self, wanted: ClientIdClaim, session: str) -> None:
        """Ours and theirs at the same time: one yields. Theirs does where this raises ProtocolError; else ours do,
        which that node may never have been asked for, as it was none of the others then.
        """
        rivals = [each for each in self._pending if each.claim.excludes(wanted)]
        if self._ownership.session < session and not all(each.is_yielding for each in rivals):
            raise ProtocolError(_already_connected(wanted))
        for each in rivals:
            each.is_yielding = True


def _already_connected(claim: ClientIdClaim) -> str:
    return f"client-id {claim.client_id!r} is connected already"
