"""Accept the links of other brokers, and clients only once the master's record is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from brokerapp.cluster.agreement import ClusterAgreement
from brokerapp.cluster.change_log import ChangeLog
from brokerapp.cluster.peer import LINK_PREFIX, ClusterPeer
from brokerapp.cluster.peer_requests import PeerRequests
from brokerapp.cluster.settings import ClusterSettings
from brokerapp.core.ports import Event, SubscriptionsPort
from brokerapp.engine.clients.client import Client
from brokerapp.engine.policy.authorization import ANONYMOUS
from brokerapp.errors import ProtocolError
from brokerapp.model.commands import (
    ClientCommand,
    ConnectCommand,
    SendBatchCommand,
    SubscribeCommand,
    UnsubscribeCommand,
)


class ClusterAdmission:
    """Accepts the links of other brokers of the cluster to this one."""

    def __init__(
        self,
        *,
        name: str,
        terms: ClusterSettings,
        agreement: ClusterAgreement,
        peers: Mapping[str, ClusterPeer],
        recording: ChangeLog,
        requests: PeerRequests,
        commands: Mapping[type[ClientCommand], Callable[[Client, Any], None]],
        subscriptions: SubscriptionsPort,
    ) -> None:
        self._name, self._terms, self._agreement, self._peers = name, terms, agreement, peers
        self._recording, self._requests, self._subscriptions = recording, requests, subscriptions
        self._subscribe = commands[SubscribeCommand]  # without a record: the other broker has asked for one
        self._links: dict[str, Client] = {}  # of other brokers, by their names
        self.peer_lost: Event[[str]] = Event()  #: the link of the broker of this name to this one is gone

    @property
    def is_suspended(self) -> bool:
        """Return whether no client is accepted yet."""
        return not self._recording.is_current

    def link_from(self, name: str) -> Client | None:
        """Return the link of another broker to this one, if there is one."""
        return self._links.get(name)

    def admit(
        self, client: Client, connect: ConnectCommand
    ) -> Mapping[type[ClientCommand], Callable[[Client, Any], None]]:
        """Accept a client, or another broker of the cluster, whose commands have the returned handlers.

        Raises ProtocolError, which says why it is not accepted.
        """
        if connect.cluster is None:
            if self.is_suspended and not client.is_internal:
                raise ProtocolError(
                    f"{self._name} does not accept clients until it has reached the master {self._terms.master} of its "
                    "cluster: use another broker of the cluster, or try again"
                )
            return {}
        name = (connect.client_id or "").removeprefix(LINK_PREFIX) or connect.bridge or ""
        if name not in self._peers or self._peers[name].broker != connect.bridge:
            raise ProtocolError(f"{name} is not a broker of this cluster: {', '.join(self._terms.names)}")
        if client.principal is not ANONYMOUS and client.principal.name != self._terms.user:
            raise ProtocolError(f"{client.principal.name} is not the user of the cluster's brokers")
        self._agreement.check(connect.cluster)
        client.is_internal, client.cluster_member = True, name
        self._links[name] = client
        self._peers[name].reconnect_now()
        return {
            SendBatchCommand: self._requests.on_send_batch,
            SubscribeCommand: self._subscribe,
            UnsubscribeCommand: self._on_unsubscribe,
        }

    def _on_unsubscribe(self, client: Client, unsubscribe: UnsubscribeCommand) -> None:
        """Another broker consumes no longer; what it consumed may be deleted by now."""
        subscription = client.subscriptions.get(str(unsubscribe.id))
        if subscription is not None:
            self._subscriptions.end(client, subscription)

    def on_client_disconnected(self, client: Client) -> None:
        """Forget the link of another broker that is gone."""
        if client.cluster_member and self._links.get(client.cluster_member) is client:
            del self._links[client.cluster_member]
            self.peer_lost(client.cluster_member)
