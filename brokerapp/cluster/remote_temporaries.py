"""Keep temporary destinations of the other brokers of a cluster at this broker.

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
    """A temporary destination of another broker."""

    broker: str
    owner: TemporaryOwner
    removal_timer: Timer | None = None  #: when it goes; None: its home has it


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

    def on_added_remotely(self, home: str, destination: Destination, belongs: TemporaryOwner) -> None:
        """Host a temporary destination that another broker has."""
        known = self._temporaries.get(destination)
        if known is not None and known.removal_timer is not None:
            known.removal_timer.cancel()
        if known is None and len(self._temporaries) >= MAX_TEMPORARIES:
            if not self._is_full:
                logger.error("cluster: %s of %s is not known here: %d are", destination, home, MAX_TEMPORARIES)
            self._is_full = True
            return
        if known is None:
            self._is_full = False
        self._temporaries[destination] = RemoteTemporary(home, belongs)
        self._host.host_remote(destination)

    def on_taken_over(self, destination: Destination) -> None:
        """Forget a temporary destination whose client came back to another node of this broker."""
        if (remote := self._temporaries.pop(destination, None)) is not None and remote.removal_timer is not None:
            remote.removal_timer.cancel()

    def on_list_part(self, home: str, part: Mapping[Destination, TemporaryOwner], *, first: bool, last: bool) -> None:
        """Take a part of the list of all temporary destinations of a broker; the last one removes those not listed."""
        if first:
            self._listed[home] = set()
        listed = self._listed.setdefault(home, set())
        listed.update(part)
        for destination, belongs in part.items():
            if destination not in self._temporaries or self._temporaries[destination].broker == home:
                self.on_added_remotely(home, destination, belongs)
        if last:
            del self._listed[home]
            for destination in [each for each, remote in self if remote.broker == home and each not in listed]:
                self.on_removed_remotely(home, destination)

    def on_removed_remotely(self, home: str, destination: Destination) -> None:
        """Remove a temporary destination that another broker has no more."""
        remote = self._temporaries.get(destination)
        if remote is not None and remote.broker == home:
            self._remove(destination)

    def on_broker_lost(self, home: str) -> None:
        """Remove what a broker had that cannot be reached; destinations of clients that may reconnect wait for them."""
        for destination, remote in [each for each in self if each[1].broker == home]:
            grace = reconnect_grace_ms(ConnectionEnd.HOME_LOST, remote.owner.window_ms)
            if not grace:
                self._remove(destination)
            elif remote.removal_timer is None:
                when = clock.now_ms() + grace
                remote.removal_timer = self._timers.at(when, partial(self._remove, destination))

    def _remove(self, destination: Destination) -> None:
        remote = self._temporaries.pop(destination, None)
        if remote is not None:
            if remote.removal_timer is not None:
                remote.removal_timer.cancel()
            self._host.remove(destination)

    def on_client_returned(self, client: Client) -> None:
        """Give a client the temporary destinations that it had at another broker; they are at home here now."""
        for destination, remote in list(self):
            if remote.owner.is_of(client):
                if remote.removal_timer is not None:
                    remote.removal_timer.cancel()
                del self._temporaries[destination]
                self._host.take_ownership(client, destination, remote.owner)

    # -- those of this broker

    def send_own(self, peer: ClusterPeer) -> None:
        """Tell a broker whose link works now all temporary destinations of this one."""
        peer.send_entries("temporaries are", [[str(each), owner.to_json()] for each, owner in self._host.at_home()])

    def on_temporary_added(self, destination: Destination, owner: TemporaryOwner) -> None:
        """Tell all brokers that a client of this one has it."""
        for peer in self._peers:
            peer.send(verb="temporary", destination=str(destination), belongs=owner.to_json())

    def on_temporary_removed(self, destination: Destination) -> None:
        """Tell all brokers that it went with its client."""
        for peer in self._peers:
            peer.send(verb="temporary gone", destination=str(destination))

    def to_json(self) -> tuple[dict[str, Any], ...]:
        """Return plain values, for operators."""
        return tuple(
            {
                "destination": str(destination), "home": remote.broker, "client_id": remote.owner.client_id,
                "waits_until_ms": remote.removal_timer.due_ms if remote.removal_timer is not None else 0,
            }
            for destination, remote in self
        )  # fmt: skip
