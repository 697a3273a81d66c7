"""Connections: the network connectors of a broker, each with its bridges, which are built anew when a link breaks."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from brokerapp.network import loopback
from brokerapp.network.activemq import ask_name
from brokerapp.network.bridge import Bridge
from brokerapp.network.link import Link, LinkLost
from brokerapp.network.terms import Address, Terms
from brokerapp.stomp.endpoint import Endpoint
from brokerapp.stomp.session import BRIDGE_HEADER

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Connection:
    """One connector's way to one broker (or, in turn, to the first of some that answers)."""

    terms: Terms
    addresses: Sequence[Address]
    remote: str = ""  #: the name of the broker it leads to, when that is known
    connected_to: Address | None = None
    last_error: str = ""
    attempts: int = 0  #: that failed, in a row
    bridges: list[Bridge] = field(default_factory=list)


class Connections:
    """All of one node. `endpoint` is where bridges consume from their own broker."""

    def __init__(self, broker: str, endpoint: Endpoint, connectors: Sequence[Terms]) -> None:
        self._broker, self._endpoint = broker, endpoint
        self.all = [
            Connection(terms, ways)
            for terms in connectors
            for ways in ((terms.addresses,) if terms.in_turn else [(each,) for each in terms.addresses])
        ]
        self._tasks: list[asyncio.Task] = []

    def start(self) -> None:
        """Build the bridges of those connectors that start by themselves."""
        for each in self.all:
            if each.terms.auto_start:
                self._tasks.append(asyncio.create_task(self._keep(each), name=f"network {each.terms.name}"))

    async def stop(self) -> None:
        """Take all bridges down; what they held goes back."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _keep(self, connection: Connection) -> None:
        """Have the bridge whenever it can be had."""
        terms, loop = connection.terms, asyncio.get_running_loop()
        for address in itertools.cycle(connection.addresses):
            began = loop.time()
            try:
                await self._serve(connection, address)
            except LinkLost as error:
                if str(error) != connection.last_error:
                    logger.warning("network connector %s: %s: %s", terms.name, address, error)
                connection.last_error = str(error)
            except Exception:
                logger.exception("network connector %s failed", terms.name)
            connection.connected_to, connection.bridges = None, []
            lasted_ms = (loop.time() - began) * 1000
            connection.attempts = 1 if lasted_ms >= terms.reconnecting.min_connect_time else connection.attempts + 1
            if 0 < terms.reconnecting.max_attempts <= connection.attempts:
                logger.error("network connector %s gives up after %d attempts", terms.name, connection.attempts)
                return
            await asyncio.sleep(terms.reconnecting.delay_ms(connection.attempts) / 1000)

    async def _serve(self, connection: Connection, address: Address) -> None:
        """Bridge as long as both links hold. Raises LinkLost when one is lost."""
        terms = connection.terms
        remote = await self._remote(terms, address)
        try:
            if remote.remote == self._broker:
                raise LinkLost(f"{address} is this broker itself")
            connection.remote = remote.remote
            local = await self._local(terms, connection.remote)
            try:
                self._build(connection, local, remote)
                connection.connected_to, connection.last_error = address, ""
                logger.info("network connector %s: bridge to %s (%s)", terms.name, connection.remote, address)
                await asyncio.wait({local.lost, remote.lost}, return_when=asyncio.FIRST_COMPLETED)
                raise LinkLost(remote.lost.result() if remote.lost.done() else f"own broker: {local.lost.result()}")
            finally:
                local.close()
        finally:
            remote.close()

    async def _remote(self, terms: Terms, address: Address) -> Link:
        link = Link(terms.name)
        context = ssl.create_default_context() if address.tls else None
        try:
            await asyncio.get_running_loop().create_connection(lambda: link, address.host, address.port, ssl=context)
        except OSError as error:
            raise LinkLost(error.strerror or str(error)) from error
        login = {"login": terms.user_name, "passcode": terms.password or ""} if terms.user_name is not None else {}
        await link.open({BRIDGE_HEADER: self._broker, "client-id": f"{terms.name}_{self._broker}_outbound", **login})
        if not link.remote:
            link.remote = await ask_name(link) or f"{address.host}:{address.port}"
        return link

    async def _local(self, terms: Terms, remote: str) -> Link:
        link = Link(terms.name)
        loopback.connect(link, self._endpoint)
        await link.open({BRIDGE_HEADER: self._broker, "client-id": f"{terms.name}_{remote}_inbound_{self._broker}"})
        return link

    def _build(self, connection: Connection, local: Link, remote: Link) -> None:
        terms = connection.terms
        bridges = [Bridge("out", local, remote, self._broker, connection.remote, terms)]
        if terms.duplex:
            bridges.append(Bridge("in", remote, local, connection.remote, self._broker, terms))
        connection.bridges = bridges
        for link, sender in ((remote, bridges[0]), (local, bridges[-1])):
            link.receipt = lambda id, sender=sender: sender.confirmed(id) or None
            link.refused = lambda frame, sender=sender: sender.refused(frame) or None
        remote.drained = lambda free: local.hold(not free)
        local.drained = lambda free: remote.hold(not free)
        for each in bridges:
            each.start()
