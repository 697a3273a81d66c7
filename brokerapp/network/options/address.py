"""Parse the addresses of brokers in uris. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs

from brokerapp.model.transport_connector import OPENWIRE_VERSION, TRANSPORTS, OpenWireSettings

#: Where ActiveMQ listens unless told otherwise, and where it does so for STOMP.
DEFAULT_PORT, STOMP_PORT = 61616, 61613
_URI = re.compile(
    r"(?P<scheme>[a-z+]+)://(?P<host>\[[^\]]+\]|[^:/?]+)(?::(?P<port>[0-9]{1,5}))?(?P<path>/[^?]*)?(?:\?(?P<options>.*))?"
)
#: How long who listens there may take to answer, in milliseconds, as ActiveMQ's uris have it.
CONNECTION_TIMEOUT = "connectionTimeout"
MAX_TIMEOUT_MS = 600_000
MAX_PORT = 65_535
#: What an ActiveMQ is offered over OpenWire. The loose encoding takes half of the time; bytes matter less.
OPENWIRE = OpenWireSettings(tight_encoding=False, cache=False)
_FLAGS = {"true": True, "false": False}
#: Option of an address -> field of OpenWireSettings, and its values.
WIRE_FORMAT_OPTIONS: Mapping[str, tuple[str, range | Mapping[str, bool]]] = {
    "wireFormat.version": ("version", range(1, OPENWIRE_VERSION + 1)),
    "wireFormat.maxInactivityDuration": ("max_inactivity_ms", range(24 * 3_600_000 + 1)),
    "wireFormat.maxInactivityDurationInitalDelay": ("initial_delay_ms", range(24 * 3_600_000 + 1)),
    "wireFormat.tightEncodingEnabled": ("tight_encoding", _FLAGS),
    "wireFormat.cacheEnabled": ("cache", _FLAGS),
}
#: How addresses are written that lead to a broker.
_SCHEMES = {(False, False): "tcp", (True, False): "ssl", (False, True): "ws", (True, True): "wss"}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a remote broker listens, and how bytes travel there."""

    host: str
    port: int
    tls: bool = False
    websocket: bool = False
    path: str = ""  #: of a WebSocket, which a server in front may go by
    connect_timeout: float | None = field(
        default=None, compare=False
    )  #: seconds that it may take to answer; None: as usual
    may_speak_openwire: bool = field(default=False, compare=False)  #: as the scheme has it; STOMP is spoken at any
    openwire: OpenWireSettings = field(default=OPENWIRE, compare=False)  #: what it is offered then

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEMES[self.tls, self.websocket]}://{host}:{self.port}{self.path}"


def address_of(uri: str, default_port: int = DEFAULT_PORT) -> BrokerAddress | None:
    """Where STOMP or OpenWire is spoken, as a uri has it; None for any other."""
    found = _URI.fullmatch(uri)
    if found is None or found["scheme"] not in TRANSPORTS:
        return None
    port = int(found["port"] or (STOMP_PORT if found["scheme"].startswith("stomp") else default_port))
    carrier = TRANSPORTS[found["scheme"]]
    path = (found["path"] or "").rstrip("/") if carrier.websocket else ""
    options = {name: values[-1] for name, values in parse_qs(found["options"] or "").items()}
    told = options.get(CONNECTION_TIMEOUT, "")
    timeout_ms = int(told) if re.fullmatch("[0-9]{1,6}", told) else 0
    openwire = _openwire_settings(options)
    if not 0 < port <= MAX_PORT or (told and not 0 < timeout_ms <= MAX_TIMEOUT_MS) or openwire is None:
        return None
    return BrokerAddress(
        found["host"].strip("[]"), port, carrier.tls, carrier.websocket, path, timeout_ms / 1000 or None,
        carrier.openwire, openwire,
    )  # fmt: skip


def _openwire_settings(options: Mapping[str, str]) -> OpenWireSettings | None:
    """Return what options say of OpenWire; None where one of them is not what it must be."""
    given: dict[str, int | bool] = {}
    for name, (target, values) in WIRE_FORMAT_OPTIONS.items():
        if (text := options.get(name)) is None:
            continue
        if isinstance(values, range):
            if not text.isdecimal() or int(text) not in values:
                return None
            given[target] = int(text)
        elif text not in values:
            return None
        else:
            given[target] = values[text]
    return replace(OPENWIRE, **given)  # type: ignore[arg-type]
