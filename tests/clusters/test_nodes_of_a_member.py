"""Test brokers of a cluster that have several nodes: who may be one, and what clients of any node get."""

import itertools
from dataclasses import replace

import pytest

from brokerapp.cluster.settings import ClusterMember, ClusterSettings, read_members
from brokerapp.config import default_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.destination import Destination
from brokerapp.network.options.address import BrokerAddress
from brokerapp.nodes.membership.compatibility import CLUSTERED, check_compatibility
from brokerapp.runtime.bootstrap import node_config
from brokerapp.runtime.node import Node
from brokerapp.store.server.embedded import EmbeddedStore
from tests.clusters.nodes import NODES, ClusterOfNodes
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

TERMS = ClusterSettings(
    (ClusterMember("W", BrokerAddress("127.0.0.1", 1)), ClusterMember("X", BrokerAddress("127.0.0.1", 2)))
)
DURABLE = {"activemq.subscriptionName": "all"}


# -- who may be a member


@pytest.mark.parametrize(
    ("clustered", "others"),
    [
        (True, {}),
        (False, {}),
        (True, {"b": {CLUSTERED: True}}),
        (False, {"b": {"link": "b:1"}, "c": {CLUSTERED: False}}),
    ],
)
def test_nodes_that_are_all_in_a_cluster_or_none_of_them_work_side_by_side(clustered, others):
    check_compatibility("a", clustered, others)


@pytest.mark.parametrize(
    ("clustered", "others", "why"),
    [
        (True, {"b": {}}, r"node a is configured for a cluster \(clusterBrokers\), node b is not"),
        (False, {"b": {CLUSTERED: True}}, r"node a is not configured for a cluster \(clusterBrokers\), node b is"),
    ],
)
def test_a_node_of_a_cluster_and_one_of_none_do_not(clustered, others, why):
    with pytest.raises(ConfigurationRefused, match=why):
        check_compatibility("a", clustered, others)


def test_nodes_are_members_by_the_names_of_their_broker_and_their_own():
    terms = ClusterSettings(read_members("W=tcp://w,X/a=tcp://x1,X/b=tcp://x2"))
    assert terms.brokers == ("W", "X")
    assert (terms.member_name("W", ""), terms.member_name("X", "b")) == ("W", "X/b")
    for broker, node, member in (("X", "", "X"), ("X", "c", "X/c"), ("W", "a", "W/a")):
        with pytest.raises(ConfigurationRefused, match=f"this node is {member}: name each node"):
            terms.member_name(broker, node)


def test_a_broker_is_named_or_its_nodes_are_not_both():
    with pytest.raises(ConfigurationRefused, match="names broker X and its node X/a"):
        read_members("X=tcp://x,X/a=tcp://x1")


def test_a_node_that_is_told_of_no_cluster_does_not_join_one_whose_broker_is_in_one(tmp_path):
    with EmbeddedStore(tmp_path) as store:
        running = RunningNode(replace(default_config("X", 0), cluster=TERMS), store.url)
        try:

            async def join() -> None:
                wanted = node_config(default_config("X", 0), store.url)
                await Node(replace(wanted, node="second")).start()

            with pytest.raises(ConfigurationRefused, match="node second is not configured for a cluster"):
                running.do(join)
            assert running.look(lambda: running.node.broker.placement.peers.other_sessions) == []
        finally:
            running.stop()


# -- two brokers of two nodes each


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    cluster = ClusterOfNodes(tmp_path_factory.mktemp("nodes"))
    try:
        cluster.revive()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def cluster(running):
    """All nodes run and are linked."""
    running.revive()
    return running


@pytest.fixture
def client_at(cluster):
    """Makes clients of one of the nodes; they leave at the end."""
    clients = []

    def make(name, **connect):
        clients.append(cluster.client(name, **connect))
        return clients[-1]

    yield make
    for client in clients:
        if client.connection.is_connected():
            client.connection.disconnect()


