"""Represent the cluster that a broker is in to the rest of the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from brokerapp.cluster.admission import ClusterAdmission
from brokerapp.cluster.agreement import ClusterAgreement
from brokerapp.cluster.change_log import ChangeLog
from brokerapp.cluster.peer import ClusterPeer, ClusterPeerLink, OnAnswer
from brokerapp.cluster.record import ClusterChange
from brokerapp.cluster.remote_consumers import RemoteConsumers
from brokerapp.cluster.remote_temporaries import RemoteTemporaries
from brokerapp.cluster.settings import ClusterSettings
from brokerapp.cluster.status import ClusterStatus, MemberState, MemberStatus
from brokerapp.engine.clients.client import Client
from brokerapp.model.commands import ClientCommand, ConnectCommand
from brokerapp.model.destination import Destination


class Cluster:
    """Represents a cluster as one of its brokers, of this name, sees it, at the node that is this member."""

    def __init__(
        self,
        *,
        name: str,
        member: str,
        terms: ClusterSettings,
        agreement: ClusterAgreement,
        peers: Mapping[str, ClusterPeer],
        recording: ChangeLog,
        admission: ClusterAdmission,
        remote_consumers: RemoteConsumers,
        remote_temporaries: RemoteTemporaries,
    ) -> None:
        self._name, self.member, self.terms, self._agreement, self.peers = name, member, terms, agreement, peers
        self.recording, self._admission = recording, admission
        self._remote_consumers, self._remote_temporaries = remote_consumers, remote_temporaries
        #: Where this broker serves clients, as all others are told.
        self.describe_serving: Callable[[], Mapping[str, Any]] = dict

    @property
    def agreement(self) -> str:
        """Return the settings that all brokers must have alike, as text."""
        return self._agreement.text

    def on_peer_connected(self, peer: ClusterPeer, link: ClusterPeerLink) -> None:
        """Tell a broker whose link works all that it does not know, before anything is asked of it."""
        peer.on_connected(link)
        if peer.broker != self._name:
            self._remote_temporaries.send_own(peer)
        self.recording.send_record(peer)
        self._remote_consumers.on_peer_connected(peer)
        peer.send(verb="serving", serving=self.describe_serving())

    def on_peer_lost(self, peer: ClusterPeer, why: str, *, refused: bool = False) -> None:
        """Forget what a broker gave whose link does not work (any more)."""
        was_up = peer.is_up
        peer.on_lost(why, refused=refused)
        if was_up:
            self._remote_consumers.on_peer_lost(peer)

    def serving(self) -> dict[str, Mapping[str, Any]]:
        """Return where the brokers that are reached serve clients, by their names."""
        return {each.name: each.serving for each in self._others if each.is_up and each.serving}

    @property
    def _others(self) -> Iterator[ClusterPeer]:
        """Yield the nodes of the other brokers."""
        return (each for each in self.peers.values() if each.broker != self._name)

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Accept a client or another broker; return the handlers it has of its own. Raises ProtocolError."""
        return self._admission.admit(client, connect)

    def change(self, change: ClusterChange, then: OnAnswer) -> None:
        """Record what an operator creates or deletes; `then` is told when it is recorded, or why not."""
        self.recording.change(change, then)

    def on_destroyed(self, destination: Destination) -> None:
        """Tell all brokers that an operator deletes here what clients made."""
        for peer in self._others:
            peer.send(verb="destroy", destination=str(destination))

    # -- for operators

    def status(self, *, brief: bool = False) -> ClusterStatus:
        """Return the state of the cluster; `brief`: without what takes a look at every message and destination."""
        recording, lodgers = self.recording, self._remote_temporaries
        own_address = next(each.address for each in self.terms.members if each.name == self.member)
        is_master = self._name == self.terms.master
        own = MemberStatus(self.member, str(own_address), MemberState.SELF, is_master)
        return ClusterStatus(
            self._name, self.terms.master, self._admission.is_suspended,
            not recording.refusal_reason, recording.refusal_reason,
            recording.record.id, recording.record.version, len(recording.record.entries),
            (own, *(self._status_of(each, brief) for each in self.peers.values())),
            len(lodgers), () if brief else lodgers.to_json(),
        )  # fmt: skip

    def _status_of(self, peer: ClusterPeer, brief: bool) -> MemberStatus:
        link = self._admission.link_from(peer.name)
        return MemberStatus(
            peer.name, str(peer.address), peer.state, peer.broker == self.terms.master, peer.since_ms, peer.last_error,
            link is not None, len(link.subscriptions) if link is not None else 0,
            len(self._remote_consumers) if self._remote_consumers.is_served_by(peer) else 0, peer.received_count,
            0 if brief else self._remote_consumers.waiting_count(peer),
        )  # fmt: skip
