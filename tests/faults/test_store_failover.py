"""Test a store with replicas whose primary fails: Sentinel promotes a replica, and nothing confirmed is lost.

The clients keep a ledger. `python -m tests.chaos.failover` does the same for long, with every fault.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.faults.load import Account
from tests.faults.nodes_on_store import QUEUE, NodeProcess, connected, send_confirmed
from tests.faults.sentinels import ReplicatedStore
from tests.waiting import wait_until

MESSAGES = 1_500
#: Longer than the node waits for a replica before it asks again.
LAGGING_SECONDS = 2.5


@pytest.fixture
def store(tmp_path):
    made = ReplicatedStore(tmp_path)
    yield made
    made.end()


@pytest.fixture
def node(tmp_path, store):
    started = NodeProcess(tmp_path, store.url, "a", "--replicas", "1")
    yield started
    started.run.kill()


def kill(primary):
    primary.kill()


def freeze(primary):
    primary.freeze()


@pytest.mark.parametrize("fail", [kill, freeze])
def test_nothing_confirmed_is_lost_when_the_primary_fails_under_load(store, node, fail):
    account, queue = Account(), QUEUE.removeprefix("/queue/")
    primary = store.primary

    async def work() -> None:
        consuming = asyncio.create_task(account.consume(node.port, queue))
        producing = asyncio.create_task(account.produce(node.port, QUEUE, "m", MESSAGES))
        while len(account.confirmed[QUEUE]) < MESSAGES // 3:
            await asyncio.sleep(0.005)
        fail(primary)
        await asyncio.wait_for(producing, 60)
        async with asyncio.timeout(30):
            while not account.confirmed[QUEUE] <= set(account.delivered[queue]):
                await asyncio.sleep(0.01)
        consuming.cancel()

    asyncio.run(work())
    assert len(account.confirmed[QUEUE]) == MESSAGES, node.said()
    assert store.primary is not primary
    repeated = {body for body, times in account.delivered[queue].items() if times > 1}
    assert repeated <= account.flagged[queue]
    primary.thaw() if primary.is_running else primary.start()
    wait_until(lambda: primary.info("replication", "role") == "slave", "the former primary follows the new one")
    send_confirmed(node.port, ["after"])


def test_receipts_wait_for_a_replica_that_is_away_and_come_when_it_is_back(store, node):
    replicas = [each for each in store.servers if each is not store.primary]
    client = connected(node.port)
    client.send(QUEUE, "before", persistent="true")
    for each in replicas:
        each.freeze()
    sending = threading.Thread(target=client.send, args=(QUEUE, "meanwhile"), kwargs={"persistent": "true"})
    sending.start()
    sending.join(LAGGING_SECONDS)
    assert sending.is_alive()
    replicas[0].thaw()
    sending.join(30)
    assert not sending.is_alive()
    wait_until(lambda: "0 of 1 replicas confirmed" in node.said(), "the node says why")
