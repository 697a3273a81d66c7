"""Define the status of a cluster as one of its brokers sees it, for operators. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

#: Between the names of a broker and of its node, where a broker has several.
NODE_SEPARATOR = "/"


class MemberState(StrEnum):
    """Of another broker, as this one sees it."""

    SELF = "self"  #: it is this one
    UP = "up"  #: the link to it works
    DOWN = "down"  #: it cannot be reached
    REFUSED = "refused"  #: it answers, and takes no link: `last_error` says why


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One broker of the cluster, or a node of one."""

    name: str  #: `broker/node` of a broker that has several nodes
    address: str  #: as a URI
    state: MemberState
    is_master: bool
    since_ms: int = 0  #: when it came into this state, since the epoch; 0: it never was in another one
    last_error: str = ""  #: why the link is not there, or what was refused over it last
    linked_back: bool = False  #: whether its own link to this broker works
    consumers_here: int = 0  #: its clients' subscriptions that this broker serves
    consumers_there: int = 0  #: subscriptions that it serves for this broker's clients
    taken: int = 0  #: messages taken from it since the node started
    waiting: int = 0  #: of those, held here for a consumer or not acknowledged by it

    @property
    def broker(self) -> str:
        """Return the name of the broker."""
        return self.name.partition(NODE_SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The cluster of a broker. `master` "": there is none, and no record of what operators make."""

    broker: str
    master: str
    suspended: bool  #: it lets no client in, as it has not got the master's record since it started
    may_change: bool  #: whether destinations and durable subscriptions can be created and deleted now
    why_not: str  #: the sentence that says why they cannot
    record_id: str
    record_version: int
    recorded: int  #: what exists by the record: destinations and durable subscriptions
    members: tuple[MemberStatus, ...] = field(default_factory=tuple)
    lodgers: int = 0  #: temporary destinations of other brokers
    temporaries: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)  #: those, with their `home`

    @property
    def missing(self) -> list[MemberStatus]:
        """Return the brokers that cannot be reached, or take no link."""
        return [each for each in self.members if each.state in (MemberState.DOWN, MemberState.REFUSED)]

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ClusterStatus:
        """Build the object from the result of to_json."""
        members = tuple(MemberStatus(**{**each, "state": MemberState(each["state"])}) for each in data["members"])
        return ClusterStatus(**{**data, "members": members, "temporaries": tuple(data["temporaries"])})
