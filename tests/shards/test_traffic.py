"""Test the traffic of a broker of two nodes and three shards: it is what it would be on one store."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter, defaultdict

import pytest

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.commands import (
    ConnectionId,
    IntegerResponse,
    MessageDispatch,
    Response,
    TransactionInfo,
    XATransactionId,
)
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.faults.load import Account
from tests.protocol.clients import StompClient
from tests.protocol.openwire_client import OpenWireClient, text_of
from tests.protocol.openwire_client import queue as openwire_queue
from tests.shards.sharded_broker import ShardedBroker, queue_in, sharded_broker
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SHARDS = 3
#: Bytes that a queue `limited.>` may hold.
LIMIT = 20_000
RULES = f"""
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="limited.>" sluice:storeLimit="{LIMIT}" sendFailIfNoSpace="true"/>
  </policyEntries></policyMap></destinationPolicy>
  <plugins><redeliveryPlugin sendToDlqIfMaxRetriesExceeded="true" fallbackToDeadLetter="true">
    <redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
      <redeliveryPolicy queue="retried.>" maximumRedeliveries="1" initialRedeliveryDelay="200" redeliveryDelay="200"/>
    </redeliveryPolicyEntries>
    </redeliveryPolicyMap></redeliveryPolicyMap>
  </redeliveryPlugin></plugins>
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with sharded_broker(tmp_path_factory.mktemp("sharded"), shards=SHARDS, nodes="ab", more=RULES) as running:
        yield running


@pytest.fixture
def client(broker):
    """Make clients of nodes; they leave at the end."""
    clients = []

    def connect(node="a", **headers) -> StompClient:
        clients.append(broker[node].client(**headers))
        return clients[-1]

    yield connect
    for each in clients:
        if each.connection.is_connected():
            each.connection.disconnect()


def one_in_each(name: str) -> list[str]:
    """Return a queue of each shard."""
    return [queue_in(shard, name, SHARDS) for shard in range(SHARDS)]


def sent(client: StompClient, queue: str, *bodies: str, **headers: str) -> None:
    for body in bodies:
        client.send(f"/queue/{queue}", body, persistent="true", **headers)


def transact(client: StompClient, sends: list[tuple[str, str]], acks=(), end: str = "COMMIT", id: str = "t") -> None:
    """Send to and acknowledge from queues in one transaction."""
    client.frame("BEGIN", wait=False, transaction=id)
    for queue, body in sends:
        client.send(f"/queue/{queue}", body, wait=False, transaction=id, persistent="true")
    for message in acks:
        client.ack(message, wait=False, transaction=id)
    client.frame(end, transaction=id)


def queue(name: str) -> Destination:
    return Destination.queue(name)


def test_traffic_of_many_queues_at_two_nodes_comes_once_and_in_order(broker: ShardedBroker, name):
    queues, count, account = [f"{name}.{number}" for number in range(9)], 60, Account()

    async def load() -> None:
        ports = [node.port for node in broker.nodes.values()]
        consumers = [
            asyncio.create_task(account.consume(ports[number % 2], each)) for number, each in enumerate(queues)
        ]
        try:
            async with asyncio.timeout(60):
                await asyncio.gather(
                    *(
                        account.produce(port, f"/queue/{each}", f"{each} {port}", count)
                        for each in queues
                        for port in ports
                    )
                )
                while any(len(account.acked[each]) < 2 * count for each in queues):
                    await asyncio.sleep(0.01)
        finally:
            for each in consumers:
                each.cancel()
            await asyncio.gather(*consumers, return_exceptions=True)

    asyncio.run(load())
    assert set(broker.shards_of(*queues)) == set(range(SHARDS)), "every shard has some of the queues"
    for each in queues:
        came = list(account.delivered[each])
        assert set(account.delivered[each].values()) == {1}
        for port in (node.port for node in broker.nodes.values()):
            of_producer = [body for body in came if body.startswith(f"{each} {port}-")]
            assert of_producer == [f"{each} {port}-{number}" for number in range(count)]
    assert set(broker.depths(*(str(queue(each)) for each in queues)).values()) == {0}


