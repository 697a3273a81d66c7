"""Test that nothing confirmed is lost when the primary of one shard dies and a replica takes over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brokerapp.errors import StoreUnavailable
from brokerapp.model.message import Message
from brokerapp.store import CommitBatch, IntentChange, PendingWrite, StoreLimits
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.family_moves import FAILED, MOVED
from brokerapp.store.shards.intent_codec import ShardPart, encode_parts
from brokerapp.store.shards.record import SERVING
from tests.faults.servers import Server
from tests.shards.sharded_broker import ShardedBroker, queue_in
from tests.shards.test_faults import Transactions, under_load
from tests.shards.test_moves import move
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

#: Replicas of each shard: one of them takes over, the other one confirms what that has.
REPLICAS = 2


class ReplicatedBroker(ShardedBroker):
    """A broker of two shards, each with replicas of which one confirms what clients get receipts for."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.replicas = folder, {}
        super().__init__(folder, 2, "a", "", "--replicas", "1")

    def _url(self, shard: int) -> str:
        if shard not in self.replicas:
            primary = self.shards[shard].port
            self.replicas[shard] = [Server(self._folder / f"replica-{shard}-{number}") for number in range(REPLICAS)]
            for each in self.replicas[shard]:
                each.replicate(primary)
        ports = [self.shards[shard].port, *(each.port for each in self.replicas[shard])]
        return "redis://" + ",".join(f"127.0.0.1:{port}" for port in ports)

    def end(self) -> None:
        super().end()
        for replicas in self.replicas.values():
            for each in replicas:
                each.end()


@pytest.mark.parametrize("shard", [pytest.param(0, marks=pytest.mark.long), 1])
def test_transactions_over_shards_are_whole_when_a_replica_of_one_shard_takes_over(tmp_path, name, shard):
    broker = ReplicatedBroker(tmp_path)
    try:
        broker.start()
        queues = [queue_in(number % 2, f"{name}.{number}", shards=2) for number in range(4)]
        transactions = Transactions(queues)

        def take_over() -> None:
            wait_until(lambda: len(transactions.confirmed) > 50, "transactions are confirmed")
            first, second = broker.replicas[shard]
            broker.shards[shard].kill()
            first.promote()
            second.replicate(first.port)
            enough = len(transactions.confirmed) + 100
            wait_until(lambda: len(transactions.confirmed) > enough, "transactions are confirmed again", seconds=60)

        asyncio.run(under_load(transactions, [broker["a"].port] * 2, take_over, 0, name))
        broker.wait_until_quiet()
        transactions.check(broker.content(queues))
    finally:
        broker.end()


@pytest.mark.long
def test_a_family_moves_only_when_replicas_of_its_new_shard_have_it(tmp_path, name):
    broker = ReplicatedBroker(tmp_path)
    try:
        broker.start()
        queue = queue_in(0, name, shards=2)
        broker["a"].client().send(f"/queue/{queue}", "1", persistent="true")
        for each in broker.replicas[1]:
            each.freeze()
        try:
            assert move(broker, queue, 1).state == FAILED
        finally:
            for each in broker.replicas[1]:
                each.thaw()
        assert broker.shards_of(queue) == [0]
        assert move(broker, queue, 1).state == MOVED
        assert broker.content([queue]) == {queue: ["1"]}
    finally:
        broker.end()


class Coordinated(PendingWrite):
    """The first shard's part of a write to both."""

    __slots__ = ("intent",)


async def test_what_a_node_left_is_finished_only_when_replicas_have_its_first_part(tmp_path):
    """A replica that takes over without it would leave the other parts alone."""
    servers = [Server(tmp_path / f"server-{number}") for number in range(3)]
    primary, replica, second = servers
    opened: list[BrokerStore] = []

    async def member(url: str, replicas: int, session: str, name: str) -> BrokerStore:
        store = BrokerStore(url, "b", replicas)
        opened.append(store)
        await store.open()
        await store.nodes.join(session, name, timeout_ms=1)
        return store

    try:
        replica.replicate(primary.port)
        dead = await member(f"redis://127.0.0.1:{primary.port}", 0, "dead", "a")
        await dead.shard_record.add(f"redis://127.0.0.1:{second.port}", SERVING)
        await dead.shards.refresh()
        await dead.nodes.join("dead", "a", timeout_ms=1)
        both = f"redis://127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
        lives = await member(both, 0, "lives", "b")
        lives.main.client.require_replicas(1)
        replica.freeze()
        message = "", b"persistent:true\n", b"x"
        stored = Message(*message, persistent=True).stored()
        part = Coordinated([(stored, [("q0", "", "")])])
        part.intent = IntentChange("dead-1", encode_parts([ShardPart(1, [(stored, [("q1", "", "")])], [])]))
        await dead.main.commit("dead", CommitBatch(1, [part]), StoreLimits())
        with pytest.raises(StoreUnavailable):
            await lives.nodes.fence("lives", "a", "dead")
        assert await lives.shards.stores[1].logs.depths(["q1"]) == {"q1": 0}
        primary.kill()
        replica.thaw()
        replica.promote()
        lives.main.client.require_replicas(0)
        await lives.main.client.disconnect()
        assert await lives.nodes.fence("lives", "a", "dead")
        [of_first] = (await lives.main.logs.depths(["q0"])).values()
        [of_second] = (await lives.shards.stores[1].logs.depths(["q1"])).values()
        assert of_first == of_second, "whether or not the replica has heard of it, a part is there alone"
    finally:
        for store in opened:
            await store.close()
        for each in servers:
            each.end()
