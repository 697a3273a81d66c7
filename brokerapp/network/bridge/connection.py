"""Keep the connection of a network connector to one broker, and its bridges."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.routing.bridge_eligibility import BridgeFilterCounts
from brokerapp.model.network_stats import BridgeConnectionState
from brokerapp.network.bridge.activemq_forwarder import TransactionalForwarder
from brokerapp.network.bridge.bridge import Bridge, BridgeCounters, id_prefix_of
from brokerapp.network.bridge.forwarder import Forwarder, ReceiptForwarder
from brokerapp.network.bridge.local_link import connect_local
from brokerapp.network.links.broker_link import (
    BridgeConnectionLost,
    BridgedMessage,
    BridgeLogin,
    BrokerLink,
    LinkEvents,
)
from brokerapp.network.links.remote_links import RemoteLinks
from brokerapp.network.links.sockets import TlsContextFactory
from brokerapp.network.links.stomp_link import StompBrokerLink
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.client_ids import inbound_client_id, outbound_client_id
from brokerapp.network.options.options import ConnectorOptions
from brokerapp.stomp.transport.connection import StompConnection
from brokerapp.system.clock import now_ms

logger = logging.getLogger(__name__)

#: What the two directions are called.
OUTBOUND, INBOUND = "out", "in"


class BridgeAdvisories(Protocol):
    """Publishes advisories about bridges."""

    def bridge_started(self, key: str, name: str, url: str, *, by_duplex: bool) -> None: ...

    def bridge_stopped(self, key: str) -> None: ...

    def forward_failed(self, headers: Mapping[str, str], body: bytes, cause: str) -> None: ...


@dataclass(slots=True)
class ConnectionCounters:
    """Counters of a bridge connection in both directions, over all its links."""

    outbound: BridgeCounters = field(default_factory=BridgeCounters)
    inbound: BridgeCounters = field(default_factory=BridgeCounters)
    filtered: BridgeFilterCounts = field(
        default_factory=BridgeFilterCounts
    )  #: what this broker did not let cross, or had already


class BridgeConnection:
    """To the first of these addresses that answers, in turn. `endpoint` is where bridges consume from their own broker.

    `advisories` are told of each pair of links that begins and ends; `trust` is what TLS is spoken with.
    """

    def __init__(
        self,
        endpoint: ConnectorState,
        terms: ConnectorOptions,
        addresses: Sequence[BrokerAddress],
        advisories: BridgeAdvisories,
        trust: TlsContextFactory,
    ) -> None:
        self.terms, self.addresses = terms, addresses
        self.broker, self._endpoint, self._advisories = endpoint.services.name, endpoint, advisories
        self._remote_links = RemoteLinks(terms.name, trust, terms.outbound, endpoint.services.broker_ids)
        self.state = BridgeConnectionState.STOPPED
        self.remote = ""  #: the name of the broker it leads to, when that is known
        self.connected_to: BrokerAddress | None = None
        self.protocol = ""  #: what is spoken with that broker now
        self.connected_ms = 0
        self.last_error, self.last_error_ms = "", 0
        self.attempts = 0  #: that failed, in a row
        self.next_attempt_ms = 0
        self.connection_count = 0
        self.bridges: list[Bridge] = []
        self.local_connection: StompConnection | None = None  #: the connection to its own broker
        self.counts = ConnectionCounters()
        self.first_attempt_done = asyncio.Event()  #: set when the first attempt has ended, one way or the other
        self._connected_at: float | None = None  # in the loop's time, of the last attempt
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Return whether the connection is to be kept."""
        return self._task is not None and not self._task.done()

    @property
    def directions(self) -> tuple[str, ...]:
        """Return the directions in which messages are forwarded."""
        return (OUTBOUND, INBOUND) if self.terms.duplex else (OUTBOUND,)

    def start(self) -> None:
        """Have the bridges whenever they can be had."""
        if not self.is_running:
            self.attempts, self.last_error = 0, ""
            self._task = asyncio.create_task(self._keep_connected(), name=f"network {self.terms.name}")

    async def stop(self, *, for_good: bool = False) -> None:
        """Take the bridges down; what they held goes back. Nothing is kept for them then if it is for good."""
        for each in self.bridges if for_good else ():
            each.remove()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.state, self.next_attempt_ms = BridgeConnectionState.STOPPED, 0
        self.first_attempt_done.set()

    async def _keep_connected(self) -> None:
        terms, loop = self.terms, asyncio.get_running_loop()
        for address in itertools.cycle(self.addresses):
            self._connected_at = None
            self.state = BridgeConnectionState.CONNECTING
            try:
                await self._serve(address)
            except BridgeConnectionLost as error:
                self._record_failure(address, str(error))
            except Exception as error:
                logger.exception("network connector %s failed", terms.name)
                self._record_failure(address, f"internal error: {error}")
            self.first_attempt_done.set()
            lasted_ms = 0 if self._connected_at is None else (loop.time() - self._connected_at) * 1000
            self.attempts = 1 if lasted_ms >= terms.reconnecting.min_connect_time else self.attempts + 1
            if 0 < terms.reconnecting.max_attempts <= self.attempts:
                logger.error("network connector %s gave up after %d attempts", terms.name, self.attempts)
                self.state = BridgeConnectionState.GAVE_UP
                return
            delay_ms = terms.reconnecting.delay_ms(self.attempts)
            self.state, self.next_attempt_ms = BridgeConnectionState.WAITING, now_ms() + round(delay_ms)
            await asyncio.sleep(delay_ms / 1000)

    def _record_failure(self, address: BrokerAddress, why: str) -> None:
        if why != self.last_error:
            logger.warning("network connector %s: %s: %s", self.terms.name, address, why)
        self.last_error, self.last_error_ms = why, now_ms()

    async def _serve(self, address: BrokerAddress) -> None:
        """Bridge as long as both links hold. Raises LinkLost when one is lost."""
        remote = await self._remote_links.connect(
            address, self._login(outbound_client_id(self.terms.name, self.broker), is_remote=True)
        )
        try:
            if remote.remote == self.broker:
                raise BridgeConnectionLost(
                    f"the broker there has the same name as this one, {self.broker!r}: each broker of a network needs "
                    "a brokerName of its own (or the address leads back to this broker)"
                )
            self.remote = remote.remote
            local = await self._connect_local()
            try:
                self._start_bridges(local, remote, await self._make_forwarder(remote))
                self.connected_to, self.connected_ms, self.state = address, now_ms(), BridgeConnectionState.CONNECTED
                self.protocol = remote.protocol
                self.next_attempt_ms, self._connected_at = 0, asyncio.get_running_loop().time()
                self.connection_count += 1
                self.first_attempt_done.set()
                self._advisories.bridge_started(self._advisory_key, self.remote, str(address), by_duplex=False)
                logger.info(
                    "network connector %s: bridge to %s (%s) over %s",
                    self.terms.name, self.remote, address, self.protocol,
                )  # fmt: skip
                await asyncio.wait({local.lost, remote.lost}, return_when=asyncio.FIRST_COMPLETED)
                raise BridgeConnectionLost(
                    remote.lost.result() if remote.lost.done() else f"local broker: {local.lost.result()}"
                )
            finally:
                local.close()
                self._on_disconnected()
        finally:
            remote.close()

    def _on_disconnected(self) -> None:
        self.bridges, self.local_connection = [], None
        if self.connected_to is not None:
            self.connected_to, self.protocol = None, ""
            self._advisories.bridge_stopped(self._advisory_key)

    @property
    def _advisory_key(self) -> str:
        """Return what tells its bridges from others in advisories."""
        return f"{self.terms.name} {self.addresses[0]}"

    @property
    def _way_name(self) -> str:
        """What tells its connections from those of other ways: a former one, dead perhaps, yields to the next."""
        return " ".join(map(str, self.addresses))

    async def _connect_local(self) -> BrokerLink:
        """The link to its own broker."""
        name = self.terms.name
        login = self._login(inbound_client_id(name, self.remote, self.broker))
        link, self.local_connection = await connect_local(
            self._endpoint, name, login, self.remote, self.counts.filtered
        )
        return link

    def _login(self, id: str, *, is_remote: bool = False) -> BridgeLogin:
        """Return what a link says of itself to the broker at its end."""
        terms = self.terms
        return BridgeLogin(
            self.broker, id, self._way_name,
            sends_copies=not terms.conduit_subscriptions,
            duplex=is_remote and terms.duplex,
            user=terms.login if is_remote else None,
        )  # fmt: skip

    async def _make_forwarder(self, remote: BrokerLink) -> Forwarder:
        if remote.recognizes_repeated or not isinstance(remote, StompBrokerLink):
            return ReceiptForwarder(remote, id_prefix_of(OUTBOUND))
        batches = TransactionalForwarder(remote.connection, id_prefix_of(OUTBOUND), self.broker, self.terms.name)
        await batches.open()
        return batches

    def _on_refused(self, receipt: str, why: str) -> None:
        """A broker did not do what it was asked: what is no message's, a subscription's say, somebody must hear of."""
        if not any(each.on_refused(receipt, why) for each in self.bridges):
            self._record_failure(self.connected_to or self.addresses[0], f"refused: {why}")

    def _record_complaint(self, why: str) -> None:
        self.last_error, self.last_error_ms = why, now_ms()

    def _start_bridges(self, local: BrokerLink, remote: BrokerLink, outbox: Forwarder) -> None:
        terms, counts = self.terms, self.counts
        bridges = [Bridge(OUTBOUND, local, remote, self.broker, self.remote, terms, outbox, counts.outbound)]
        if terms.duplex:
            back = ReceiptForwarder(local, id_prefix_of(INBOUND))
            bridges.append(Bridge(INBOUND, remote, local, self.remote, self.broker, terms, back, counts.inbound))
        self.bridges = bridges

        def on_receipt(id: str) -> None:
            any(each.on_receipt(id) for each in bridges)  # the first that asked for it

        for link, other in ((remote, local), (local, remote)):
            link.listen(LinkEvents(on_receipt, self._on_refused, partial(pause_unless, other)))
        for each in bridges:
            each.on_message_refused, each.on_complaint = partial(tell_refused, self._advisories), self._record_complaint
            each.start()


def tell_refused(advisories: BridgeAdvisories, message: BridgedMessage, why: str) -> None:
    """Tell of what did not cross (advisoryForFailedForward)."""
    headers = {**message.headers, "destination": message.destination, "message-id": message.id}
    advisories.forward_failed(headers, message.body, why)


def pause_unless(link: BrokerLink, free: bool) -> None:
    """Read from a link only while the other one takes more."""
    link.pause_reading(not free)
