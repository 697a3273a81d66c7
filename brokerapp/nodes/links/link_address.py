"""Parse the address of `--link`, and check that other nodes can reach it."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass

from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import is_loopback
from brokerapp.system.store_address import StoreAddress

logger = logging.getLogger(__name__)

#: What stands before an address at which TLS is spoken.
TLS_SCHEME = "ssl"


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """An address at which others reach a node."""

    host: str
    tls: bool = False

    @staticmethod
    def parse(text: str) -> LinkAddress:
        """`ADDRESS` or `ssl://ADDRESS`; raises ConfigurationRefused. The port is a free one."""
        scheme, found, host = text.rpartition("://")
        if (found and scheme != TLS_SCHEME) or not host or "/" in host or _has_port(host):
            raise ConfigurationRefused(
                f"--link {text}: it is an address of this machine, or {TLS_SCHEME}://ADDRESS for TLS, without a port"
            )
        reach = LinkAddress(host.removeprefix("[").removesuffix("]"), bool(found))
        if _is_wildcard(reach.host):
            raise ConfigurationRefused(
                f"--link {text}: others cannot call it: name the one address of this machine at which they reach it"
            )
        return reach


def _has_port(host: str) -> bool:
    return host.count(":") == 1 or (host.startswith("[") and not host.endswith("]"))


def _is_wildcard(host: str) -> bool:
    """Whether it stands for all addresses of a machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def check_link_address(node: str, reach: LinkAddress, redis_url: str) -> None:
    """Raise ConfigurationRefused for an address that is this machine's alone, where others may use the store, too.

    Warn of one beyond this machine at which messages go unencrypted.
    """
    elsewhere = [host for host, _ in StoreAddress.parse(redis_url).hosts if not is_loopback(host)]
    if not is_loopback(reach.host) and not reach.tls:
        logger.warning(
            "--link %s: messages between nodes go unencrypted there; --link %s://%s encrypts them", reach.host,
            TLS_SCHEME, reach.host,
        )  # fmt: skip
    if elsewhere and is_loopback(reach.host):
        raise ConfigurationRefused(
            f"--link {reach.host}: nodes on other machines, which may use the store at {elsewhere[0]}, cannot reach "
            f"node {node} there: name an address of this machine"
        )
