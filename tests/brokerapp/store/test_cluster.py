"""Test that the servers of a Valkey Cluster serve as the shards of a broker, each with the keys of its slots."""

from __future__ import annotations

import asyncio
import time

import pytest
import stomp
from redis.crc import key_slot

from brokerapp.admin import BrokerAdmin
from brokerapp.config import default_config
from brokerapp.errors import StoreUnavailable
from brokerapp.runtime.bootstrap import node_config
from brokerapp.runtime.node import Node
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.record import SERVING
from tests.faults.servers import Server
from tests.ports import free_port
from tests.waiting import wait_until

SLOTS = 16_384
QUEUES = [f"orders{number}" for number in range(12)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    options = {"cluster-enabled": "yes", "cluster-node-timeout": "1000", "cluster-require-full-coverage": "no"}
    servers = [Server(folder / str(number), **options, **{"cluster-port": str(free_port())}) for number in range(3)]
    try:
        for number, each in enumerate(servers):
            first, end = number * SLOTS // 3, (number + 1) * SLOTS // 3
            each.ask("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            each.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for each in servers[1:]:
            bus = each.ask("CONFIG", "GET", "cluster-port")[b"cluster-port"].decode()
            servers[0].ask("CLUSTER", "MEET", "127.0.0.1", each.port, bus)
        for each in servers:
            wait_until(lambda: b"cluster_state:ok" in each.ask("CLUSTER", "INFO"), "the cluster is complete")  # noqa: B023
        yield servers
    finally:
        for each in servers:
            each.end()


def url_of(cluster):
    return f"cluster://{','.join(f'127.0.0.1:{each.port}' for each in cluster)}"


def owner_of(cluster, broker, shard=0):
    return cluster[key_slot(StoreKeys(broker, shard).state.encode()) * 3 // SLOTS]


async def with_shards(url, broker, count):
    store = BrokerStore(url, broker)
    try:
        await store.open()
        for _ in range(count):
            await store.shard_record.add(url, SERVING)
    finally:
        await store.close()


class Client(stomp.ConnectionListener):
    """Sends to all queues and gathers what comes of them."""

    def __init__(self, address):
        self.receipts, self.bodies = set(), []
        self.connection = stomp.Connection12([("127.0.0.1", int(address.rsplit(":", 1)[1]))])
        self.connection.set_listener("", self)
        self.connection.connect(wait=True)
        for number, queue in enumerate(QUEUES):
            self.connection.subscribe(f"/queue/{queue}", id=str(number), ack="auto")

    def on_receipt(self, frame):
        self.receipts.add(frame.headers["receipt-id"])

    def on_message(self, frame):
        self.bodies.append(frame.body)

    def send(self, text):
        for queue in QUEUES:
            headers = {"persistent": "true", "receipt": f"{text} {queue}"}
            self.connection.send(f"/queue/{queue}", f"{text} {queue}", headers=headers)

    def is_done_with(self, text):
        wanted = [f"{text} {queue}" for queue in QUEUES]
        return self.receipts >= set(wanted) and all(each in self.bodies for each in wanted)

    def transact(self):
        self.connection.begin(transaction="t")
        for queue in QUEUES:
            self.connection.send(f"/queue/{queue}", f"tx {queue}", headers={"persistent": "true", "transaction": "t"})
        self.connection.commit(transaction="t", headers={"receipt": "tx"})
        wait_until(lambda: all(f"tx {queue}" in self.bodies for queue in QUEUES), "the transaction arrives")


async def test_a_broker_has_its_shards_in_the_servers_of_a_cluster_one_of_which_restarts(cluster):
    url = url_of(cluster)
    await with_shards(url, "clustered", 5)
    owners = {shard: owner_of(cluster, "clustered", shard) for shard in range(6)}
    assert set(owners.values()) == set(cluster)  # each server has shards
    node = Node(node_config(default_config("clustered", 0, "127.0.0.1"), url))
    await node.start()
    try:
        client = await asyncio.to_thread(Client, node.addresses[0])
        client.send("first")
        await asyncio.to_thread(wait_until, lambda: client.is_done_with("first"), "all are delivered")
        await asyncio.to_thread(client.transact)
        used = {shard for shard in owners if owners[shard].ask("EXISTS", StoreKeys("clustered", shard).logs)}
        assert len(used) > 1
        [victim, *_] = [owners[shard] for shard in used if owners[shard] is not owners[0]]
        victim.kill()
        client.send("while it is away")
        located = node.broker.commits.located
        reachable = [each for each in QUEUES if owners[located[f"queue://{each}"]] is not victim]
        await asyncio.to_thread(
            wait_until,
            lambda: all(f"while it is away {each}" in client.bodies for each in reachable),
            "what the others have is delivered",
        )
        assert not client.is_done_with("while it is away")
        await asyncio.sleep(1.5)  # until the others take it for dead
        await asyncio.to_thread(victim.start)
        await asyncio.to_thread(wait_until, lambda: client.is_done_with("while it is away"), "the rest is delivered")
        assert len(client.bodies) == len(set(client.bodies)) == 3 * len(QUEUES)
        client.connection.disconnect()
    finally:
        await node.stop()


async def test_a_slot_that_moves_to_another_server_is_followed(cluster):
    store = RedisStore(url_of(cluster), "moving")
    keys = StoreKeys("moving")
    slot, source = key_slot(keys.state.encode()), owner_of(cluster, "moving")
    target = next(each for each in cluster if each is not source)
    source_id, target_id = (each.ask("CLUSTER", "MYID").decode() for each in (source, target))
    try:
        await store.open()
        await store.nodes.join("me")
        await store.connectors.replace("", "[]")
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        found = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1000)
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 1000, "KEYS", *found)
        for each in (target, source, *cluster):
            each.ask("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        assert set((await soon(store.nodes.members))[1]) == {"main"}
        assert target.ask("EXISTS", keys.state)
    finally:
        await store.close()


async def test_a_replica_that_takes_over_is_found(cluster, tmp_path):
    broker = "failing.over"
    primary = owner_of(cluster, broker)
    replica = Server(
        tmp_path / "replica",
        **{"cluster-enabled": "yes", "cluster-node-timeout": "2000", "cluster-port": str(free_port())},
    )
    store = RedisStore(url_of(cluster), broker)
    try:
        bus = primary.ask("CONFIG", "GET", "cluster-port")[b"cluster-port"].decode()
        replica.ask("CLUSTER", "MEET", "127.0.0.1", primary.port, bus)
        id = primary.ask("CLUSTER", "MYID").decode()
        wait_until(lambda: id in replica.ask("CLUSTER", "NODES").decode(), "the replica knows its primary")
        replica.ask("CLUSTER", "REPLICATE", id)
        await store.open()
        await store.nodes.join("me")
        exchange_roles(primary, replica)
        assert set((await soon(store.nodes.members))[1]) == {"main"}
        await soon(lambda: store.nodes.leave("me"))
        exchange_roles(replica, primary)
    finally:
        await store.close()
        replica.end()


def exchange_roles(primary, replica):
    """Let a replica of the cluster, which its primary knows, take over from it."""
    id = primary.ask("CLUSTER", "MYID")
    wait_until(lambda: primary.ask("CLUSTER", "REPLICAS", id), "the primary knows its replica")
    wait_until(lambda: replica.info("replication", "master_link_status") == "up", "the replica follows")
    replica.ask("CLUSTER", "FAILOVER")
    wait_until(lambda: replica.info("replication", "role") == "master", "the replica is the primary")
    wait_until(lambda: primary.info("replication", "role") == "slave", "the former primary is a replica")


async def soon(ask):
    """What the store answers as soon as it does."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return await ask()
        except StoreUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_function_libraries_are_noted_for_each_broker_of_a_cluster(cluster):
    store = RedisStore(url_of(cluster), "libraries")
    try:
        await store.libraries.remove_unused()
        assert owner_of(cluster, "libraries").ask("ZCARD", StoreKeys("libraries").libraries) == 1
    finally:
        await store.close()


async def test_an_operator_adds_shards_in_a_cluster_that_has_others_of_the_broker(cluster):
    """Each has keys in a slot of its own."""
    admin = BrokerAdmin(url_of(cluster), "operated")
    try:
        assert [await admin.shards.add(url_of(cluster)) for _ in range(3)] == [1, 2, 3]
    finally:
        await admin.close()


async def test_a_server_is_found_that_the_url_does_not_name(cluster):
    """As one is that joins the cluster later: the servers that are named tell of it."""
    broker = next(name for name in map("unnamed{}".format, range(99)) if owner_of(cluster, name) is not cluster[0])
    store = RedisStore(f"cluster://127.0.0.1:{cluster[0].port}", broker)
    try:
        await store.open()
        await store.nodes.join("me")
        assert owner_of(cluster, broker).ask("EXISTS", store.keys.state) == 1
    finally:
        await store.close()
