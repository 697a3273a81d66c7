"""Define the groups of brokers that find each other by multicast, and their announcements. Pure.

An announcement is one datagram: `GROUP.Sluice-1.alive.%BROKER%URI`, or `dead` for one that goes. It has the shape of
ActiveMQ's (`GROUP.ActiveMQ-4.alive.%localhost%URI`) with another word in it: an ActiveMQ that found us would speak
OpenWire to us.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from brokerapp.errors import ConfigurationRefused

#: What ActiveMQ calls `multicast://default`.
DEFAULT_ADDRESS, DEFAULT_PORT, DEFAULT_GROUP = "239.255.2.3", 6155, "default"
#: Announcements that may stay away before a broker is taken for gone.
MISSED_ANNOUNCEMENTS = 10
_PROTOCOL = "Sluice-1"
_URI = re.compile(r"multicast://(?P<host>[^:/?]+)(?::(?P<port>[0-9]+))?/?(?:\?(?P<options>.*))?")
#: Largest announcement that is read: an address and two names.
MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class DiscoveryGroup:
    """Where brokers announce themselves."""

    address: str = DEFAULT_ADDRESS
    port: int = DEFAULT_PORT
    name: str = DEFAULT_GROUP
    interface: str = ""  #: name of the network interface; "": the system's choice
    keep_alive_ms: int = 500
    time_to_live: int = 1  #: networks that an announcement crosses

    def announcement(self, broker: str, uri: str, *, alive: bool) -> bytes:
        """Encode the announcement of a broker."""
        return f"{self.name}.{_PROTOCOL}.{'alive' if alive else 'dead'}.%{quote(broker, safe='')}%{uri}".encode()

    def parse(self, datagram: bytes) -> Announcement | None:
        """Decode the announcement of another broker of the group; None for other datagrams."""
        try:
            said, broker, uri = datagram.decode().split("%", 1)[0], *_parse_announcement(datagram.decode())
        except (UnicodeDecodeError, ValueError):
            return None
        alive = {f"{self.name}.{_PROTOCOL}.alive.": True, f"{self.name}.{_PROTOCOL}.dead.": False}.get(said)
        return None if alive is None else Announcement(unquote(broker), uri, alive)


@dataclass(frozen=True, slots=True)
class Announcement:
    """An announcement of a broker of a multicast group: it is alive, or leaves."""

    broker: str
    uri: str
    alive: bool


def _parse_announcement(text: str) -> tuple[str, str]:
    """The broker, whose name has its percent signs quoted, and its address."""
    found = re.fullmatch(r"[^%]*%((?:[^%]|%[0-9A-F]{2})*)%([a-z+]+://.*)", text, re.DOTALL)
    if found is None:
        raise ValueError(text)
    return found[1], found[2]


_OPTIONS = {"keepAliveInterval": "keep_alive_ms", "timeToLive": "time_to_live"}


def parse_group(uri: str) -> tuple[DiscoveryGroup, Mapping[str, str]]:
    """The group that a uri names, and options that are not about it. Raises ConfigurationRefused."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise ConfigurationRefused(
            f"{uri!r} is not a multicast group such as multicast://default or multicast://IP:PORT"
        )
    options = dict(parse_qsl(found["options"] or ""))
    is_default = found["host"] == DEFAULT_GROUP
    known = {}
    for name, field in _OPTIONS.items():
        if name in options:
            text = options.pop(name)
            if not text.isdecimal() or not 0 < int(text) < 2**31:
                raise ConfigurationRefused(f"{uri!r}: {name}={text!r} must be a number above 0")
            known[field] = int(text)
    group = DiscoveryGroup(
        DEFAULT_ADDRESS if is_default else found["host"], int(found["port"] or DEFAULT_PORT),
        options.pop("group", DEFAULT_GROUP), options.pop("networkInterface", ""), **known,
    )  # fmt: skip
    return group, options
