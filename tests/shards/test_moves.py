"""Test that families move between shards, and shards come and go, while clients of two nodes go on."""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import replace

import pytest

from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.store.shards.family_moves import FAILED, MOVED, MOVING, FamilyMove
from brokerapp.store.shards.record import DRAINING, SERVING
from tests.faults.servers import Server
from tests.shards.sharded_broker import queue_in, sharded_broker
from tests.shards.test_faults import Transactions, log, under_load
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def two_nodes(tmp_path):
    with sharded_broker(tmp_path, shards=2, nodes="ab") as running:
        yield running


def move(broker, queue, shard):
    """Have the family of a queue moved; return how that ended."""
    answer = broker.ask(lambda store: store.requests.send("move_family", {"family": log(queue), "shard": shard}, 20))
    if "error" in answer:
        raise RequestRefused(answer["error"])
    token = answer["result"]["token"]

    async def last(store):
        return await store.moves.last()

    wait_until(lambda: broker.ask(last).state != MOVING, "the move has ended", seconds=70)
    ended = broker.ask(last)
    assert ended.token == token
    return ended


def test_families_move_to_and_fro_under_transactions_and_nothing_is_lost_doubled_or_out_of_order(two_nodes, name):
    queues = [queue_in(number % 2, f"{name}.{number}", shards=2) for number in range(6)]
    transactions, ended = Transactions(queues), []

    def moves():
        chance = random.Random(1)
        for _ in range(6):
            queue = chance.choice(queues)
            [where] = two_nodes.shards_of(queue)
            ended.append(move(two_nodes, queue, 1 - where))

    ports = [two_nodes["a"].port, two_nodes["b"].port] * 2
    asyncio.run(under_load(transactions, ports, moves, 0.5, name))
    two_nodes.wait_until_quiet()
    assert [each.state for each in ended] == [MOVED] * 6
    assert len(transactions.confirmed) > 100
    transactions.check(two_nodes.content(queues))


def test_what_consumers_hold_stays_theirs_and_what_they_acknowledge_meanwhile_is_gone(two_nodes, name):
    queue = queue_in(0, name, shards=2)
    sender, taker = two_nodes["a"].client(), two_nodes["b"].client()
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    for number in range(6):
        sender.send(f"/queue/{queue}", str(number), persistent="true")
    held = taker.take(6)
    assert [each.body for each in held] == list("012345")
    assert move(two_nodes, queue, 1).state == MOVED
    for each in held[:4]:
        taker.ack(each)
    sender.send(f"/queue/{queue}", "late", persistent="true")
    assert taker.bodies(1) == ["late"]
    taker.leave()
    again = two_nodes["a"].client()
    again.subscribe(f"/queue/{queue}")
    found = again.take(3)
    assert [(each.body, each.headers.get("redelivered")) for each in found] == [
        ("4", "true"), ("5", "true"), ("late", "true"),
    ]  # fmt: skip
    assert again.has_no_more()


def test_all_that_a_log_holds_moves_with_it(two_nodes, name):
    """Payloads that several queues share, priorities, what expires, and what was handed over before."""
    topic = f"VirtualTopic.{name}"
    consumers = [f"Consumer.{each}.{topic}" for each in "AB"]
    client = two_nodes["a"].client()
    for each in consumers:
        client.subscribe(f"/queue/{each}", id=each)
        client.unsubscribe(each)
    for number in range(20):
        client.send(f"/topic/{topic}", str(number), persistent="true")
    client.send(f"/topic/{topic}", "expires", persistent="true", expires="99999999999999")
    [where] = {*two_nodes.shards_of(*consumers)}
    used = two_nodes.ask(lambda store: store.logs.used_bytes())
    answer = two_nodes.ask(
        lambda store: store.requests.send("move_family", {"family": f"topic://{topic}", "shard": 1 - where}, 20)
    )
    assert "result" in answer
    wait_until(lambda: {*two_nodes.shards_of(*consumers)} == {1 - where}, "it has moved")
    wait_until(lambda: two_nodes.ask(lambda store: store.logs.used_bytes()) == used, "it takes the same space there")

    async def expiring(store):
        late = await store.shards.stores[1 - where].schedules.logs_with_expired(10**15)
        return sorted(each for each in late if topic in each)

    assert two_nodes.ask(expiring) == sorted(map(log, consumers))
    taker = two_nodes["b"].client()
    for each in consumers:
        taker.subscribe(f"/queue/{each}", id=each)
    assert sorted(taker.bodies(42)) == sorted([*map(str, range(20)), "expires"] * 2)
    two_nodes.wait_until_quiet(*map(log, consumers))
    wait_until(lambda: two_nodes.ask(lambda store: store.logs.used_bytes())[0] == 0, "no payload is left")