def test_a_transaction_over_shards_is_committed_whole_or_rolled_back(broker, client, name):
    queues, source = one_in_each(name), queue_in(1, f"{name}.source")
    worker = client("a")
    sent(worker, source, "taken", "kept")
    worker.subscribe(f"/queue/{source}", ack="client-individual")
    first, second = worker.take(2)
    transact(worker, [(each, "no") for each in queues], [first], end="ABORT")
    assert set(broker.depths(*(str(queue(each)) for each in queues)).values()) <= {0}
    transact(worker, [(each, body) for body in ("1", "2") for each in queues], [second])
    assert [broker.bodies(each) for each in queues] == [["1", "2"]] * SHARDS
    assert broker.bodies(source) == ["taken"]
    taker = client("b")
    for each in queues:
        taker.subscribe(f"/queue/{each}", id=each)
    assert sorted(taker.bodies(6)) == ["1"] * 3 + ["2"] * 3
    broker.wait_until_quiet(*(str(queue(each)) for each in queues))


def test_messages_of_a_producer_keep_their_order_in_each_queue_with_transactions_in_between(broker, client, name):
    queues = [*one_in_each(name), *one_in_each(f"{name}.more")]
    expected = defaultdict(list)  # by producer and queue
    consumer = client("b")
    for each in queues:
        consumer.subscribe(f"/queue/{each}", id=each)

    def produce(number: int) -> None:
        producer, chance = client("ab"[number % 2]), random.Random(number)
        for step in range(60):
            if chance.random() < 0.5:
                target = chance.choice(queues)
                producer.send(f"/queue/{target}", f"{number} {step}", wait=chance.random() < 0.2, persistent="true")
                expected[number, target].append(step)
            else:
                targets = chance.sample(queues, chance.randint(2, 4))
                producer.frame("BEGIN", wait=False, transaction="t")
                for target in targets:
                    producer.send(
                        f"/queue/{target}", f"{number} {step}", wait=False, transaction="t", persistent="true"
                    )
                    expected[number, target].append(step)
                producer.frame("COMMIT", wait=chance.random() < 0.3, transaction="t")
        producer.round_trip()

    producers = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for each in producers:
        each.start()
    for each in producers:
        each.join()
    count = sum(map(len, expected.values()))
    came = defaultdict(list)
    for message in consumer.take(count):
        number, step = map(int, message.body.split())
        came[number, message.headers["destination"].removeprefix("/queue/")].append(step)
    assert came == expected
    assert consumer.has_no_more()


def test_rejected_messages_of_all_shards_go_to_the_shared_dead_letter_queue(broker, client, name):
    queues, worker = one_in_each(name), client("a")
    for each in queues:
        sent(worker, each, f"bad {each}", f"good {each}")
        worker.subscribe(f"/queue/{each}", id=each, ack="client-individual")
    for message in worker.take(2 * SHARDS):
        (worker.nack if message.body.startswith("bad") else worker.ack)(message)
    dead = client("b")
    dead.subscribe("/queue/ActiveMQ.DLQ")
    assert sorted(dead.bodies(SHARDS)) == sorted(f"bad {each}" for each in queues)
    broker.wait_until_quiet(*(str(queue(each)) for each in (*queues, "ActiveMQ.DLQ")))


def test_a_composite_named_by_a_client_reaches_queues_of_all_shards(broker, client, name):
    queues, worker = one_in_each(name), client("a")
    for body in "123":
        worker.send(",".join(f"/queue/{each}" for each in queues), body, persistent="true")
    assert [broker.bodies(each) for each in queues] == [["1", "2", "3"]] * SHARDS


def test_consumer_queues_of_a_virtual_topic_get_all_copies_in_a_transaction_with_other_queues(broker, client, name):
    topic, other = f"VirtualTopic.{name}", one_in_each(name)
    consumers = {each: client("ab"[each % 2]) for each in range(3)}
    for number, each in consumers.items():
        each.subscribe(f"/queue/Consumer.{number}.{topic}")
    producer = client("b")
    for body in ("1", "2"):
        producer.frame("BEGIN", wait=False, transaction="t")
        producer.send(f"/topic/{topic}", body, wait=False, transaction="t", persistent="true")
        for each in other:
            producer.send(f"/queue/{each}", body, wait=False, transaction="t", persistent="true")
        producer.frame("COMMIT", transaction="t")
    assert [each.bodies(2) for each in consumers.values()] == [["1", "2"]] * 3
    assert [broker.bodies(each) for each in other] == [["1", "2"]] * SHARDS
    assert len(set(broker.shards_of(*(f"Consumer.{number}.{topic}" for number in consumers)))) == 1


