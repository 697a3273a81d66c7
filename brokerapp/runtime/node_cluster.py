"""Make the broker of a node part of its cluster, and keep it so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from brokerapp.admin.handlers.recorded_changes import RecordedChanges
from brokerapp.cluster.admission import ClusterAdmission
from brokerapp.cluster.agreement import ClusterAgreement
from brokerapp.cluster.change_applier import ChangeApplier
from brokerapp.cluster.change_log import ChangeLog, RecordLeader, read_record
from brokerapp.cluster.cluster import Cluster
from brokerapp.cluster.durable_changes import DurableSubscriptionChanges
from brokerapp.cluster.links import ClusterLinks
from brokerapp.cluster.peer import ClusterPeer
from brokerapp.cluster.peer_requests import PeerRequests
from brokerapp.cluster.record import ClusterChange, ClusterRecord
from brokerapp.cluster.remote_consumers import RemoteConsumers
from brokerapp.cluster.remote_temporaries import RemoteTemporaries
from brokerapp.cluster.settings import ClusterSettings
from brokerapp.core.broker import Broker
from brokerapp.model.destination import Destination
from brokerapp.network.links.sockets import TlsContextFactory
from brokerapp.runtime.node_config import NodeConfig
from brokerapp.runtime.node_core import NodeCore
from brokerapp.store.shards.broker_store import BrokerStore


class NodeCluster:
    """Keeps the broker of a node part of its cluster: the record of changes, and the links to other brokers."""

    def __init__(self, *, cluster: Cluster, changes: ChangeApplier, leader: RecordLeader, links: ClusterLinks) -> None:
        self._cluster, self._changes, self._leader, self._links = cluster, changes, leader, links
        self._followed = asyncio.Event()  # the members may have changed

    async def begin(self, *, is_first: bool) -> None:
        """Follow the record of the cluster; the first node of the broker keeps it. Raises StoreUnavailable."""
        self._cluster.recording.begin()
        if is_first:
            await self._leader.refresh()
        self._followed.set()  # the node that was first may be gone since this one joined

    def background_work(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the tasks that run as long as the node, by name."""
        return {"applying": self._changes.run, "record": self._lead_record}

    async def _lead_record(self) -> None:
        """Take over the record of the cluster whenever this node may be next."""
        while True:
            await self._followed.wait()
            self._followed.clear()
            await self._leader.refresh()

    def on_members_followed(self) -> None:
        """Look again whether this node is to keep the record: the members have changed."""
        self._followed.set()

    def serving(self) -> Mapping[str, Mapping[str, Any]]:
        """Return where the other brokers that are reached serve clients, by their names."""
        return self._cluster.serving()

    def connect(self, describe_serving: Callable[[], Mapping[str, Any]]) -> None:
        """Connect to the other brokers, and tell them where this node serves clients."""
        self._cluster.describe_serving = describe_serving
        self._links.start()

    async def close(self) -> None:
        """Close the links to the other brokers."""
        await self._links.stop()


async def build_cluster(
    core: NodeCore,
    config: NodeConfig,
    terms: ClusterSettings,
    store: BrokerStore,
    *,
    operations: RecordedChanges,
    trust: TlsContextFactory,
    request_dispatch: Callable[[], None],
) -> NodeCluster:
    """Make the broker of a node part of its cluster; see `NodeCluster.begin`. Raises StoreUnavailable."""
    broker = core.broker

    async def read() -> ClusterRecord:
        return read_record(*await store.cluster_record.read())

    changes = ChangeApplier(
        creation=broker.creation, durables=broker.durables, commits=broker.commits, operations=operations,
        placement=core.placement,
    )  # fmt: skip
    cluster = join_cluster(
        broker, terms.member_name(config.broker, config.node_name), terms, await read(),
        configured=config.destinations, changes=changes, request_dispatch=request_dispatch,
    )  # fmt: skip
    leader = RecordLeader(cluster.recording, lambda: core.is_eldest, read)
    links = ClusterLinks(config.broker, cluster.member, cluster, trust)
    return NodeCluster(cluster=cluster, changes=changes, leader=leader, links=links)


def join_cluster(
    broker: Broker,
    member: str,
    terms: ClusterSettings,
    record: ClusterRecord,
    *,
    configured: Iterable[Destination],
    changes: ChangeApplier,
    request_dispatch: Callable[[], None],
) -> Cluster:
    """Make the node, which is this member, part of a cluster; see `recording.begin`."""
    name, context = broker.name, broker.context()
    peers = {each.name: ClusterPeer(each) for each in terms.others(member)}
    recording = ChangeLog(
        context=context,
        master=terms.master,
        peers=peers,
        record=record,
        configured=map(ClusterChange.of_destination, configured),
        target=changes,
    )
    remote_consumers = RemoteConsumers(
        name=name,
        peers=peers.values(),
        authorizer=broker.authorizer,
        topic_dispatcher=broker.topic_dispatcher,
        request_dispatch=request_dispatch,
        timers=broker.timers,
        retry_ms=terms.retry_ms,
    )
    remote_temporaries = RemoteTemporaries(temporaries=broker.temporaries, timers=broker.timers, peers=peers.values())
    requests = PeerRequests(
        name=name,
        peers=peers,
        recording=recording,
        changes=changes,
        remote_temporaries=remote_temporaries,
        creation=broker.creation,
        rejections=broker.rejections,
        replies=broker.replies,
    )
    agreement = ClusterAgreement(terms=terms, settings=broker.settings, routing=broker.routing)
    admission = ClusterAdmission(
        name=name,
        terms=terms,
        agreement=agreement,
        peers=peers,
        recording=recording,
        requests=requests,
        commands=broker.commands,
        subscriptions=broker.subscriptions,
    )
    durable_changes = DurableSubscriptionChanges(
        recording=recording,
        clients=broker.clients,
        commands=broker.commands,
        durables=broker.durables,
        authorizer=broker.authorizer,
        replies=broker.replies,
        timers=broker.timers,
    )
    cluster = Cluster(
        name=name,
        member=member,
        terms=terms,
        agreement=agreement,
        peers=peers,
        recording=recording,
        admission=admission,
        remote_consumers=remote_consumers,
        remote_temporaries=remote_temporaries,
    )
    events = broker.events
    events.suspend_while(lambda: admission.is_suspended)
    events.client_returned.add(remote_temporaries.on_client_returned)
    events.client_disconnected.add(admission.on_client_disconnected)
    events.consumer_started.add(remote_consumers.on_consumer_started)
    events.consumer_stopped.add(remote_consumers.on_consumer_stopped)
    events.temporary_added.add(remote_temporaries.on_temporary_added)
    events.temporary_removed.add(remote_temporaries.on_temporary_removed)
    admission.peer_lost.add(remote_temporaries.on_broker_lost)
    broker.commands.update(durable_changes.handlers)
    broker.cluster = cluster
    return cluster
