"""Compute the owner node of each log from the live nodes of a broker. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from brokerapp.engine.clients.temporary_owner import session_of_temporary
from brokerapp.nodes.links.protocol import LAST_TYPE_OF_OLDER_VERSIONS, PeerMessageType

#: Logs whose home is remembered: their names come from clients.
MAX_REMEMBERED = 100_000
#: What one member does for all, beside dispatching: it has the network connectors.
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

    @staticmethod
    def from_record(name: str, about: Mapping[str, Any]) -> NodeMember:
        """A member as the store knows it."""
        return NodeMember(
            name, about["session"], about.get("link", ""), about.get("last_word", LAST_TYPE_OF_OLDER_VERSIONS)
        )


class NodeMembers:
    """Those of one epoch, as one of them (the session `me`) sees them."""

    def __init__(self, epoch: int, members: Iterable[NodeMember], me: str) -> None:
        self.epoch, self.session = epoch, me
        self._by_session = {each.session: each for each in members}
        self.owner_of = lru_cache(MAX_REMEMBERED)(self._owner_of)

    def __iter__(self) -> Iterator[NodeMember]:
        return iter(self._by_session.values())

    def __contains__(self, session: str) -> bool:
        return session in self._by_session

    @property
    def others(self) -> list[NodeMember]:
        """All but this one."""
        return [each for each in self if each.session != self.session]

    def understands(self, session: str, word: PeerMessageType) -> bool:
        """Whether a member can be told this."""
        return session in self and word <= self._by_session[session].last_message_type

    def is_local(self, log: str) -> bool:
        """Whether a log is at home with this member."""
        return self.owner_of(log) == self.session

    def _owner_of(self, log: str) -> str:
        """The session of the member that dispatches from a log.

        So a member that comes or goes moves only its own share. A temporary queue is where its client is.
        """
        owner = session_of_temporary(log)
        if owner in self._by_session:
            return owner
        return self.leader_of(log)

    def leader_of(self, thing: str) -> str:
        """The session of the member that does something for all, of those there are the one that hashes highest."""
        return max(self, key=lambda each: _weight(each.name, thing)).session if self._by_session else self.session


def _weight(name: str, log: str) -> bytes:
    return hashlib.blake2b(f"{name}\0{log}".encode(), digest_size=8).digest()
