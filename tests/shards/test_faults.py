"""Test kill -9 of nodes, and shards that freeze or die, under transactions over several shards."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter

import pytest

from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from brokerapp.store.shards.record import SERVING
from tests.faults.load import Account, Connection
from tests.faults.nodes_on_store import connected
from tests.faults.servers import Server
from tests.shards.sharded_broker import NODE_TIMEOUT, queue_in, sharded_broker
from tests.shards.transactions import ENOUGH, Transactions
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SHARDS = 3


def log(queue: str) -> str:
    return str(Destination.queue(queue))


async def under_load(transactions: Transactions, ports: list[int], what, seconds: float, name: str) -> None:
    """Do this after so many seconds of transactions; wait until their clients notice, or end them."""
    clients = [
        asyncio.create_task(transactions.run(port, f"{name}.{number}", number)) for number, port in enumerate(ports)
    ]
    try:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(what)
    finally:
        for each in clients:
            each.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


@pytest.fixture
def one_node(tmp_path):
    with sharded_broker(tmp_path, "--node-timeout", "30", shards=SHARDS) as running:
        yield running


@pytest.mark.parametrize(("seed", "kills"), [(1, 4), *(pytest.param(s, 25, marks=pytest.mark.long) for s in (2, 3))])
def test_after_kill_9_of_the_node_every_transaction_over_shards_is_there_whole_or_not_at_all(
    one_node, name, seed, kills
):
    queues = [queue_in(number % SHARDS, f"{name}.{number}") for number in range(2 * SHARDS)]
    chance, transactions, half_done = random.Random(seed), Transactions(queues), 0
    for kill in range(kills):
        ports = [one_node["a"].port] * 4
        enough = len(transactions.confirmed) + chance.randint(20, 80)

        def kill_amid_the_work(enough: int = enough) -> None:
            wait_until(lambda: len(transactions.confirmed) >= enough, "so many are confirmed", ENOUGH)
            one_node["a"].kill()

        asyncio.run(under_load(transactions, ports, kill_amid_the_work, 0, f"{seed}.{kill}"))
        half_done += len(one_node.intents())
        one_node["a"].start()
        assert one_node.intents() == []
    assert half_done, "no transaction was under way between shards: this tests nothing"
    assert len(transactions.confirmed) >= 20 * kills
    transactions.check(one_node.content(queues))


async def _relay(port: int, source: str, target: str, relayed: Counter[str]) -> None:
    """Move messages from one queue to another, each in a transaction, until the connection ends."""
    connection = await Connection.open(port)
    headers = {"destination": f"/queue/{source}", "id": "1", "ack": "client-individual"}
    await connection.tell(encode("SUBSCRIBE", {**headers, "activemq.prefetchSize": "4"}))
    try:
        async for frame in connection.frames():
            if frame.command == "MESSAGE":
                t = {"transaction": frame.headers["message-id"]}
                to = {**t, "destination": f"/queue/{target}", "persistent": "true"}
                await connection.tell(
                    encode("BEGIN", t) + encode("ACK", {**t, "id": frame.headers["ack"]})
                    + encode("SEND", to, frame.body) + encode("COMMIT", t)
                )  # fmt: skip
                relayed[source] += 1
    except ConnectionError:
        pass
    finally:
        connection.close()


@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 20, marks=pytest.mark.long)])
def test_what_a_transaction_takes_and_sends_over_shards_is_one_across_kill_9(one_node, name, seed, kills):
    chance, count, relayed = random.Random(seed), 100 * kills, Counter()
    sources = [queue_in(shard, f"{name}.from") for shard in range(SHARDS)]
    targets = [queue_in((shard + 1) % SHARDS, f"{name}.to") for shard in range(SHARDS)]
    client = one_node["a"].client()
    for source in sources:
        for number in range(count):
            client.send(f"/queue/{source}", str(number), persistent="true", wait=number == count - 1)
    client.leave()

    async def relay_until_killed() -> None:
        relays = [
            asyncio.create_task(_relay(one_node["a"].port, *each, relayed))
            for each in zip(sources, targets, strict=True)
        ]
        relayed.clear()
        enough = chance.randint(20, 60)  # however slow the machine is: killed amid the work
        async with asyncio.timeout(ENOUGH):
            while min(relayed[each] for each in sources) < enough:
                await asyncio.sleep(0.001)
        await asyncio.to_thread(one_node["a"].kill)
        await asyncio.gather(*relays)

    moved = 0
    for _ in range(kills):
        asyncio.run(relay_until_killed())
        one_node["a"].start()
        assert one_node.intents() == []
    content = one_node.content([*sources, *targets])
    for source, target in zip(sources, targets, strict=True):
        assert Counter(content[source] + content[target]) == Counter(map(str, range(count)))
        assert content[target], "nothing was moved: this tests nothing"
        moved += len(content[target])
    assert moved < SHARDS * count, "all was moved before the last kill"


def test_the_other_node_takes_over_and_shows_no_half_transaction(tmp_path, name):
    queues = [queue_in(number % SHARDS, f"{name}.{number}") for number in range(2 * SHARDS)]
    transactions, account = Transactions(queues), Account()
    with sharded_broker(tmp_path, shards=SHARDS, nodes="ab") as broker:

        async def load() -> None:
            consumers = [asyncio.create_task(account.consume(broker["b"].port, each)) for each in queues]
            try:
                await under_load(transactions, [broker["a"].port] * 3, broker["a"].kill, 1.0, "a")
                await under_load(transactions, [broker["b"].port] * 2, lambda: time.sleep(4.0), 0.0, "b")
                await asyncio.to_thread(
                    wait_until, lambda: not any(broker.depths(*map(log, queues)).values()), "all is consumed", ENOUGH
                )
            finally:
                for each in consumers:
                    each.cancel()
                await asyncio.gather(*consumers, return_exceptions=True)

        asyncio.run(load())
        assert broker.members() == {"b"}
        assert broker.intents() == []
    assert any(body.startswith("b") for body in transactions.confirmed)
    for queue in queues:
        again = {body for body, count in account.delivered[queue].items() if count > 1}
        assert again <= account.flagged[queue], "again, and not flagged"
        assert all(account.delivered[queue][body] == 2 for body in again), "more often than nodes were lost"
    transactions.check({queue: list(account.delivered[queue]) for queue in queues})


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_a_node_that_stood_still_until_it_was_taken_for_dead_leaves_no_half_transaction_when_it_goes_on(
    tmp_path, name, seed
):
    queues = [queue_in(number % SHARDS, f"{name}.{number}") for number in range(2 * SHARDS)]
    transactions, chance, half_done = Transactions(queues), random.Random(seed), []
    with sharded_broker(tmp_path, shards=SHARDS, nodes="ab") as broker:

        def freeze_amid_the_work() -> None:
            enough = len(transactions.confirmed) + chance.randint(40, 120)
            wait_until(lambda: len(transactions.confirmed) >= enough, "so many are confirmed", ENOUGH)
            broker["a"].run.signal(signal.SIGSTOP)
            half_done.extend(broker.intents())
            wait_until(lambda: broker.members() == {"b"}, "it is taken for dead", ENOUGH)
            assert not {each for each in broker.intents() if each in half_done}
            broker["a"].run.signal(signal.SIGCONT)
            wait_until(lambda: broker.members() == {"a", "b"}, "it has joined anew", ENOUGH)

        asyncio.run(under_load(transactions, [broker["a"].port] * 4, freeze_amid_the_work, 0, f"{seed}.a"))
        asyncio.run(under_load(transactions, [broker["b"].port] * 2, lambda: time.sleep(0.5), 0, f"{seed}.b"))
        broker.wait_until_quiet()
        assert half_done, "no transaction was under way between shards: this tests nothing"
        assert any(body.startswith(f"{seed}.b") for body in transactions.confirmed)
        transactions.check(broker.content(queues))


@pytest.mark.parametrize("shard", [pytest.param(0, marks=pytest.mark.long), 1])
def test_queues_of_other_shards_go_on_while_a_shard_stands_still(one_node, name, shard):
    queues = [queue_in(each, name) for each in range(SHARDS)]
    clients = [one_node["a"].client() for _ in queues]
    for queue, client in zip(queues, clients, strict=True):
        client.subscribe(f"/queue/{queue}", ack="client-individual")
        client.send(f"/queue/{queue}", "before", persistent="true")
        client.ack(client.take()[0])
    one_node.shards[shard].freeze()
    try:
        stuck = clients.pop(shard)
        stuck_queue = queues.pop(shard)
        stuck.send(f"/queue/{stuck_queue}", "meanwhile", persistent="true", wait=False)
        for _ in range(3):
            for queue, client in zip(queues, clients, strict=True):
                for number in range(20):
                    began = time.monotonic()
                    client.send(f"/queue/{queue}", str(number), persistent="true")
                    client.ack(client.take()[0])
                    assert time.monotonic() - began < 1.0, "another shard waits"
            time.sleep(0.3)
        transacting = one_node["a"].client() if shard else clients[0]
        transacting.frame("BEGIN", transaction="t")
        for queue in (queues[0], stuck_queue):
            transacting.send(f"/queue/{queue}", "both", transaction="t", persistent="true", wait=False)
        transacting.frame("COMMIT", transaction="t", wait=False)
        time.sleep(1.0)
        assert clients[0].messages.empty(), "half of a transaction is visible"
    finally:
        one_node.shards[shard].thaw()
    came = stuck.take(2)
    assert [each.body for each in came] == ["meanwhile", "both"]
    stuck.ack(came[1])
    assert clients[0].bodies(1) == ["both"]
    stuck.send(f"/queue/{stuck_queue}", "after", persistent="true")
    assert stuck.bodies(1) == ["after"]
    wait_until(lambda: not one_node.intents(), "no intent is left")


@pytest.mark.parametrize("shard", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_shard_that_is_killed_comes_back_from_its_file_and_everything_is_there_once(one_node, name, shard):
    queues = [queue_in(number % SHARDS, f"{name}.{number}") for number in range(2 * SHARDS)]
    transactions = Transactions(queues)

    def kill_and_start() -> None:
        for _ in range(2):
            one_node.shards[shard].kill()
            time.sleep(0.7)
            one_node.shards[shard].start()
            confirmed = len(transactions.confirmed)
            wait_until(lambda so_far=confirmed: len(transactions.confirmed) > so_far + 30, "it goes on", ENOUGH)

    asyncio.run(under_load(transactions, [one_node["a"].port] * 3, kill_and_start, 0.4, name))
    wait_until(lambda: not one_node.intents(), "no intent is left")
    client = connected(one_node["a"].port)  # what the clients that ended had sent is committed
    client.round_trip()
    transactions.check(one_node.content(queues))


@pytest.mark.parametrize("shard", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_node_goes_on_after_a_shard_stood_still_for_longer_than_its_timeout(tmp_path, name, shard):
    with sharded_broker(tmp_path, shards=SHARDS) as broker:
        queues = [queue_in(each, name) for each in range(SHARDS)]
        client = broker["a"].client()
        for queue in queues:
            client.send(f"/queue/{queue}", "before", persistent="true")
        broker.shards[shard].freeze()
        time.sleep(NODE_TIMEOUT + 1.5)
        broker.shards[shard].thaw()
        again = connected(broker["a"].port)
        for queue in queues:
            again.subscribe(f"/queue/{queue}", id=queue)
            again.send(f"/queue/{queue}", "after", persistent="true")
        assert Counter(again.bodies(2 * SHARDS)) == {"before": SHARDS, "after": SHARDS}
        broker.wait_until_quiet(*map(log, queues))


@pytest.mark.long
def test_operators_and_nodes_are_told_which_shard_stands_still_and_wait_for_it_only_briefly(tmp_path, name):
    """What concerns other shards only goes on: a node stops, shards are listed and drained."""
    with sharded_broker(tmp_path, shards=SHARDS) as broker:
        queue = queue_in(0, name)
        broker["a"].client().send(f"/queue/{queue}", "before", persistent="true")
        broker.shards[2].freeze()
        try:
            began = time.monotonic()
            listed = broker.admin(lambda admin: admin.shards.all())
            assert [each.answers for each in listed] == [True, True, False]
            broker.admin(lambda admin: admin.shards.drain(1))
            broker.admin(lambda admin: admin.shards.drain(1, cancel=True))
            with pytest.raises(
                RequestRefused, match="shard 2 did not answer within 2 s: families are moved only while"
            ):
                broker.admin(lambda admin: admin.shards.move(log(queue), 1))
            assert time.monotonic() - began < 15
            wait_until(lambda: "shard 2 of the store does not answer" in broker["a"].run.errors(), "the log says so")
            began = time.monotonic()
            assert broker["a"].run.stop() == 0
            assert time.monotonic() - began < 30
            broker["a"].launch()
            wait_until(lambda: not broker["a"].run.is_alive, "it ends", seconds=40)
            assert "shard 2 did not answer within 10 s" in broker["a"].run.errors()
        finally:
            broker.shards[2].thaw()
        broker["a"].start()
        assert broker.content([queue]) == {queue: ["before"]}


@pytest.mark.long
def test_a_shard_that_stands_still_as_it_is_added_is_served_when_it_goes_on(tmp_path, name):
    with sharded_broker(tmp_path, shards=2) as broker:
        another = Server(tmp_path / "another")
        try:
            another.freeze()
            assert broker.ask(lambda store: store.shard_record.add(f"redis://127.0.0.1:{another.port}")) == 2
            told = "shard 2 of the store cannot be served yet: shard 2 did not answer within 10 s"
            wait_until(lambda: told in broker["a"].run.errors(), "the log says so", seconds=30)
            queue = queue_in(1, name, shards=2)
            broker["a"].client().send(f"/queue/{queue}", "meanwhile", persistent="true")
            another.thaw()

            async def state(store):
                return (await store.shard_record.read()).shards[2].state

            wait_until(lambda: broker.ask(state) == SERVING, "it is served", seconds=30)
        finally:
            another.thaw()
            another.end()
