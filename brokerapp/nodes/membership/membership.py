"""Join a broker, follow which nodes join, leave and die, and leave."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from brokerapp.errors import Fenced, NodeIsolated, StoreUnavailable
from brokerapp.nodes.links.handoff_state import HandoffState
from brokerapp.nodes.links.members import NodeMember, NodeMembers
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.peer_links import LinkTls, NodeLinks
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.links.unreachable_peers import UnreachablePeers
from brokerapp.nodes.membership.liveness import HEARTBEATS_PER_TIMEOUT, Liveness
from brokerapp.nodes.ownership.coordinator import OwnershipCoordinator
from brokerapp.nodes.ownership.handoff_in import HandoffIn
from brokerapp.store.shards.members import ShardedMembers

logger = logging.getLogger(__name__)
T = TypeVar("T")


class MemberPlacement(Protocol):
    """What follows the members of a broker at one of its nodes."""

    @property
    def peers(self) -> Peers: ...

    @property
    def requests(self) -> NodeRequests: ...

    @property
    def coordinator(self) -> OwnershipCoordinator: ...

    @property
    def handoff(self) -> HandoffState: ...

    @property
    def handoff_in(self) -> HandoffIn: ...


class NodeMembership:
    """Makes a node a member of its broker, from `join` until `leave`, and expels members that are dead.

    `is_exclusive`: nobody else can use the store, so the node is never taken for dead. `about`: what other nodes read
    of it.
    """

    def __init__(
        self,
        *,
        store: ShardedMembers,
        name: str,
        host: str,
        timeout_ms: int,
        placement: MemberPlacement,
        is_exclusive: bool = False,
        tls: Callable[[], LinkTls] | None = None,
        about: Mapping[str, Any] | None = None,  # JSON
    ) -> None:
        self._store, self.name, self._host, self._timeout_ms = store, name, host, timeout_ms
        self._placement, self._is_exclusive, self._about = placement, is_exclusive, about or {}
        self.session = placement.peers.session
        self.unreachable_peers = UnreachablePeers(self.session, timeout_ms / 1000)
        self._liveness = Liveness(timeout_ms / 1000)
        self._status: Mapping[str, Any] = {}  # what was sent with the last heartbeat, as JSON
        self._links = NodeLinks(self.session, placement.coordinator, tls)
        self._latest: NodeMembers = placement.peers.members
        self._changed = asyncio.Event()
        self._refresh_requested = asyncio.Event()
        self._taken_over = asyncio.Event()
        self._not_expelled: dict[str, str] = {}  # dead members by name, their sessions, as a shard does not answer
        self.on_followed: Callable[[], None] = lambda: None  #: told when logs have followed the members

    @property
    def period(self) -> float:
        """Seconds between two heartbeats."""
        return self._liveness.period

    # -- coming and going

    async def join(self) -> int:
        """Become a member; return the number of the broker's last message. See `wait_for_others`."""
        self._links.secret = await self._store.shared_secret()
        self._placement.coordinator.attach_transport(self._links)
        await self._links.listen(self._host)
        about = {**self._about, "link": self._links.address, "last_word": max(PeerMessageType)}
        began = _now()
        last = await self._store.join(self.session, self.name, about, self._timeout_ms)
        self._liveness.on_heartbeat_confirmed(began, _now())
        if self._can_expel:
            await self._expel_dead()
        self._latest = await self._read_members()
        self._placement.coordinator.join(self._latest)
        self._links.connect_to(self._latest)
        return last

    async def wait_for_others(self, *, known: bool) -> None:
        """Wait until others dispatch no more from logs of this node; `known`: until this node dispatches from them."""
        while not (self._placement.handoff.can_take_over if known else self._placement.handoff.all_done):
            await asyncio.sleep(self.period / HEARTBEATS_PER_TIMEOUT)
        if known:
            self._placement.handoff_in.when_taken_over(self._taken_over.set)
            await self._taken_over.wait()

    async def leave(self) -> None:
        """Cease to be a member, and close all links."""
        try:
            await self._store.leave(self.session, self.name)
        finally:
            self.close()

    def close(self) -> None:
        """Close all links."""
        self._links.close()

    # -- living

    async def send_heartbeat(self, status: Mapping[str, Any]) -> None:
        """Send a heartbeat with the status. Raises Fenced when the node was taken for dead, StoreUnavailable."""
        self._status = status
        began = _now()
        self._liveness.on_heartbeat_sent(began)
        await self._with_timeout(self._store.send_heartbeat(self.session, status, self.name, self._timeout_ms))
        self._liveness.on_heartbeat_confirmed(began, _now())

    async def run_heartbeat(self) -> None:
        """Beat where nobody has for more than a period, until cancelled: what a node tells besides may take long, and
        so may a beat that the network swallowed, which keeps no other waiting. Raises Fenced.
        """
        under_way: set[asyncio.Task[None]] = set()
        try:
            while True:
                await asyncio.sleep(self.period / 4)
                for each in [each for each in under_way if each.done()]:
                    under_way.discard(each)
                    each.result()
                if self._liveness.is_late(_now()):
                    under_way.add(asyncio.ensure_future(self._try_heartbeat()))
        finally:
            for each in under_way:
                each.cancel()

    async def _try_heartbeat(self) -> None:
        with contextlib.suppress(StoreUnavailable):
            await self.send_heartbeat(self._status)

    async def _with_timeout(self, answer: Awaitable[T]) -> T:
        """Return what the store answers in time. Raises StoreUnavailable, so that it is asked again."""
        try:
            async with asyncio.timeout(self._liveness.timeout):
                return await answer
        except TimeoutError as error:
            raise StoreUnavailable(f"the store did not answer within {self._timeout_ms} ms") from error

    @property
    def is_confirmed(self) -> bool:
        """Whether no other node can have taken this one for dead yet: only then it may give anything out.

        That it knows of no others does not tell: one may have come while it stood still.
        """
        return self._is_exclusive or self._liveness.is_member(_now())

    @property
    def is_store_writable(self) -> bool:
        """Whether the store took a heartbeat, which is a write, within the failure timeout."""
        return self._liveness.is_member(_now())

    def refresh(self) -> None:
        """Read the members soon: they may have changed."""
        self._refresh_requested.set()

    async def run_watch(self) -> None:
        """Follow who joins, leaves, dies or is not reached, until cancelled. Raises Fenced, NodeIsolated."""
        while True:
            try:
                await asyncio.wait_for(self._refresh_requested.wait(), self.period)
            except TimeoutError:
                if self._can_expel:
                    await self._expel_dead()
            self._refresh_requested.clear()
            members = await self._with_timeout(self._read_members())
            if self.session not in members:
                raise Fenced(
                    f"node {self.name} is a member no more: "
                    "it was taken for dead or replaced, or the store was rolled back"
                )
            self._check_unreachable(await self._unreachable(members))
            # When a replica of the store takes over, an epoch may come again with other members.
            if members.are_those_of(self._latest):
                continue
            for each in self._latest:
                if each.session not in members:
                    logger.info("node %s is a member no more", each.name)
                    self._placement.requests.on_member_lost(each.session)  # at once: commits may wait for its answer
            self._latest = members
            self._links.connect_to(members)
            self._changed.set()

    async def _unreachable(self, members: NodeMembers) -> list[NodeMember]:
        """Return members that send heartbeats but have no link: one that sends none is expelled soon."""
        silent = [each for each in members.others if not self._links.is_linked(each.session)]
        beating = await self._with_timeout(self._store.live_names()) if silent else ()
        return [each for each in silent if each.name in beating]

    def _check_unreachable(self, silent: Iterable[NodeMember]) -> None:
        """Warn of live members without a link. Raises NodeIsolated where this node is the one that has to go."""
        now, here = _now(), self._links.address
        for each in self.unreachable_peers.update(silent, now):
            logger.warning(
                "node %s at %s is running but not linked with this node, %s: no handoffs until it is",
                each.name, each.address, here,
            )  # fmt: skip
        if (stronger := self.unreachable_peers.should_yield_to(now)) is not None:
            raise NodeIsolated(
                f"node {stronger.name} at {stronger.address} lives, and is not reached from here, {here}: "
                f"node {self.name} steps back (--link says where other nodes reach one)"
            )

    async def run_handoffs(self) -> None:
        """Let logs go and come as the members change, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            logger.info("%d other nodes in epoch %d", len(self._latest.others), self._latest.epoch)
            await self._placement.coordinator.on_members_changed(self._latest)
            self.on_followed()

    async def _read_members(self) -> NodeMembers:
        epoch, found = await self._store.members()
        return NodeMembers(epoch, [NodeMember.from_record(*each) for each in found.items()], self.session)

    @property
    def _can_expel(self) -> bool:
        return self._is_exclusive or self._liveness.can_expel(_now())

    async def _expel_dead(self) -> None:
        _, found = await self._with_timeout(self._store.members())
        others = {name: about["session"] for name, about in found.items() if about["session"] != self.session}
        if not others:
            return
        beating = await self._with_timeout(self._store.live_names())
        if self.name not in beating:  # the store's clock went on while nobody could beat
            return
        for name, session in others.items():
            if name in beating or not self._can_expel:  # the store may have stood still as it was asked
                continue
            try:
                is_fenced = await self._with_timeout(self._store.fence(self.session, name, session))
            except StoreUnavailable as error:  # its queues wait; members are followed meanwhile
                if self._not_expelled.get(name) != session:
                    logger.warning(
                        "node %s has not beaten for %d ms, and its queues cannot be taken over yet: %s; trying again",
                        name, self._timeout_ms, error,
                    )  # fmt: skip
                self._not_expelled[name] = session
                continue
            if is_fenced:
                logger.warning("node %s has not beaten for %d ms: it is expelled", name, self._timeout_ms)


def _now() -> float:
    return asyncio.get_running_loop().time()
