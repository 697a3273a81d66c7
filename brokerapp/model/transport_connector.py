"""Define the options and limits of a transport connector. Plain values; ActiveMQ's terms and defaults.

A connector is one address where the broker listens. Its scheme says which protocols are spoken there and how their
bytes travel, its options what a connection may do.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Transport(NamedTuple):
    """How bytes travel, TCP, TLS or WebSocket, and whether they may be OpenWire's; STOMP is spoken everywhere."""

    tls: bool = False
    websocket: bool = False
    openwire: bool = False
    #: Whether a client that says nothing is told something first, as OpenWire has it.
    greets: bool = False

    @property
    def scheme(self) -> str:
        """Return the scheme of addresses with this transport."""
        return CANONICAL[self]

    @property
    def protocols(self) -> str:
        """Return the names of the protocols that are spoken."""
        return "STOMP and OpenWire" if self.openwire else "STOMP"


PLAIN_STOMP = Transport()
_OPENWIRE, _AUTO = Transport(openwire=True, greets=True), Transport(openwire=True)
#: Scheme of addresses with a transport.
CANONICAL = {
    PLAIN_STOMP: "stomp",
    PLAIN_STOMP._replace(tls=True): "stomp+ssl",
    _OPENWIRE: "tcp",
    _OPENWIRE._replace(tls=True): "ssl",
    _AUTO: "auto",
    _AUTO._replace(tls=True): "auto+ssl",
    Transport(websocket=True): "ws",
    Transport(tls=True, websocket=True): "wss",
}
#: Scheme of a uri -> what is served there. OpenWire's schemes speak STOMP, too, as `auto` does in ActiveMQ: a file that
#: names no others shall be of use to all.
TRANSPORTS: dict[str, Transport] = {
    **{scheme: transport for transport, scheme in CANONICAL.items()},
    "stomp+nio": PLAIN_STOMP,
    "stomp+nio+ssl": PLAIN_STOMP._replace(tls=True),
    "nio": _OPENWIRE,
    "nio+ssl": _OPENWIRE._replace(tls=True),
    "auto+nio": _AUTO,
    "auto+nio+ssl": _AUTO._replace(tls=True),
}

#: Longest body, bytes (ActiveMQ's maxDataLength).
MAX_BODY_BYTES = 100 * 1024 * 1024
#: Milliseconds after which a socket that has not sent CONNECT is closed (ActiveMQ's connectAttemptTimeout).
CONNECT_MS = 30_000
#: A heart-beat asked for more often than this (milliseconds) is sent this often: a floor against busy loops.
HEART_BEAT_FLOOR_MS = 100
#: A heart-beat asked for more rarely than this (milliseconds) is sent this often: many a firewall forgets connections
#: that are silent for longer.
HEART_BEAT_CEILING_MS = 600_000
#: The highest version of OpenWire.
OPENWIRE_VERSION = 12
#: Milliseconds without a byte after which an OpenWire peer is given up, and before the first look at that.
MAX_INACTIVITY_MS, INITIAL_DELAY_MS = 30_000, 10_000


@dataclass(frozen=True, slots=True)
class OpenWireSettings:
    """What a connector offers to OpenWire clients: a connection has what both sides can, and the shorter times."""

    version: int = OPENWIRE_VERSION
    tight_encoding: bool = True  #: as ActiveMQ; makes messages 70 bytes shorter
    cache: bool = True
    max_inactivity_ms: int = MAX_INACTIVITY_MS  #: 0: for ever
    initial_delay_ms: int = INITIAL_DELAY_MS
    #: Whether clients are told of the other nodes of the broker, also when one leaves, and to spread over them.
    update_cluster_clients: bool = False
    update_cluster_clients_on_remove: bool = False
    rebalance_cluster_clients: bool = False
    #: Patterns of the names of nodes that clients are told of, comma separated regular expressions; "": all.
    update_cluster_filter: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of the connections of a connector, in milliseconds and bytes."""

    max_connections: int | None = None  #: None: any number
    max_frame: int | None = None  #: headers and body together; None: whatever headers and body may be each
    max_body: int = MAX_BODY_BYTES
    max_consumers: int | None = None  #: subscriptions of one connection; None: any number
    max_producers: int | None = None  #: of one connection; None: any number
    connect_ms: int = CONNECT_MS  #: 0: for ever
    default_heart_beat: str = "0,0"  #: what a client that says nothing is taken to have said
    heart_beat_grace: float = 1.0  #: how much more time than promised a client gets
    heart_beat_floor_ms: int = HEART_BEAT_FLOOR_MS
    heart_beat_ceiling_ms: int = HEART_BEAT_CEILING_MS
    allow_link_stealing: bool = False  #: a newcomer takes over a client id, the holder must go
    #: Whose web pages may connect to a WebSocket; None: every page where users log in, else only pages of this machine.
    origins: frozenset[str] | None = None
    backlog: int = 5_000  #: connections the system may keep waiting to be accepted
    openwire: OpenWireSettings = OpenWireSettings()


DEFAULT_LIMITS = ConnectionLimits()


class ClientAuth(StrEnum):
    """Whether a client shows a certificate."""

    NONE = "none"
    WANTED = "wanted"
    NEEDED = "needed"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A file with keys or certificates: PKCS12, or PEM."""

    path: str
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)  #: of the key in it, where that is another one


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Names of the settings that say which files to use: errors name what to correct."""

    certificate: str
    key: str
    password: str
    key_password: str


#: Attributes of `<sslContext>`.
XML_SETTINGS = TlsSettings("keyStore", "key", "keyStorePassword", "keyPassword")
#: Environment variables of an installation.
ENVIRONMENT_SETTINGS = TlsSettings(
    "SLUICE_TLS_CERTIFICATE", "SLUICE_TLS_KEY", "SLUICE_TLS_PASSWORD", "SLUICE_TLS_PASSWORD"
)


@dataclass(frozen=True, slots=True)
class TlsStores:
    """The broker's key, and the certificates that it trusts; None: not configured."""

    key_store: KeyStore | None = None
    key: KeyStore | None = None  #: PEM: the private key, when it is not in the file with the certificate
    trust_store: KeyStore | None = None
    settings: TlsSettings = XML_SETTINGS


NO_STORES = TlsStores()


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """TLS options of a connector: client certificates and protocol versions."""

    client_auth: ClientAuth = ClientAuth.NONE
    protocols: tuple[str, ...] = ()  #: such as TLSv1.2; none: 1.2 and later


PLAIN_TLS = TlsOptions()


def is_loopback(host: str) -> bool:
    """Whether this name or address is that of the machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
