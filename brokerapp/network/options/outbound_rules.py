"""Check the addresses that users of the console may connect to: webhooks and network connectors. Pure.

Whoever may name an address for Sluice to connect to could otherwise reach what only Sluice's machine and its network
reach. Public addresses are allowed, private ones as far as the administrator says with SLUICE_OUTBOUND, and addresses
that only lead back into the machine's own link or to a cloud's metadata never.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from brokerapp.errors import ConfigurationRefused, RequestRefused

#: The word that stands for all private addresses, this machine's included.
PRIVATE = "private"
#: Where clouds give a machine its keys, in addition to the link-local addresses.
METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})
#: IPv6 addresses that stand for the IPv4 address in their last 32 bits (RFC 6052).
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class OutboundRule:
    """Which addresses that are not public are allowed: these networks, or all private ones."""

    networks: tuple[Network, ...] = ()
    allows_private: bool = False

    @staticmethod
    def read(text: str) -> OutboundRule:
        """Read `private`, or addresses and networks, comma separated. Raises ConfigurationRefused."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        try:
            networks = tuple(ipaddress.ip_network(part, strict=False) for part in parts if part != PRIVATE)
        except ValueError as error:
            raise ConfigurationRefused(f"SLUICE_OUTBOUND: {error}. Write addresses, networks or `private`") from error
        return OutboundRule(networks, PRIVATE in parts)

    def check(self, text: str) -> None:
        """Raise RequestRefused for an address that is not allowed; `text` is numeric, as resolved."""
        address = plain(text)
        if address.is_link_local or address.is_multicast or address.is_unspecified or str(address) in METADATA:
            raise RequestRefused(f"{address} is never allowed: it is a link-local, multicast or metadata address")
        if address.is_global or self.allows_private or any(address in each for each in self.networks):
            return
        raise RequestRefused(
            f"{address} is not a public address. An administrator can allow it with SLUICE_OUTBOUND={address}"
        )


def plain(text: str) -> Address:
    """The address without a zone; an IPv4 address that is written as an IPv6 one as what it is."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if inner is None and address in _TRANSLATED:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return inner or address
