"""Test a store with replicas whose primary fails: Sentinel promotes a replica, and nothing confirmed is lost.

The clients keep a ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from random import Random

import pytest

from tests.faults.load import Account
from tests.faults.nodes_on_store import QUEUE, NodeProcess, connected
from tests.faults.sentinels import ReplicatedStore
from tests.faults.servers import Server
from tests.waiting import wait_until

#: Messages confirmed before, while and after a server is away.
MESSAGES = 300
#: Seconds without any confirmation: a second until Sentinel takes a server for dead, and three until all follow.
LONGEST_GAP_SECONDS = 10.0
ROUNDS = 12
KEPT = "/queue/kept"
#: Seconds in which all that is left is consumed.
PATIENCE = 30.0
#: Longer than the node waits for a replica before it asks again.
LAGGING_SECONDS = 2.5


@pytest.fixture
def store(tmp_path):
    made = ReplicatedStore(tmp_path)
    yield made
    made.end()


@pytest.fixture
def nodes(tmp_path, store):
    started = [NodeProcess(tmp_path, store.url, name, "--replicas", "1") for name in "ab"]
    yield started
    for each in started:
        each.run.kill()


@pytest.fixture
def node(nodes):
    return nodes[0]


class Fault:
    """Makes a server fail, and lets it be a server again. `promotes`: whether another becomes the primary."""

    def __init__(self, fail, mend, promotes=True) -> None:
        self.fail, self.mend, self.promotes = fail, mend, promotes


FAULTS = {
    "killed": Fault(Server.kill, Server.start),
    "frozen": Fault(Server.freeze, Server.thaw),
    "cut off from its replicas": Fault(Server.isolate, Server.rejoin),
}


class Work:
    """Producers and consumers at two nodes. Each begins again when its node lets it go, as real clients do.

    Nobody consumes what is kept before the end, so nothing but the store has it.
    """

    def __init__(self, nodes) -> None:
        self.account, self._nodes, self._numbers = Account(), nodes, itertools.count()
        self.gap = 0.0  #: the longest time without a confirmation, in seconds

    async def _produce(self, node, destination) -> None:
        while True:
            with contextlib.suppress(ConnectionError, StopAsyncIteration):
                await self.account.produce(node.port, destination, f"m{next(self._numbers)}", 10**9, pause=0.002)
            await asyncio.sleep(0.1)

    async def _consume(self, node, destination) -> None:
        while True:
            with contextlib.suppress(ConnectionError, StopAsyncIteration):
                await self.account.consume(node.port, destination.removeprefix("/queue/"))
            await asyncio.sleep(0.1)

    async def _watch(self) -> None:
        confirmed, last = 0, time.monotonic()
        while True:
            if (now := len(self.confirmed)) > confirmed:
                confirmed, last = now, time.monotonic()
            self.gap = max(self.gap, time.monotonic() - last)
            await asyncio.sleep(0.01)

    @property
    def confirmed(self) -> set[str]:
        return self.account.confirmed[KEPT]

    async def more(self, count: int) -> None:
        """Wait until so many more are confirmed."""
        wanted = len(self.confirmed) + count
        async with asyncio.timeout(60):
            while len(self.confirmed) < wanted:
                await asyncio.sleep(0.005)

    @contextlib.asynccontextmanager
    async def running(self):
        both = [(node, destination) for node in self._nodes for destination in (QUEUE, KEPT)]
        work = [asyncio.create_task(self._produce(*each)) for each in both]
        work += [asyncio.create_task(self._consume(node, QUEUE)) for node in self._nodes]
        work.append(asyncio.create_task(self._watch()))
        try:
            yield
        finally:
            for each in work:
                each.cancel()
            for ended in await asyncio.gather(*work, return_exceptions=True):
                assert isinstance(ended, asyncio.CancelledError), ended

    async def drained(self) -> None:
        """Consume until all that was confirmed was delivered."""
        consuming = [asyncio.create_task(self._consume(node, each)) for node in self._nodes for each in (QUEUE, KEPT)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._lost():
                    await asyncio.sleep(0.02)
        for each in consuming:
            each.cancel()
        assert not self._lost()

    def _lost(self) -> int:
        """How many that were confirmed were not delivered."""
        account = self.account
        return sum(
            len(account.confirmed[each] - account.delivered[each.removeprefix("/queue/")].keys())
            for each in (QUEUE, KEPT)
        )

    def check(self) -> None:
        for queue, delivered in self.account.delivered.items():
            assert {body for body, times in delivered.items() if times > 1} <= self.account.flagged[queue]


@pytest.mark.parametrize(
    "name", [name if name == "killed" else pytest.param(name, marks=pytest.mark.long) for name in FAULTS]
)
def test_nothing_confirmed_is_lost_when_the_primary_is(store, nodes, name, record_property):
    work, fault, primary = Work(nodes), FAULTS[name], store.primary

    async def fail() -> None:
        async with work.running():
            await work.more(MESSAGES)
            fault.fail(primary)
            await asyncio.to_thread(wait_until, lambda: store.primary is not primary, "another primary")
            await work.more(MESSAGES)
            fault.mend(primary)
            await work.more(MESSAGES)
        await work.drained()

    asyncio.run(fail())
    work.check()
    record_property("longest gap in seconds", work.gap)
    assert work.gap < LONGEST_GAP_SECONDS, nodes[0].said() + nodes[1].said()


@pytest.mark.long
def test_nothing_confirmed_is_lost_in_twelve_faults_of_primary_and_replicas(store, nodes):
    work, random = Work(nodes), Random(ROUNDS)

    async def fail() -> None:
        async with work.running():
            for _ in range(ROUNDS):
                server, fault = random.choice(store.servers), random.choice(list(FAULTS.values()))
                await work.more(MESSAGES)
                fault.fail(server)
                await work.more(MESSAGES)
                fault.mend(server)
                await asyncio.to_thread(wait_until, store.is_whole, "all follow one primary", 60)
        await work.drained()

    asyncio.run(fail())
    work.check()


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
    wait_until(lambda: "0 of 1 replicas confirmed it" in node.said(), "the node says why")
