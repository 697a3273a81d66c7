"""Define the settings of a cluster: its brokers, its master, and what all brokers must have alike. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from brokerapp.cluster.status import NODE_SEPARATOR
from brokerapp.errors import ConfigurationRefused
from brokerapp.network.options.address import STOMP_PORT, BrokerAddress, address_of

#: Open MQ's pause between attempts to reach another broker, milliseconds.
RETRY_MS = 5_000
_MEMBER = re.compile(r"\s*(?P<name>[^\s=,]+)\s*=\s*(?P<uri>\S+)\s*")


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A broker of the cluster, or one of its nodes (`broker/node`), and where the others reach it."""

    name: str
    address: BrokerAddress

    @property
    def broker(self) -> str:
        """Return the name of the broker."""
        return self.name.partition(NODE_SEPARATOR)[0]

    def __str__(self) -> str:
        return f"{self.name}={self.address}"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of a broker about its cluster."""

    members: tuple[ClusterMember, ...]  #: all of them, this one included
    master: str = ""  #: the name of the one that keeps the record; "": there is none
    user: str | None = None  #: by whom the brokers log in to each other
    password: str | None = field(default=None, repr=False)
    retry_ms: int = RETRY_MS

    def others(self, name: str) -> Iterator[ClusterMember]:
        """Yield the members but for this one."""
        return (each for each in self.members if each.name != name)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all members."""
        return tuple(each.name for each in self.members)

    @property
    def brokers(self) -> tuple[str, ...]:
        """Return the names of all brokers."""
        return tuple(dict.fromkeys(each.broker for each in self.members))

    def member_name(self, broker: str, node: str) -> str:
        """Return the name of a node ("": it has none) among the members. Raises ConfigurationRefused for others."""
        member = f"{broker}{NODE_SEPARATOR}{node}" if node else broker
        if member in self.names:
            return member
        mine = ", ".join(each.name for each in self.members if each.broker == broker)
        raise ConfigurationRefused(
            f"clusterBrokers names {mine}, and this node is {member}: name each node of a broker that has several "
            "there, as BROKER/NODE=tcp://HOST:PORT, and start it with --node NODE"
        )


def read_members(text: str) -> tuple[ClusterMember, ...]:
    """`W=tcp://host:port,X=...`. Raises ConfigurationRefused."""
    found: dict[str, ClusterMember] = {}
    for part in text.split(","):
        match = _MEMBER.fullmatch(part)
        address = address_of(match["uri"], STOMP_PORT) if match is not None else None
        if match is None or address is None:
            raise ConfigurationRefused(f"clusterBrokers: {part.strip()!r} is not NAME=tcp://HOST:PORT")
        if match["name"] in found:
            raise ConfigurationRefused(f"clusterBrokers names {match['name']} twice")
        found[match["name"]] = ClusterMember(match["name"], address)
    for member in found.values():
        if member.name != member.broker and member.broker in found:
            raise ConfigurationRefused(
                f"clusterBrokers names broker {member.broker} and its node {member.name}: name all its nodes instead"
            )
    return tuple(found.values())


def write_members(members: tuple[ClusterMember, ...]) -> str:
    """Return the members as text; the inverse of read_members."""
    return ",".join(map(str, members))


def check(terms: ClusterSettings, broker: str) -> None:
    """Raise ConfigurationRefused when a broker of this name cannot be in such a cluster."""
    if broker not in terms.brokers:
        raise ConfigurationRefused(f"clusterBrokers does not name this broker, {broker}: {', '.join(terms.brokers)}")
    if terms.master and terms.master not in terms.brokers:
        raise ConfigurationRefused(
            f"clusterMaster={terms.master} is not one of clusterBrokers: {', '.join(terms.brokers)}"
        )
    if terms.retry_ms <= 0:
        raise ConfigurationRefused(f"clusterRetry={terms.retry_ms}: must be a number of milliseconds above 0")


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Describe how the settings of two brokers of a cluster differ, a sentence each."""
    return [
        f"{name} is {theirs.get(name, '')!r} there and {ours.get(name, '')!r} here"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]
