"""Keeps temporary destinations of the other brokers of a cluster at this broker.

When their home is gone, those whose clients may reconnect wait here as long as they would there; the others go. A
client that comes back to this broker instead takes its own along: they are at home here from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from brokerapp.cluster.peer import ClusterPeer
from brokerapp.core.ports import RemoteTemporaryHost
from brokerapp.engine.clients.client import Client
from brokerapp.engine.clients.temporary_owner import TemporaryOwner
from brokerapp.engine.policy.life_cycles import ConnectionEnd, reconnect_grace_ms
from brokerapp.model.destination import Destination
from brokerapp.system import clock
from brokerapp.system.timers import Timer, Timers

logger = logging.getLogger(__name__)

#: Of other brokers: a bound on what they can make us keep.
MAX_TEMPORARIES = 100_000


@dataclass(slots=True)
class RemoteTemporary:
    """One of another broker."""

    home: str
    belongs: TemporaryOwner
    until: Timer | None = None  #: when it goes; None: its home has it


class RemoteTemporaries:
    """Keeps the temporary destinations of other brokers here, and tells other brokers of those of this one."""

    def __init__(self, *, temporaries: RemoteTemporaryHost, timers: Timers, peers: Collection[ClusterPeer]) -> None:
        self._host, self._timers, self._peers = temporaries, timers, peers
        self._temporaries: dict[Destination, RemoteTemporary] = {}
        self._is_full = False  # which was said
        self._listed: dict[str, set[Destination]] = {}  # by broker: what it has, of which it is telling

    def __iter__(self) -> Iterator[tuple[Destination, RemoteTemporary]]:
        return iter(self._temporaries.items())

    def __len__(self) -> int:
        return len(self._temporaries)

    def came(self, home: str, destination: Destination, belongs: TemporaryOwner) -> None:
        """A broker has it."""
        known = self._temporaries.get(destination)
        if known is not None and known.until is not None:
            known.until.cancel()
        if known is None and len(self._temporaries) >= MAX_TEMPORARIES:
            if not self._is_full:
                logger.error("cluster: %s of %s is not known here: %d are", destination, home, MAX_TEMPORARIES)
            self._is_full = True
            return
        if known is None:
            self._is_full = False
        self._temporaries[destination] = RemoteTemporary(home, belongs)
        self._host.host_remote(destination)

    def replace_part(self, home: str, part: Mapping[Destination, TemporaryOwner], *, first: bool, last: bool) -> None:
        """A broker has these, part by part, and no others."""
        if first:
            self._listed[home] = set()
        listed = self._listed.setdefault(home, set())
        listed.update(part)
        for destination, belongs in part.items():
            if destination not in self._temporaries or self._temporaries[destination].home == home:
                self.came(home, destination, belongs)
        if last:
            del self._listed[home]
            for destination in [each for each, lodger in self if lodger.home == home and each not in listed]:
                self.gone(home, destination)

    def gone(self, home: str, destination: Destination) -> None:
        """A broker has it no more."""
        lodger = self._temporaries.get(destination)
        if lodger is not None and lodger.home == home:
            self._remove(destination)

    def on_broker_lost(self, home: str) -> None:
        """A broker cannot be reached: who may come back has the time for it."""
        for destination, lodger in [each for each in self if each[1].home == home]:
            grace = reconnect_grace_ms(ConnectionEnd.HOME_LOST, lodger.belongs.window_ms)
            if not grace:
                self._remove(destination)
            elif lodger.until is None:
                when = clock.now_ms() + grace
                lodger.until = self._timers.at(when, partial(self._remove, destination))

    def _remove(self, destination: Destination) -> None:
        lodger = self._temporaries.pop(destination, None)
        if lodger is not None:
            if lodger.until is not None:
                lodger.until.cancel()
            self._host.remove(destination)

    def on_client_returned(self, client: Client) -> None:
        """Give a client the temporary destinations that it had at another broker; they are at home here now."""
        for destination, lodger in list(self):
            if lodger.belongs.is_of(client):
                if lodger.until is not None:
                    lodger.until.cancel()
                del self._temporaries[destination]
                self._host.take_ownership(client, destination, lodger.belongs)

    # -- those of this broker

    def introduce(self, peer: ClusterPeer) -> None:
        """Tell a broker whose link works now all temporary destinations of this one."""
        peer.send_entries("temporaries are", [[str(each), owner.to_json()] for each, owner in self._host.at_home()])

    def on_temporary_added(self, destination: Destination, owner: TemporaryOwner) -> None:
        """Tell all brokers that a client of this one has it."""
        for peer in self._peers:
            peer.tell(verb="temporary", destination=str(destination), belongs=owner.to_json())

    def on_temporary_removed(self, destination: Destination) -> None:
        """Tell all brokers that it went with its client."""
        for peer in self._peers:
            peer.tell(verb="temporary gone", destination=str(destination))

    def to_json(self) -> tuple[dict[str, Any], ...]:
        """Plain values, for operators."""
        return tuple(
            {
                "destination": str(destination), "home": lodger.home, "client_id": lodger.belongs.client_id,
                "waits_until_ms": lodger.until.due_ms if lodger.until is not None else 0,
            }
            for destination, lodger in self
        )  # fmt: skip
