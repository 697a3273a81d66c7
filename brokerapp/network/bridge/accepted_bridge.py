"""Take messages to a broker over the connection that its duplex bridge made to this one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from brokerapp.connections.connector_state import ConnectorState
from brokerapp.engine.routing.bridge_eligibility import BridgeFilterCounts
from brokerapp.network.bridge.bridge import Bridge, BridgeCounters, id_prefix_of
from brokerapp.network.bridge.connection import OUTBOUND, BridgeAdvisories, pause_unless, tell_refused
from brokerapp.network.bridge.forwarder import ReceiptForwarder
from brokerapp.network.bridge.local_link import connect_local
from brokerapp.network.links.accepted_connection import AcceptedConnection
from brokerapp.network.links.broker_link import BridgeConnectionLost, BridgeLogin, BrokerLink, LinkEvents
from brokerapp.network.links.openwire_link import OpenWireBrokerLink
from brokerapp.network.options.client_ids import inbound_client_id
from brokerapp.network.options.options import ConnectorOptions
from brokerapp.openwire.commands import BaseCommand, ConsumerInfo

logger = logging.getLogger(__name__)

#: What tells the client ids of such bridges from those of this broker's own connectors.
DUPLEX = "duplex_"


class AcceptedBridge:
    """The bridge back over one accepted connection, until that ends; then `on_end` is called.

    What this broker does not give to it is counted in `filtered`.
    """

    def __init__(
        self,
        endpoint: ConnectorState,
        options: ConnectorOptions,
        connection: AcceptedConnection,
        *,
        filtered: BridgeFilterCounts,
        advisories: BridgeAdvisories,
        on_end: Callable[[], None],
    ) -> None:
        self.options, self.counters = options, BridgeCounters()
        self._endpoint, self._connection, self._filtered = endpoint, connection, filtered
        self._advisories, self._on_end = advisories, on_end
        self._task: asyncio.Task[None] | None = None

    def start(self, durable_subscriptions: Sequence[ConsumerInfo] | None) -> None:
        """Consume here what is wanted there; durable subscriptions are all that there are, or None: nobody says."""
        self._task = asyncio.create_task(self._run(durable_subscriptions), name=f"bridge to {self._connection.remote}")

    def receive(self, command: BaseCommand) -> bool:
        """Handle what the other broker sends to this bridge; return whether it was that."""
        return self._connection.receive(command)

    def set_writable(self, is_writable: bool) -> None:
        """Note whether the connection takes more for now."""
        self._connection.set_writable(is_writable)

    def end(self) -> None:
        """End the bridge: the connection is over. What it held goes back."""
        self._connection.end()

    async def _run(self, durable_subscriptions: Sequence[ConsumerInfo] | None) -> None:
        connection = self._connection
        try:
            local = await self._connect_local()
            try:
                self._start_bridge(local, durable_subscriptions)
                await asyncio.wait({local.lost, connection.lost}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                local.close()
        except BridgeConnectionLost as error:
            logger.warning("the duplex bridge of %s has no bridge back: %s", connection.remote, error)
        except Exception:
            logger.exception("the bridge back to %s failed", connection.remote)
        finally:
            connection.close()
            self._on_end()

    async def _connect_local(self) -> BrokerLink:
        here, there, name = self._endpoint.services.name, self._connection.remote, f"{DUPLEX}{self.options.name}"
        client_id = inbound_client_id(name, there, here)
        login = BridgeLogin(here, client_id, client_id, sends_copies=not self.options.conduit_subscriptions)
        local, _ = await connect_local(self._endpoint, name, login, there, self._filtered)
        return local

    def _start_bridge(self, local: BrokerLink, durable_subscriptions: Sequence[ConsumerInfo] | None) -> None:
        here, connection, options = self._endpoint.services.name, self._connection, self.options
        remote = OpenWireBrokerLink(connection, self._endpoint.services.broker_ids)
        forwarder = ReceiptForwarder(remote, id_prefix_of(OUTBOUND))
        bridge = Bridge(OUTBOUND, local, remote, here, connection.remote, options, forwarder, self.counters)
        bridge.on_message_refused = partial(tell_refused, self._advisories)

        def on_receipt(receipt: str) -> None:
            bridge.on_receipt(receipt)

        def on_refused(receipt: str, why: str) -> None:
            if not bridge.on_refused(receipt, why):
                logger.warning("network connector %s of %s: refused: %s", options.name, connection.remote, why)

        local.listen(LinkEvents(on_receipt, on_refused, lambda _is_writable: None))
        remote.listen(LinkEvents(on_receipt, on_refused, partial(pause_unless, local)))
        connection.introduce(options.login)
        bridge.start()
        if durable_subscriptions is not None and not options.dynamic_only:
            bridge.synchronize(remote.durable_consumers(durable_subscriptions))
