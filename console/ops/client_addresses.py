"""Name the addresses at which programs reach the broker of this installation."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from brokerapp.model.transport_connector import TRANSPORTS, is_loopback
from brokerapp.system.environment import Environment

#: Schemes where STOMP is spoken, and OpenWire: those first that need least of a client.
STOMP_SCHEMES = ("stomp", "tcp", "stomp+ssl", "ssl", "ws", "wss")
OPENWIRE_SCHEMES = ("tcp", "ssl")
#: Addresses to listen on that stand for all of a machine, and what to call on it instead.
_ALL = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class ClientAddress(NamedTuple):
    """An address at which a program connects."""

    scheme: str
    host: str
    port: int

    @property
    def has_tls(self) -> bool:
        """Return whether the connection is encrypted."""
        return TRANSPORTS[self.scheme].tls

    @property
    def is_socket(self) -> bool:
        """Return whether STOMP travels in plain sockets, not in WebSockets."""
        return not TRANSPORTS[self.scheme].websocket

    @property
    def uri(self) -> str:
        """Return the address as clients of OpenWire and WebSockets have it."""
        return f"{self.scheme}://{self.location}"

    @property
    def location(self) -> str:
        """Return host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def stomp_text(self) -> str:
        """Return the address for people who connect a STOMP client: its scheme where that says something."""
        return self.uri if self.has_tls or not self.is_socket else self.location


class PublicAddresses(NamedTuple):
    """Where programs of the people who read pages of the console connect; None: nowhere."""

    stomp: ClientAddress | None
    openwire: ClientAddress | None


def public_addresses(environment: Environment) -> PublicAddresses:
    """Return the addresses to show."""
    return PublicAddresses(_public(environment, STOMP_SCHEMES), _public(environment, OPENWIRE_SCHEMES))


def _public(environment: Environment, schemes: tuple[str, ...]) -> ClientAddress | None:
    """Return the first address by scheme; where others reach the console, one that others reach, too, if there is."""
    found = [each for each in environment.listeners if each.scheme in schemes]
    if not found:
        return None
    is_public = not is_loopback(environment.bind)
    best = min(found, key=lambda each: (is_public and is_loopback(each.host), schemes.index(each.scheme)))
    host = urlsplit(environment.console_url).hostname or "" if best.host in _ALL else best.host
    return ClientAddress(best.scheme, host, best.number)


def local_addresses(environment: Environment, schemes: tuple[str, ...]) -> list[ClientAddress]:
    """Return the addresses with one of these schemes, in their order, as programs of this machine call them."""
    found = {each.scheme: each for each in environment.listeners}
    return [
        ClientAddress(scheme, reachable(found[scheme].host), found[scheme].number)
        for scheme in schemes
        if scheme in found
    ]


def reachable(bind: str) -> str:
    """Return the address to call for a server bound to `bind`."""
    return _ALL.get(bind, bind)
