"""Describe what is checked: an installation of the environment, or a node of a configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from brokerapp.checks.certificates import CertificateUse
from brokerapp.checks.port_holders import is_locked, listens_for, owner_of, seconds_owned
from brokerapp.checks.ports import PortUse, port_uses
from brokerapp.config import BrokerConfig
from brokerapp.connections.installation_tls import tls_stores
from brokerapp.model.transport_connector import TRANSPORTS, is_loopback
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.environment import Environment
from brokerapp.system.store_address import StoreAddress

#: Seconds after which all processes of an installation are ready, on a busy machine, too.
START_SECONDS = 90.0
#: Addresses that stand for all of a machine, and that to call instead.
_ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Installation:
    """What checks need to know: nothing of it is read from a running process."""

    data: Path
    broker: str
    store_url: str
    store_folder: Path | None  #: of the embedded store
    replicas: int
    ports: tuple[PortUse, ...]
    certificates: tuple[CertificateUse, ...]
    environment: Environment | None = None  #: None: a node without a console

    @property
    def has_tls(self) -> bool:
        """Return whether a certificate is configured."""
        return any(each.stores.key_store is not None for each in self.certificates)

    @property
    def is_running(self) -> bool:
        """Return whether a process owns the data directory or the embedded store in it, or is the node of it."""
        if is_locked(self.data) or (self.store_folder is not None and is_locked(self.store_folder)):
            return True
        # A node on a store elsewhere locks nothing.
        return self.environment is None and listens_for(self.data, [each.number for each in self.ports])

    @property
    def process(self) -> int | None:
        """Return the id of the process that owns the data directory; None while it is stopped."""
        return owner_of(self.data) if is_locked(self.data) else None

    @property
    def is_starting(self) -> bool:
        """Return whether it was started so recently that some of its processes may not be ready."""
        return self.process is not None and seconds_owned(self.data) < START_SECONDS

    @property
    def has_store(self) -> bool:
        """Return whether a server of the store runs on this machine."""
        hosts = StoreAddress.parse(self.store_url).hosts
        return all(is_loopback(host) for host, _ in hosts)  # none: a Unix socket


def of_environment(environment: Environment) -> Installation:
    """Return the installation that environment variables describe (`make run`)."""
    with_tls = {each.number for each in environment.listeners if each.setting.tls}
    if environment.console_tls:
        with_tls.add(environment.console_port)
    hosts = (urlsplit(environment.console_url).hostname or "",) if environment.console_tls else ()
    return Installation(
        environment.data, environment.broker_name, environment.redis_url,
        environment.store if environment.owns_store else None, environment.replicas, tuple(port_uses(environment)),
        (CertificateUse(tls_stores(environment), hosts, _addresses(environment.bind, with_tls)),), environment,
    )  # fmt: skip


def of_configuration(config: BrokerConfig, data: Path, redis: str | None, replicas: int) -> Installation:
    """Return the node that a configuration file describes, with the options that it is started with."""
    here = DataDirectory(data)
    elsewhere = redis or here.external_url()
    served = [each for each in config.connectors if each.scheme in TRANSPORTS]
    ports = tuple(
        PortUse(
            each.port,
            each.name,
            f"the port of transportConnector {each.name}",
            each.host,
            f"the host of transportConnector {each.name}",
            is_plain=not TRANSPORTS[each.scheme].tls,
        )
        for each in served
    )
    with_tls: dict[str, set[int]] = {}
    for each in served:
        if TRANSPORTS[each.scheme].tls:
            with_tls.setdefault(each.host, set()).add(each.port)
    addresses = tuple(one for host, numbers in with_tls.items() for one in _addresses(host, numbers))
    return Installation(
        data, config.name, elsewhere or here.embedded_url(), None if elsewhere else here.store, replicas, ports,
        (CertificateUse(config.tls, (), addresses),) if config.tls.key_store is not None else (),
    )  # fmt: skip


def _addresses(host: str, ports: set[int]) -> tuple[tuple[str, int], ...]:
    return tuple((_ANY.get(host, host), port) for port in sorted(ports) if port)


def described(installation: Installation) -> Mapping[str, str]:
    """Return what is checked, for the head of a report."""
    state = "running" if installation.is_running else "stopped"
    return {"data": str(installation.data), "broker": installation.broker, "state": state}
