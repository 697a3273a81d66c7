"""Reach: whether nodes of a broker can reach each other where they say. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from brokerapp.errors import ConfigurationRefused


def check_reach(node: str, link_host: str, redis_url: str) -> None:
    """Raise ConfigurationRefused for an address that is this machine's alone, where others may use the store, too."""
    store = urlsplit(redis_url).hostname
    if store is not None and not _is_loopback(store) and _is_loopback(link_host):
        raise ConfigurationRefused(
            f"--link {link_host}: nodes on other machines, which may use the store at {store}, cannot reach "
            f"node {node} there: name an address of this machine"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
