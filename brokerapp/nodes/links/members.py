"""Compute the owner node of each log from the live nodes of a broker. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brokerapp.engine.clients.temporary_owner import session_of_temporary
from brokerapp.nodes.links.protocol import LAST_TYPE_OF_OLDER_VERSIONS, PeerMessageType

#: Logs whose owner is cached: their names come from clients.
MAX_REMEMBERED = 100_000
#: What others read of a node: whether it is drained, and which logs are assigned to it.
DRAINING, ASSIGNED = "draining", "assigned"
#: Which version of Sluice it runs.
RUNNING_VERSION = "version"
#: The name of the task that one member does for all: it runs the network connectors.
NETWORK = "network connectors"


@dataclass(frozen=True, slots=True)
class NodeMember:
    """One node, in one of its runs."""

    name: str
    session: str
    address: str = ""  #: where other nodes reach it, `host:port`
    last_message_type: int = max(
        PeerMessageType
    )  #: it knows the words up to this one: nodes of several versions may be members
    is_draining: bool = False  #: it is to own nothing
    assigned: frozenset[str] = frozenset()  #: logs that it owns whatever they hash to
    joined: int = 0  #: the epoch in which it joined
    version: str = ""  #: of Sluice; "": from before nodes said it

    @staticmethod
    def from_record(name: str, about: Mapping[str, Any]) -> NodeMember:
        """Return a member as the store describes it."""
        return NodeMember(
            name,
            about["session"],
            about.get("link", ""),
            about.get("last_word", LAST_TYPE_OF_OLDER_VERSIONS),
            about.get(DRAINING, False),
            frozenset(about.get(ASSIGNED, ())),
            about.get("joined", 0),
            about.get(RUNNING_VERSION, ""),
        )

    @property
    def knows_assignments(self) -> bool:
        """Return whether its version goes by what is assigned to members, and by which of them are drained."""
        return self.last_message_type >= PeerMessageType.TAKEN_OVER


class NodeMembers:
    """The members of one epoch, of which `session` is this node.

    Members that are drained own nothing while there are others. All members must come to the same owners, so what is
    assigned and drained counts only while the version of each of them knows of it.
    """

    def __init__(self, epoch: int, members: Iterable[NodeMember], session: str) -> None:
        self.epoch, self.session = epoch, session
        self._by_session = {each.session: each for each in members}
        knows = all(each.knows_assignments for each in self)
        serving = [each for each in self if not each.is_draining] if knows else []
        self._owners = serving or list(self)
        self._assigned = {log: each.session for each in self._owners if knows for log in each.assigned}
        self.owner_of = lru_cache(MAX_REMEMBERED)(self._owner_of)

    def are_those_of(self, other: NodeMembers) -> bool:
        """Return whether both are of the same epoch and sessions."""
        return self.epoch == other.epoch and self._by_session.keys() == other._by_session.keys()

    def __iter__(self) -> Iterator[NodeMember]:
        return iter(self._by_session.values())

    def __contains__(self, session: str) -> bool:
        return session in self._by_session

    @property
    def others(self) -> list[NodeMember]:
        """Return all but this node."""
        return [each for each in self if each.session != self.session]

    def is_drained(self, session: str) -> bool:
        """Return whether a member owns nothing because it is to be stopped."""
        return session in self and all(each.session != session for each in self._owners)

    def assigned_to(self, session: str) -> list[str]:
        """Return the logs that are assigned to a member, sorted."""
        return sorted(log for log, owner in self._assigned.items() if owner == session)

    def understands(self, session: str, message_type: PeerMessageType) -> bool:
        """Return whether the version of a member knows this type of message."""
        return session in self and message_type <= self._by_session[session].last_message_type

    def is_local(self, log: str) -> bool:
        """Return whether this member owns a log."""
        return self.owner_of(log) == self.session

    def _owner_of(self, log: str) -> str:
        """Return the session of the member that dispatches from a log.

        A member that comes or goes moves only its own share, and a log that is assigned to a member stays there. A
        temporary queue is owned where its client is.
        """
        owner = session_of_temporary(log)
        if owner in self._by_session:
            return owner
        return self._assigned.get(log) or self.leader_of(log)

    def leader_of(self, task: str) -> str:
        """Return the session of the member that does a task for all: the one that hashes highest."""
        return highest(self._owners, task).session if self._owners else self.session

    @property
    def eldest(self) -> str:
        """Return the session of the member that joined first.

        Others take its place only when it is gone, and may write no more: never beside it.
        """
        return min(self, key=lambda each: (each.joined, each.name)).session if self._by_session else self.session


def highest(members: Iterable[NodeMember], task: str) -> NodeMember:
    """Return the member that hashes highest with a task."""
    return max(members, key=lambda each: _weight(each.name, task))


def _weight(name: str, log: str) -> bytes:
    return hashlib.blake2b(f"{name}\0{log}".encode(), digest_size=8).digest()
