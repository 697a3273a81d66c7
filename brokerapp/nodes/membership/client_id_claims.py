"""Claims: client ids, of which each is connected to one node of a broker at a time.

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
from brokerapp.nodes.links.protocol import Word

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker
    from brokerapp.nodes.ownership.coordinator import Homes


class Claim(NamedTuple):
    """Who wants to be known by a client id, as far as others who have it must know."""

    client_id: str
    user: str
    shares: bool
    reconnect_ms: int
    way: str
    steals: bool  #: it may take the id over, whoever has it; else who has it judges

    @staticmethod
    def of(client: Client, *, steals: bool) -> Claim:
        """That of a client that has logged in."""
        return Claim(
            client.client_id, client.principal.name, client.shares_client_id, client.reconnect_ms, client.way, steals
        )

    @property
    def may_take_over(self) -> bool:
        """Whether somebody may have to go for it. What it says of itself counts where the other one is, see is_back."""
        return bool(self.steals or self.reconnect_ms or self.way)

    def excludes(self, other: Claim) -> bool:
        """Whether not both may have what they want."""
        return self.client_id == other.client_id and not (self.shares and other.shares)

    def claimant(self) -> Client:
        """What stands for the client where it is not."""
        return Client(
            "", None, client_id=self.client_id, named=True, shares_client_id=self.shares,  # type: ignore[arg-type]
            principal=Principal(self.user), reconnect_ms=self.reconnect_ms, way=self.way,
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class Open:
    """A claim of one of our clients, until that is let in."""

    claim: Claim
    yields: bool = False  #: the same id goes to a client of another node


class Claims:
    """A part of Homes."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._open: list[Open] = []

    def are_asked(self, client: Client, client_id: str | None) -> bool:
        """Whether others are to be asked before a client has this id: it gave itself one, and there are others."""
        return bool(client_id) and bool(self._homes.others) and not client.internal

    @asynccontextmanager
    async def claimed(self, client: Client, *, steals: bool) -> AsyncIterator[None]:
        """No other node lets anybody have its id meanwhile. Raises ProtocolError where somebody has it.

        Who has it and can be taken it from goes when all nodes agree, not before.
        """
        claim = Claim.of(client, steals=steals)
        opened = Open(claim)
        self._open.append(opened)
        try:
            await self._ask(claim, agreed=False)
            if claim.may_take_over:
                await self._ask(claim, agreed=True)
            if opened.yields:
                raise ProtocolError(_taken(claim))
            yield
        finally:
            self._open.remove(opened)

    async def _ask(self, claim: Claim, *, agreed: bool) -> None:
        answered = asyncio.get_running_loop().create_future()

        def then(refusal: str) -> None:
            if not answered.done():
                answered.set_result(refusal)

        self._homes.known.ask(self._homes.others, Word.CLAIM, (claim, agreed), then)
        if refusal := await answered:
            raise ProtocolError(refusal)

    def heard(self, session: str, id: int, claim: list, agreed: bool) -> None:
        """A client of another node wants a client id; once all have `agreed`, it takes it from who has it here."""
        wanted, refusal = Claim(*claim), ""
        claimant, connecting = wanted.claimant(), self._broker.connections
        try:
            self._settle(wanted, session)
            steals = wanted.steals or connecting.is_back(claimant)
            (connecting.make_room if agreed else connecting.check_room)(claimant, steal=steals)
        except ProtocolError as error:
            refusal = str(error)
        self._homes.tell(session, Word.KNOWN, id, refusal)

    def _settle(self, wanted: Claim, session: str) -> None:
        """Ours and theirs at the same time: one yields. Theirs does where this raises ProtocolError; else ours do,
        which that node may never have been asked for, as it was none of the others then.
        """
        rivals = [each for each in self._open if each.claim.excludes(wanted)]
        if self._homes.me < session and not all(each.yields for each in rivals):
            raise ProtocolError(_taken(wanted))
        for each in rivals:
            each.yields = True


def _taken(claim: Claim) -> str:
    return f"client-id {claim.client_id!r} is connected already"
