"""NodeAdmin: drains nodes, and spreads queues over them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from brokerapp.engine.clients.temporary_owner import session_of_temporary
from brokerapp.errors import RequestRefused
from brokerapp.model import JsonObject
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.membership import member_changes
from brokerapp.store.nodes import MemberChange
from brokerapp.store.shards.broker_store import BrokerStore

#: Seconds between two looks at how far a node is.
LOOK_SECONDS = 0.2
#: Seconds after which a drained node must have reported that it is: it hands over within 10, lets clients go within 4,
#: and a heartbeat may be late.
DRAIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class DrainOutcome:
    """What a drain did."""

    node: str
    owned_count: int  #: queues and subscriptions that the node owned before
    released_count: int  #: clients that were let go

    def to_json(self) -> JsonObject:
        """Return the object as values that JSON can hold."""
        return {"node": self.node, "handedOver": self.owned_count, "clientsReleased": self.released_count}


class NodeAdmin:
    """Changes which nodes own queues and take clients."""

    def __init__(self, store: BrokerStore, open_store: Callable[[], Awaitable[None]]) -> None:
        self._store, self._open_store = store, open_store

    async def drain(self, node: str) -> DrainOutcome:
        """Let other nodes take over all that a node owns, and its clients; return when it is done.

        Raises RequestRefused where that cannot be, StoreUnavailable.
        """
        owned = (await self.owned_counts()).get(node, 0)
        await self._change(partial(member_changes.drain, node=node))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_SECONDS
        while loop.time() < deadline:
            status = (await self._store.nodes.statuses()).get(node)
            if status is None:
                raise RequestRefused(f"node {node} stopped while it was drained")
            homes = status.get("homes", {})
            if homes.get("draining") == "drained":
                return DrainOutcome(node, owned, homes["released"])
            await asyncio.sleep(LOOK_SECONDS)
        raise RequestRefused(f"node {node} is not drained yet after {DRAIN_SECONDS:g} s: see its log")

    async def end_drain(self, node: str) -> bool:
        """Let a drained node own queues and take clients again; return False if it was not drained.

        Raises RequestRefused, StoreUnavailable.
        """
        return bool(await self._change(partial(member_changes.end_drain, node=node)))

    async def rebalance(self) -> dict[str, int]:
        """Let nodes own equally many queues and subscriptions; return how many each owns then.

        Raises RequestRefused, StoreUnavailable.
        """
        logs = list(await self._store.logs.all_attributes())
        await self._change(partial(member_changes.rebalance, logs=logs))
        return await self.owned_counts()

    async def _change(self, decide: MemberChange) -> Mapping[str, JsonObject]:
        await self._open_store()
        return await self._store.nodes.change(decide)

    async def owned_counts(self) -> dict[str, int]:
        """Return how many queues and subscriptions each node owns, by its name; temporary ones are not counted."""
        epoch, records = await self._store.nodes.members()
        members = NodeMembers(epoch, [NodeMember.from_record(*each) for each in records.items()], "")
        counts = {each.session: 0 for each in members}
        for log in await self._store.logs.all_attributes():
            if counts and session_of_temporary(log) not in counts:
                counts[members.owner_of(log)] += 1
        return {each.name: counts[each.session] for each in members}
