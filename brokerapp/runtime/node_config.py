"""Define the settings of a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from brokerapp.cluster.settings import ClusterSettings
from brokerapp.connections.tls_renewal import RenewedFromFiles
from brokerapp.engine.policy.authorization import AuthorizationEntry
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import Destination
from brokerapp.model.settings import DEFAULT_SETTINGS, Settings
from brokerapp.model.transport_connector import NO_STORES, TlsStores
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.nodes.links.peer_links import LinkTls
from brokerapp.runtime.listeners import ListenAddress
from brokerapp.store.nodes import NODE_TIMEOUT_MS, ONLY_NODE


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Settings of one node of a broker.

    `definitions` are put into a store that has none. With `impose` they come from a file: they replace those of the
    store when the file says something else than it did last time, so that what operators changed since stays.
    """

    broker: str
    redis_url: str
    listen: tuple[ListenAddress, ...]
    definitions: Definitions = field(default_factory=Definitions)
    destinations: tuple[Destination, ...] = ()  #: that exist from the start
    grants: tuple[AuthorizationEntry, ...] | None = None  #: None: everybody may do everything
    replaces_definitions: bool = False
    store_folder: Path | None = None  #: of a store of our own, so that its disk is watched
    replicas: int = 0  #: of the store that confirm what clients get receipts for
    store_limit: int = 0  #: bytes; 0: half of the machine's memory
    temp_limit: int = 0  #: of them, for what is not persistent; 0: all
    trace: bool = True  #: record what happens to messages
    settings: Settings = DEFAULT_SETTINGS
    owns_store: bool = False  #: nobody else can use this store, so a former node need not be waited for
    cluster: ClusterSettings | None = None  #: the one it is in
    network: tuple[NetworkConnector, ...] = ()  #: connectors to other brokers, unless the store knows others
    is_copy: bool = False  #: of another broker, so that no connector starts by itself
    network_at_once: bool = False  #: no connector waits for the first attempt of another
    tls: TlsStores = NO_STORES  #: by which other brokers are believed, and believe this one
    node: str = ONLY_NODE  #: its name among the nodes of the broker
    node_timeout_ms: int = NODE_TIMEOUT_MS  #: without a beat after which it is taken for dead
    link_host: str = "127.0.0.1"  #: where other nodes of the broker reach it
    link_tls: RenewedFromFiles[LinkTls] | None = None  #: how it speaks with them; None: unencrypted

    @property
    def node_name(self) -> str:
        """Return the name that the node was given; "": none."""
        return "" if self.node == ONLY_NODE else self.node

    def renewed(self) -> Iterator[RenewedFromFiles[Any]]:
        """Yield what is made of files with keys and certificates, and made anew when they change."""
        yield from (each.tls.held for each in self.listen if each.tls is not None)
        if self.link_tls is not None:
            yield self.link_tls
