"""Connect this broker to all others of its cluster, and reconnect."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from brokerapp.cluster.cluster import Cluster
from brokerapp.cluster.peer import LINK_PREFIX, ClusterPeer
from brokerapp.network.links.bridge_link import dial
from brokerapp.network.links.broker_link import BridgeConnectionLost
from brokerapp.network.links.sockets import TlsContextFactory
from brokerapp.stomp.frames import Frame
from brokerapp.stomp.session import BRIDGE_HEADER, CLUSTER_HEADER

logger = logging.getLogger(__name__)


class ClusterLinks:
    """Connects a node, `member`, to all others of its cluster. `trust` makes the TLS context."""

    def __init__(self, broker: str, member: str, cluster: Cluster, trust: TlsContextFactory) -> None:
        self._broker, self._member, self._cluster, self._trust = broker, member, cluster, trust
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Have a link to each whenever it can be had."""
        for peer in self._cluster.peers.values():
            self._tasks.append(asyncio.create_task(self._keep_connected(peer), name=f"cluster link to {peer.name}"))

    async def stop(self) -> None:
        """Close all links, and stop reconnecting."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep_connected(self, peer: ClusterPeer) -> None:
        sought = asyncio.Event()
        peer.reconnect_now = sought.set
        while True:
            sought.clear()
            try:
                await self._serve(peer)
            except Exception:
                logger.exception("the link to %s failed", peer.name)
                self._cluster.on_peer_lost(peer, "internal error: see the log of this broker")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(sought.wait(), self._cluster.terms.retry_ms / 1000)

    async def _serve(self, peer: ClusterPeer) -> None:
        """Be linked for as long as it goes."""
        try:
            link = await dial(f"cluster {peer.name}", peer.address, self._trust)
        except BridgeConnectionLost as error:
            self._cluster.on_peer_lost(peer, str(error))
            return
        linked = False
        try:
            await link.open(self._login())
            if link.remote != peer.broker:
                raise BridgeConnectionLost(f"it is {link.remote or 'not a Sluice broker'}, expected {peer.broker}")
            link.on_receipt = peer.on_confirmed
            link.on_error = lambda frame: _on_error(peer, frame)
            self._cluster.on_peer_connected(peer, link)
            linked = True
            raise BridgeConnectionLost(await link.lost)
        except BridgeConnectionLost as error:
            self._cluster.on_peer_lost(peer, str(error), refused=not linked)
        finally:
            link.close()

    def _login(self) -> dict[str, str]:
        terms = self._cluster.terms
        login = {"login": terms.user, "passcode": terms.password or ""} if terms.user is not None else {}
        about = {BRIDGE_HEADER: self._broker, CLUSTER_HEADER: self._cluster.agreement}
        return {**about, "client-id": f"{LINK_PREFIX}{self._member}", **login}


def _on_error(peer: ClusterPeer, frame: Frame) -> None:
    peer.on_refused(frame.headers.get("receipt-id", ""), frame.headers.get("message", ""))