def test_durable_subscriptions_of_several_topics_keep_what_comes_meanwhile(broker, client, name):
    topics = [f"{name}.{number}" for number in range(6)]
    reader = client("a", **{"client-id": name})
    for each in topics:
        reader.subscribe(f"/topic/{each}", id=each, **{"activemq.subscriptionName": each})
    reader.leave()
    producer = client("b")
    for body in "12":
        producer.frame("BEGIN", wait=False, transaction="t")
        for each in topics:
            producer.send(f"/topic/{each}", f"{each} {body}", wait=False, transaction="t", persistent="true")
        producer.frame("COMMIT", transaction="t")
    reader = client("b", **{"client-id": name})
    for each in topics:
        reader.subscribe(f"/topic/{each}", id=each, **{"activemq.subscriptionName": each})
    came = reader.bodies(2 * len(topics))
    assert sorted(came) == sorted(f"{each} {body}" for each in topics for body in "12")
    assert all(came.index(f"{each} 1") < came.index(f"{each} 2") for each in topics)
    logs = [f"subscription://{name}:{each}" for each in topics]
    assert len(set(broker.ask(lambda store: store.shard_record.shards_of(logs)))) > 1
    broker.wait_until_quiet(*logs)


def test_scheduled_messages_come_to_queues_of_all_shards_also_after_a_restart(broker, client, name):
    queues, worker = one_in_each(name), client("a")
    for each in queues:
        sent(worker, each, "soon", AMQ_SCHEDULED_DELAY="300")
        sent(worker, each, "later", AMQ_SCHEDULED_DELAY="2500")
    transact_delayed = client("a")
    transact_delayed.frame("BEGIN", wait=False, transaction="t")
    for each in queues:
        transact_delayed.send(
            f"/queue/{each}", "together", wait=False, transaction="t", persistent="true", AMQ_SCHEDULED_DELAY="300"
        )
    transact_delayed.frame("COMMIT", transaction="t")
    wait_until(lambda: all(sorted(broker.bodies(each)) == ["soon", "together"] for each in queues), "they are due")
    broker["a"].restart()
    wait_until(
        lambda: all(sorted(broker.bodies(each)) == ["later", "soon", "together"] for each in queues), "they are due"
    )


def test_what_is_rejected_comes_again_after_a_delay_and_then_is_a_dead_letter(broker, client, name):
    queues, worker = one_in_each(f"retried.{name}"), client("a")
    for each in queues:
        sent(worker, each, each)
        worker.subscribe(f"/queue/{each}", id=each, ack="client-individual")
    for message in worker.take(SHARDS):
        assert "redelivered" not in message.headers
        worker.nack(message)
    began = time.monotonic()
    again = worker.take(SHARDS)
    assert time.monotonic() - began > 0.1
    assert {each.headers["redelivered"] for each in again} == {"true"}
    for message in again:
        worker.nack(message)
    dead = client("b")
    dead.subscribe("/queue/ActiveMQ.DLQ")
    assert sorted(dead.bodies(SHARDS)) == sorted(queues)
    broker.wait_until_quiet(*(str(queue(each)) for each in (*queues, "ActiveMQ.DLQ")))


def _xa(client: OpenWireClient, operation: str, id: XATransactionId) -> Response:
    return client.ask(
        TransactionInfo(
            connection_id=ConnectionId(client.connection_id),
            transaction_id=id,
            type=TransactionOperation[operation],
        )
    )


