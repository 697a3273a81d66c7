"""Test two nodes that are one broker: any client, at any node, of any log."""

import re
from io import StringIO

import pytest
from django.core.management import call_command

from brokerapp.stomp import frames
from tests.protocol.clients import RawClient
from tests.waiting import wait_until


@pytest.mark.parametrize("home", ["a", "b"])
@pytest.mark.parametrize("producer", ["a", "b"])
@pytest.mark.parametrize("consumer", ["a", "b"])
def test_what_is_sent_at_a_node_is_consumed_at_any_wherever_the_queue_is_at_home(
    broker, client, name, home, producer, consumer
):
    queue = broker.queue_at(home, name)
    sender, taker = client(producer), client(consumer)
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    for number in range(5):
        sender.send(f"/queue/{queue}", str(number), persistent="true")
    messages = taker.take(5)
    assert [each.body for each in messages] == ["0", "1", "2", "3", "4"]
    assert not any("redelivered" in each.headers for each in messages)
    for each in messages:
        taker.ack(each)
    assert broker.depth(queue) == 0


def test_a_home_reads_back_what_other_nodes_stored_and_not_what_its_own_clients_send(broker, client, name):
    queue = broker.queue_at("a", name)
    at_home, away, taker = client("a"), client("b"), client("a")
    taker.subscribe(f"/queue/{queue}")
    committer, reads = broker["a"].node.broker.commits, []
    read = committer.read
    committer.read = lambda *which: reads.append(which) or read(*which)

    at_home.send(f"/queue/{queue}", "first", persistent="true")  # whether the log was read to its end is not known yet
    assert taker.bodies(1) == ["first"]
    reads.clear()
    for number in range(5):
        at_home.send(f"/queue/{queue}", str(number), persistent="true")
        assert taker.bodies(1) == [str(number)]
    assert not reads

    sent = []
    for number in range(20):
        for sender in (away, at_home):
            sent.append(f"{sender is away} {number}")
            sender.send(f"/queue/{queue}", sent[-1], persistent="true")  # each is stored before the next is sent
    assert taker.bodies(40) == sent
    assert reads


@pytest.mark.parametrize("home", ["a", "b"])
def test_a_backlog_is_consumed_from_another_node_in_order(broker, client, name, home):
    queue = broker.queue_at(home, name)
    sender, taker = client("a"), client("b")
    sender.frame("BEGIN", transaction="t")
    for number in range(1200):
        sender.send(f"/queue/{queue}", str(number), wait=False, transaction="t")
    sender.frame("COMMIT", transaction="t")
    taker.subscribe(f"/queue/{queue}", prefetch=100)
    assert taker.bodies(1200) == [str(number) for number in range(1200)]
    wait_until(lambda: broker.depth(queue) == 0, "all is acknowledged")


@pytest.mark.parametrize("home", ["a", "b"])
def test_acks_that_come_at_once_are_worth_as_many_further_messages(broker, client, name, home):
    queue, sender = broker.queue_at(home, name), client("a")
    for number in range(60):
        sender.send(f"/queue/{queue}", str(number), wait=number == 59, persistent="true")
    taker = RawClient(broker["b"].port)
    headers = {"destination": f"/queue/{queue}", "id": "s", "ack": "client-individual", "activemq.prefetchSize": "20"}
    taker.tell("SUBSCRIBE", headers)
    for first in range(0, 60, 20):
        messages = [taker.hear() for _ in range(20)]
        assert [each.body.decode() for each in messages] == [str(first + number) for number in range(20)]
        taker.write(b"".join(frames.encode("ACK", {"id": each.headers["ack"]}, b"") for each in messages))
    wait_until(lambda: broker.depth(queue) == 0, "all is acknowledged")
    wait_until(lambda: broker[home].depth(queue) == 0, "their home knows")
    taker.close()


def test_consumers_on_both_nodes_share_a_queue(broker, client, name):
    queue = broker.queue_at("a", name)
    takers = [client("a"), client("b")]
    for taker in takers:
        taker.subscribe(f"/queue/{queue}", ack="client-individual")
    for number in range(20):
        takers[1].send(f"/queue/{queue}", str(number))
    bodies = [taker.bodies(10) for taker in takers]
    assert sorted(map(int, bodies[0] + bodies[1])) == list(range(20))


def test_what_a_consumer_on_another_node_held_comes_back_flagged_when_it_leaves(broker, client, name):
    queue = broker.queue_at("a", name)
    holder, other = client("b"), client("a")
    holder.subscribe(f"/queue/{queue}", ack="client-individual")
    for number in range(3):
        other.send(f"/queue/{queue}", str(number))
    first, *_ = holder.take(3)
    holder.ack(first)
    holder.break_off()
    other.subscribe(f"/queue/{queue}", ack="client-individual")
    messages = other.take(2)
    assert [(each.body, each.headers.get("redelivered")) for each in messages] == [("1", "true"), ("2", "true")]