@pytest.mark.long
def test_a_move_is_given_up_when_a_node_dies_and_the_family_stays(two_nodes, name):
    queue = queue_in(0, name, shards=2)
    client = two_nodes["a"].client()
    for number in range(50):
        client.send(f"/queue/{queue}", str(number), persistent="true")
    two_nodes["b"].run.signal(signal.SIGSTOP)
    try:
        ended = move(two_nodes, queue, 1)
    finally:
        two_nodes["b"].run.signal(signal.SIGCONT)
    assert ended.state == FAILED
    client.send(f"/queue/{queue}", "50", persistent="true")
    assert two_nodes.shards_of(queue) == [0]
    assert two_nodes.content([queue]) == {queue: list(map(str, range(51)))}


def test_a_shard_that_is_added_takes_families_and_one_that_is_drained_gives_them_away(two_nodes, tmp_path, name):
    queues = [queue_in(number % 2, f"{name}.{number}", shards=2) for number in range(4)]
    client, server = two_nodes["a"].client(), Server(tmp_path / "another")
    try:
        for queue in queues:
            client.send(f"/queue/{queue}", "early", persistent="true")
        url = f"redis://127.0.0.1:{server.port}"
        assert two_nodes.ask(lambda store: store.shard_record.add(url)) == 2

        async def states(store):
            return {number: each.state for number, each in (await store.shard_record.read()).shards.items()}

        wait_until(lambda: two_nodes.ask(states)[2] == SERVING, "both nodes serve it")
        new = queue_in(2, f"{name}.new", shards=3)
        client.send(f"/queue/{new}", "new", persistent="true")
        assert two_nodes.shards_of(new) == [2]

        async def drain(store):
            record = await store.shard_record.read()
            await store.shard_record.set_state(record.shards[1], DRAINING)

        two_nodes.ask(drain)
        wait_until(lambda: 1 not in two_nodes.shards_of(*queues), "all families of shard 1 have moved", seconds=60)
        for queue in queues:
            client.send(f"/queue/{queue}", "late", persistent="true")
        assert two_nodes.content([*queues, new]) == {
            **{queue: ["early", "late"] for queue in queues},
            new: ["new"],
        }
    finally:
        server.end()


def test_a_family_does_not_move_by_definitions_that_are_others_by_then(two_nodes, name):
    queue = queue_in(0, name, shards=2)
    two_nodes["a"].client().send(f"/queue/{queue}", "1", persistent="true")

    async def outdated(store):
        version = int(await store.client.execute("HGET", store.keys.definitions, "current"))
        epoch, _ = await store.nodes.members()
        move = FamilyMove(log(queue), 0, 1, "t", version - 1)
        await store.moves.begin(move)
        is_switched = await store.moves.switch(move, [log(queue)], epoch)
        return is_switched, await store.moves.fail(move, "outdated")

    assert two_nodes.ask(outdated) == (False, True)
    assert two_nodes.shards_of(queue) == [0]
    assert move(two_nodes, queue, 1).state == MOVED


def test_destinations_that_a_definition_joins_come_together_in_one_shard(two_nodes, name):
    queues = [queue_in(shard, f"{name}.{shard}", shards=2) for shard in (0, 1)]
    client = two_nodes["a"].client()
    for queue in queues:
        for number in range(30):
            client.send(f"/queue/{queue}", str(number), persistent="true")
    assert two_nodes.shards_of(*queues) == [0, 1]
    one, other = map(Destination.queue, queues)
    joining = CompositeDestination(one, (ForwardTarget(other),), forward_only=False)

    async def join(admin):
        return await admin.define(replace(await admin.definitions(), virtual_destinations=(joining,)), "test")

    two_nodes.admin(join)
    wait_until(lambda: len({*two_nodes.shards_of(*queues)}) == 1, "they are in one shard", seconds=60)
    client.send(f"/queue/{queues[0]}", "both", persistent="true")
    numbers = list(map(str, range(30)))
    wait_until(
        lambda: two_nodes.content(queues) == {each: [*numbers, "both"] for each in queues}, "all is there, in order"
    )