@pytest.mark.parametrize("end", ["COMMIT_TWO_PHASE", "ROLLBACK"])
def test_a_prepared_branch_over_shards_is_ended_after_a_restart(broker, name, end):
    queues, source, id = one_in_each(name), queue_in(2, f"{name}.source"), XATransactionId(7, name.encode()[-60:], b"b")
    with OpenWireClient(broker["a"].port) as worker:
        worker.send(openwire_queue(source), "in")
        worker.consumer(1, openwire_queue(source), prefetch=1)
        _xa(worker, "BEGIN", id)
        taken = worker.next(MessageDispatch)
        assert text_of(taken) == "in"
        worker.acknowledge(taken, transaction_id=id)
        for each in queues:
            worker.ask(worker.message(openwire_queue(each), "out", transaction_id=id))
        assert isinstance(_xa(worker, "PREPARE", id), IntegerResponse)
    assert not any(broker.depths(*(str(queue(each)) for each in (*queues, source))).values())
    broker["a"].restart()
    with OpenWireClient(broker["b"].port) as other:
        assert type(_xa(other, end, id)) in (Response, IntegerResponse)
    committed = end != "ROLLBACK"
    assert [broker.bodies(each) for each in queues] == [["out"] if committed else []] * SHARDS
    assert broker.depths(str(queue(source))) == {str(queue(source)): 0 if committed else 1}
    broker.wait_until_quiet()


def test_operators_browse_move_edit_and_purge_across_shards(broker, client, name):
    here, there, third = one_in_each(name)
    sent(client("a"), here, *map(str, range(10)))

    def browsed(name: str) -> list[BrowsedMessage]:
        return broker.admin(lambda admin: admin.browse(queue(name), limit=100)).messages

    assert broker.admin(lambda admin: admin.move(queue(here), queue(there))) == 10
    assert (broker.bodies(here), broker.bodies(there)) == ([], [str(number) for number in range(10)])
    seqs = [each.seq for each in browsed(there)][:4]
    outcomes = broker.admin(lambda admin: admin.step("move", queue(there), seqs, target=queue(third)))
    assert {each.outcome for each in outcomes} == {"done"}
    assert (broker.bodies(there), broker.bodies(third)) == ([*"456789"], [*"0123"])
    assert broker.admin(lambda admin: admin.copy(queue(third), queue(here))) == 4
    first = browsed(here)[0]
    broker.admin(lambda admin: admin.step("edit", queue(here), [first.seq], edit=MessageEdit(body=b"mended").to_json()))
    assert sorted(broker.bodies(here)) == ["1", "2", "3", "mended"]
    assert broker.admin(lambda admin: admin.purge(queue(there))) == 6
    assert broker.admin(lambda admin: admin.remove(queue(third))) == 4
    assert [len(broker.bodies(each)) for each in (here, there, third)] == [4, 0, 0]
    assert broker.admin(lambda admin: admin.delete(queue(here))) == 4
    broker.wait_until_quiet()


@pytest.mark.parametrize("full", range(SHARDS))
def test_a_queue_without_room_refuses_a_whole_transaction_wherever_it_is(broker, client, name, full):
    queues, limited, worker = one_in_each(name), queue_in(full, f"limited.{name}", SHARDS), client("a")
    sent(worker, limited, "x" * (LIMIT - 1000))
    for order in ((*queues, limited), (limited, *queues), (*queues, limited)):
        transact(worker, [(each, "y" * 2000) for each in order])
        assert "full" in worker.error().headers["message"]
        worker = client("b")
    assert [broker.bodies(each) for each in queues] == [[]] * SHARDS
    assert len(broker.bodies(limited)) == 1


def test_depths_in_statistics_are_what_the_shards_hold(broker, client, name):
    queues, worker = one_in_each(name), client("a")
    for number, each in enumerate(queues, 1):
        sent(worker, each, *map(str, range(number)))
    transact(worker, [(each, "t") for each in queues])
    worker.subscribe(f"/queue/{queues[2]}", ack="client-individual", prefetch=1)
    worker.ack(worker.take()[0])

    def depths() -> list[int]:
        _, found, _ = broker.admin(lambda admin: admin.stats())
        by_name = {str(each.destination): each.QueueSize for each in found}
        return [by_name.get(str(queue(each)), 0) for each in queues]

    wait_until(lambda: depths() == [2, 3, 3], "the figures are those of the shards")
    assert Counter(broker.depths(*(str(queue(each)) for each in queues)).values()) == Counter([2, 3, 3])
