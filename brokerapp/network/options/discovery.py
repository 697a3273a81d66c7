"""Announce a broker by multicast, and find the other brokers of its group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

from brokerapp.network.options.multicast import MAX_BYTES, MISSED_ANNOUNCEMENTS, DiscoveryGroup

logger = logging.getLogger(__name__)

_ANY = "0.0.0.0"


class Discovery(asyncio.DatagramProtocol):
    """Says where its broker is, if that has addresses, and hears of others.

    `found` is told the URI and the broker of each, `lost` the URI.
    """

    def __init__(
        self, group: DiscoveryGroup, broker: str, announces: tuple[str, ...] = (),
        found: Callable[[str, str], None] = lambda _uri, _broker: None, lost: Callable[[str], None] = lambda _uri: None,
    ) -> None:  # fmt: skip
        self.group, self._broker, self._addresses = group, broker, announces
        self._on_found, self._on_lost = found, lost
        self._seen: dict[str, float] = {}  # URI -> when it was announced last
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join the group. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=_open_socket(self.group))
        self._task = asyncio.create_task(self._run(), name=f"discovery {self.group.name}")

    async def stop(self) -> None:
        """Announce that the broker leaves, and stop."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._announce(alive=False)
        self._transport.close()

    async def _run(self) -> None:
        loop, period = asyncio.get_running_loop(), self.group.keep_alive_ms / 1000
        while True:
            self._announce(alive=True)
            for uri in [uri for uri, at in self._seen.items() if at < loop.time() - MISSED_ANNOUNCEMENTS * period]:
                self._on_expired(uri)
            await asyncio.sleep(period)

    def _announce(self, *, alive: bool) -> None:
        for uri in self._addresses:
            self._transport.sendto(
                self.group.announcement(self._broker, uri, alive=alive), (self.group.address, self.group.port)
            )

    def _on_expired(self, uri: str) -> None:
        if self._seen.pop(uri, None) is not None:
            self._on_lost(uri)

    # -- asyncio's side

    def datagram_received(self, data: bytes, addr: Any) -> None:
        heard = self.group.parse(data[:MAX_BYTES])
        if heard is None or heard.broker == self._broker:
            return
        if not heard.alive:
            self._on_expired(heard.uri)
            return
        is_new = heard.uri not in self._seen
        self._seen[heard.uri] = asyncio.get_running_loop().time()
        if is_new:
            self._on_found(heard.uri, heard.broker)

    def error_received(self, exc: Exception) -> None:
        logger.debug("group %s: %s", self.group.name, exc)


def _open_socket(group: DiscoveryGroup) -> socket.socket:
    """One that sends to the group and hears it, on the group's interface."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((group.address, group.port))
        index = socket.if_nametoindex(group.interface) if group.interface else 0
        membership = struct.pack("=4s4si", socket.inet_aton(group.address), socket.inet_aton(_ANY), index)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        if index:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, group.time_to_live)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made