def test_a_nack_on_another_node_goes_to_the_dead_letter_queue_at_once(broker, client, name):
    queue = broker.queue_at("a", name)
    taker = client("b")
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    taker.send(f"/queue/{queue}", "bad", persistent="true")
    taker.nack(taker.take()[0])
    taker.subscribe("/queue/ActiveMQ.DLQ", id="dead")
    assert taker.bodies() == ["bad"]


def test_prefetch_holds_across_nodes(broker, client, name):
    queue = broker.queue_at("a", name)
    taker = client("b")
    for number in range(3):
        taker.send(f"/queue/{queue}", str(number))
    taker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    for number in range(3):
        [message] = taker.take()
        assert message.body == str(number)
        assert taker.has_no_more()
        taker.ack(message)


@pytest.mark.parametrize("lists", ["a list", "a pattern"])
def test_the_prefetch_of_a_consumer_of_several_queues_holds_once_for_all_of_their_owners(broker, client, name, lists):
    queues = [broker.queue_at(node, f"{name}.{node}") for node in "ab"]
    sender, taker = client("a"), client("b")
    for queue in queues:
        for number in range(3):
            sender.send(f"/queue/{queue}", f"{queue[-3]}{number}", persistent="true")
    wanted = ",".join(f"/queue/{each}" for each in queues) if lists == "a list" else f"/queue/{name}.>"
    taker.subscribe(wanted, ack="client-individual", prefetch=1)
    bodies, sources = [], []
    for _ in range(6):
        [message] = taker.take()
        assert taker.has_no_more(), "it holds one of whichever queue, not one of each owner"
        assert "redelivered" not in message.headers
        bodies.append(message.body)
        sources.append(message.headers["destination"])
        taker.ack(message)
    assert len(set(bodies)) == 6
    assert len(set(sources[:4])) == 2, "neither queue waits until the other one is empty"


def test_what_an_owner_sent_beyond_a_consumers_prefetch_goes_to_others_unflagged_when_it_leaves(broker, client, name):
    queues = [broker.queue_at(node, f"{name}.{node}") for node in "ab"]
    sender, taker = client("a"), client("b")
    for queue in queues:
        sender.send(f"/queue/{queue}", queue, persistent="true")
    taker.subscribe(",".join(f"/queue/{each}" for each in queues), ack="client-individual", prefetch=1)
    [held] = taker.take()
    assert taker.has_no_more()
    taker.break_off()
    other = client("a")
    other.subscribe(",".join(f"/queue/{each}" for each in queues), ack="client-individual", prefetch=10)
    assert {(each.body, "redelivered" in each.headers) for each in other.take(2)} == {
        (queue, queue == held.body) for queue in queues
    }


def test_an_operator_sees_the_connections_of_both_nodes_whichever_answers(broker, client, name):
    for node in ("a", "b"):
        client(node).subscribe(f"/topic/{name}.{node}")
    wanted = {f"topic://{name}.a", f"topic://{name}.b"}

    def seen(node: str) -> set[str]:
        peers = broker[node].ask(lambda admin: admin.peers.all())
        return wanted & {each for peer in peers for consumer in peer.consumers for each in consumer["destinations"]}

    for node in ("a", "b"):
        wait_until(lambda node=node: seen(node) == wanted, "both connections")


@pytest.mark.parametrize("home", ["a", "b"])
@pytest.mark.parametrize("producer", ["a", "b"])
def test_a_consumer_of_a_pattern_gets_what_comes_to_a_queue_that_is_created_later(broker, client, name, home, producer):
    consumer = client("a")
    consumer.subscribe(f"/queue/{name}.>")
    client(producer).send(f"/queue/{broker.queue_at(home, name)}", "new", persistent="true")
    assert consumer.bodies() == ["new"]


def test_brokerctl_says_of_how_many_queues_each_node_is_the_home(broker, client, name):
    for node in ("a", "b"):
        client(node).send(f"/queue/{broker.queue_at(node, name)}", "x", persistent="true")

    def homes() -> dict[str, str]:
        said = StringIO()
        call_command("brokerctl", "--redis", broker.redis_url, "--name", broker.name, "stats", stdout=said)
        return dict(re.findall(rf"^{broker.name} (\w+) .* owns (\d+) queues?$", said.getvalue(), re.MULTILINE))

    wait_until(lambda: homes().keys() == {"a", "b"} and "0" not in homes().values(), "both say so")
