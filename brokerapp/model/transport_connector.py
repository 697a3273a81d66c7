"""Define the options and limits of a transport connector. Plain values; ActiveMQ's terms and defaults.

A connector is one address where the broker listens. Its scheme says how bytes get from there to STOMP, its options what
a connection may do.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Transport(NamedTuple):
    """Transport of STOMP: TCP, TLS or WebSocket."""

    tls: bool = False
    websocket: bool = False

    @property
    def scheme(self) -> str:
        """Return the scheme of addresses with this transport."""
        return CANONICAL[self]


#: Scheme of a uri -> what is served there: STOMP. OpenWire's schemes are among them because `auto` speaks STOMP in
#: ActiveMQ, too, and because a file that names no others shall be of use.
TRANSPORTS: dict[str, Transport] = {
    **dict.fromkeys(("stomp", "stomp+nio", "tcp", "nio", "auto", "auto+nio"), Transport()),
    **dict.fromkeys(
        ("stomp+ssl", "stomp+nio+ssl", "ssl", "nio+ssl", "auto+ssl", "auto+nio+ssl"), Transport(tls=True)
    ),
    "ws": Transport(websocket=True),
    "wss": Transport(tls=True, websocket=True),
}  # fmt: skip
CANONICAL = {
    Transport(): "stomp",
    Transport(tls=True): "stomp+ssl",
    Transport(websocket=True): "ws",
    Transport(tls=True, websocket=True): "wss",
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


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of the connections of a connector, in milliseconds and bytes."""

    max_connections: int | None = None  #: None: any number
    max_frame: int | None = None  #: headers and body together; None: whatever headers and body may be each
    max_body: int = MAX_BODY_BYTES
    max_consumers: int | None = None  #: subscriptions of one connection; None: any number
    connect_ms: int = CONNECT_MS  #: 0: for ever
    default_heart_beat: str = "0,0"  #: what a client that says nothing is taken to have said
    heart_beat_grace: float = 1.0  #: how much more time than promised a client gets
    heart_beat_floor_ms: int = HEART_BEAT_FLOOR_MS
    heart_beat_ceiling_ms: int = HEART_BEAT_CEILING_MS
    allow_link_stealing: bool = False  #: a newcomer takes over a client id, the holder must go
    #: Whose web pages may connect to a WebSocket; None: every page where users log in, else only pages of this machine.
    origins: frozenset[str] | None = None
    backlog: int = 5_000  #: connections the system may keep waiting to be accepted


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
class TlsStores:
    """The broker's key, and the certificates that it trusts; None: not configured."""

    key_store: KeyStore | None = None
    key: KeyStore | None = None  #: PEM: the private key, when it is not in the file with the certificate
    trust_store: KeyStore | None = None


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
