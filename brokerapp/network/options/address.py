"""Parse the addresses of brokers in uris. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from brokerapp.model.transport_connector import TRANSPORTS

#: Where ActiveMQ listens unless told otherwise, and where it does so for STOMP.
DEFAULT_PORT, STOMP_PORT = 61616, 61613
_URI = re.compile(
    r"(?P<scheme>[a-z+]+)://(?P<host>\[[^\]]+\]|[^:/?]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?]*)?(?:\?(?P<options>.*))?"
)
#: How long who listens there may take to answer, in milliseconds, as ActiveMQ's uris have it.
CONNECTION_TIMEOUT = "connectionTimeout"
MAX_TIMEOUT_MS = 600_000
MAX_PORT = 65_535
#: How addresses are written that lead to a broker.
_SCHEMES = {(False, False): "tcp", (True, False): "ssl", (False, True): "ws", (True, True): "wss"}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a remote broker listens, and how STOMP's bytes travel there."""

    host: str
    port: int
    tls: bool = False
    websocket: bool = False
    path: str = ""  #: of a WebSocket, which a server in front may go by
    connect_timeout: float | None = field(
        default=None, compare=False
    )  #: seconds that it may take to answer; None: as usual

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEMES[self.tls, self.websocket]}://{host}:{self.port}{self.path}"


def address_of(uri: str, default_port: int = DEFAULT_PORT) -> BrokerAddress | None:
    """Where STOMP is spoken, as a uri has it; None for any other."""
    found = _URI.fullmatch(uri)
    if found is None or found["scheme"] not in TRANSPORTS:
        return None
    port = int(found["port"] or (STOMP_PORT if found["scheme"].startswith("stomp") else default_port))
    carrier = TRANSPORTS[found["scheme"]]
    path = (found["path"] or "").rstrip("/") if carrier.websocket else ""
    told = parse_qs(found["options"] or "").get(CONNECTION_TIMEOUT, [""])[-1]
    timeout_ms = int(told) if re.fullmatch("[0-9]{1,6}", told) else 0
    if not 0 < port <= MAX_PORT or (told and not 0 < timeout_ms <= MAX_TIMEOUT_MS):
        return None
    return BrokerAddress(
        found["host"].strip("[]"), port, carrier.tls, carrier.websocket, path, timeout_ms / 1000 or None
    )