def test_a_message_of_a_queue_reaches_a_consumer_at_any_node_of_either_broker(client_at):
    clients = {name: client_at(name) for name in NODES}
    for home, consumer in itertools.permutations(NODES, 2):
        queue = f"/queue/{home}-{consumer}".replace("/", ".").replace(".queue.", "/queue/")
        clients[consumer].subscribe(queue, id=queue, ack="client-individual")
        clients[home].send(queue, queue, persistent="true")
        [message] = clients[consumer].take()
        clients[consumer].ack(message)
        assert message.body == queue
    assert all(each.has_no_more() for each in clients.values())


def test_a_message_of_a_topic_reaches_each_subscriber_once(cluster, client_at):
    subscribers = {name: client_at(name) for name in NODES}
    for each in subscribers.values():
        each.subscribe("/topic/prices")
    for name in NODES:
        cluster.wait_for_consumers(name, "topic://prices")
    for name in NODES:
        client_at(name).send("/topic/prices", name)
    for each in subscribers.values():
        assert sorted(each.bodies(len(NODES))) == sorted(NODES)
        assert each.has_no_more()


def test_a_durable_subscription_gets_what_was_sent_at_any_node_wherever_its_client_returns_to(cluster, client_at):
    consumer = client_at("X/b", **{"client-id": "me"})
    consumer.subscribe("/topic/news", **DURABLE)
    consumer.leave()
    cluster.wait_for_subscriptions(1)
    for name in NODES:
        client_at(name).send("/topic/news", name, persistent="true")
    for name in ("W/b", "X/a", "W/a"):
        consumer = client_at(name, **{"client-id": "me"})
        consumer.subscribe("/topic/news", ack="client-individual", **DURABLE)
        assert sorted(consumer.bodies(len(NODES))) == sorted(NODES)
        assert consumer.errors.empty()
        consumer.leave()
    consumer = client_at("X/a", **{"client-id": "me"})
    consumer.frame("UNSUBSCRIBE", id="all", **DURABLE)
    assert consumer.errors.empty()
    cluster.wait_for_subscriptions(0)


def test_a_reply_finds_the_temporary_queue_of_a_client_at_any_node(client_at):
    asking, answering = ({name: client_at(name) for name in NODES} for _ in range(2))
    for name in NODES:
        asking[name].subscribe("/temp-queue/replies", id="replies")
    for home, other in itertools.permutations(NODES, 2):
        queue = f"/queue/ask.{home}.{other}".replace("/", ".").replace(".queue.", "/queue/")
        answering[other].subscribe(queue, id=queue)
        asking[home].send(queue, "question", reply_to="/temp-queue/replies")
        [question] = answering[other].take()
        answering[other].send(question.headers["reply-to"], f"{home} {other}")
        assert asking[home].bodies() == [f"{home} {other}"]


def test_what_operators_create_and_delete_is_at_both_brokers_also_once_the_node_with_the_record_was_killed(cluster):
    native = "queue://orders"
    queue = Destination.parse(native)
    cluster.ask("W", lambda admin: admin.create(queue))
    wait_until(lambda: cluster.has("X", native), "it is at the other broker")
    cluster["W/a" if cluster.leads("W/a") else "W/b"].kill()
    cluster.change("X", lambda admin: admin.delete(queue))
    wait_until(lambda: not cluster.has("W", native), "it is gone at the master")
    cluster.revive()
    cluster.ask("X", lambda admin: admin.create(queue))
    wait_until(lambda: cluster.has("W", native), "it is at the master again")
    cluster.ask("W", lambda admin: admin.delete(queue))
    wait_until(lambda: not cluster.has("X", native), "it is gone at both")


def test_a_client_that_may_reconnect_finds_its_temporary_queue_when_its_node_was_killed(cluster, client_at):
    consumer = client_at("X/a", **{"client-id": "returning", "reconnect": "true"})
    consumer.subscribe("/temp-queue/kept", id="kept", ack="client-individual")
    answering = client_at("W/a")
    answering.subscribe("/queue/kept", id="kept")
    consumer.send("/queue/kept", "question", reply_to="/temp-queue/kept")
    [question] = answering.take()
    cluster["X/a"].kill()
    again = cluster.client("X/b", **{"client-id": "returning", "reconnect": "true"})
    again.subscribe("/temp-queue/kept", id="kept", ack="client-individual")
    answering.send(question.headers["reply-to"], "answer", persistent="true")
    assert again.bodies() == ["answer"]
    again.leave()
