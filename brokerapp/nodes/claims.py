"""Claims: client ids, of which each is connected to one node of a broker at a time.

Who connects under an id of its own choice is let in when all nodes have said that nobody else has it. Of two that ask
at the same time the one whose node's session sorts first is let in.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from brokerapp.client import Client
from brokerapp.engine.access import Principal
from brokerapp.errors import ProtocolError
from brokerapp.nodes.words import Word

if TYPE_CHECKING:
    from brokerapp.broker import Broker
    from brokerapp.nodes.homes import Homes


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

    def claimant(self) -> Client:
        """What stands for the client where it is not."""
        return Client(
            "", None, client_id=self.client_id, named=True, shares_client_id=self.shares,  # type: ignore[arg-type]
            principal=Principal(self.user), reconnect_ms=self.reconnect_ms, way=self.way,
        )  # fmt: skip


class Claims:
    """A part of Homes."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._open: Counter[str] = Counter()  # client ids that clients of ours are about to have for themselves

    def are_asked(self, client: Client, client_id: str | None) -> bool:
        """Whether others are to be asked before a client has this id: it gave itself one, and there are others."""
        return bool(client_id) and bool(self._homes.others) and not client.internal

    @asynccontextmanager
    async def claimed(self, client: Client, *, steals: bool) -> AsyncIterator[None]:
        """No other node lets anybody have its id meanwhile. Raises ProtocolError where somebody has it."""
        claim = Claim.of(client, steals=steals)
        counted = Counter() if claim.shares else Counter((claim.client_id,))
        self._open += counted
        try:
            await self._ask(claim)
            yield
        finally:
            self._open -= counted

    async def _ask(self, claim: Claim) -> None:
        answered = asyncio.get_running_loop().create_future()

        def then(refusal: str) -> None:
            if not answered.done():
                answered.set_result(refusal)

        self._homes.known.ask(self._homes.others, Word.CLAIM, (claim,), then)
        if refusal := await answered:
            raise ProtocolError(refusal)

    def heard(self, session: str, id: int, claim: list) -> None:
        """A client of another node wants a client id."""
        wanted, refusal = Claim(*claim), ""
        claimant = wanted.claimant()
        try:
            if self._open[wanted.client_id] and self._homes.me < session:
                raise ProtocolError(f"client-id {wanted.client_id!r} is connected already")
            steals = wanted.steals or self._broker.connecting.is_back(claimant)
            self._broker.connecting.make_room(claimant, steal=steals)
        except ProtocolError as error:
            refusal = str(error)
        self._homes.tell(session, Word.KNOWN, id, refusal)
