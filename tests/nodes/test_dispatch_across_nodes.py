"""Test selectors, groups, exclusive consumers, priority, order and transactions across two nodes."""

import pytest

from tests.waiting import wait_until


def test_selectors_choose_across_nodes(broker, client, name):
    queue = broker.queue_at("a", name)
    red, blue = client("a"), client("b")
    red.subscribe(f"/queue/{queue}", selector="colour = 'red'")
    blue.subscribe(f"/queue/{queue}", selector="colour = 'blue'")
    for number in range(6):
        red.send(f"/queue/{queue}", str(number), colour=("red", "blue")[number % 2])
    assert (red.bodies(3), blue.bodies(3)) == (["0", "2", "4"], ["1", "3", "5"])


def test_a_message_group_stays_with_one_consumer_in_order_whoever_sends(broker, client, name):
    queue = broker.queue_at("a", name)
    takers = [client("a"), client("b")]
    for taker in takers:
        taker.subscribe(f"/queue/{queue}", ack="client-individual")
    for number in range(12):
        takers[number % 2].send(f"/queue/{queue}", str(number), JMSXGroupID=f"g{number % 3}")
    wait_until(lambda: sum(taker.messages.qsize() for taker in takers) == 12, "all are given out")
    owners = {}
    for taker in takers:
        for message in taker.take(taker.messages.qsize()):
            owners.setdefault(message.headers["JMSXGroupID"], []).append((taker, int(message.body)))
    assert all(len({taker for taker, _ in given}) == 1 for given in owners.values())
    assert all([body for _, body in given] == sorted(body for _, body in given) for given in owners.values())


def test_an_exclusive_consumer_gets_all_wherever_it_is(broker, client, name):
    queue = broker.queue_at("a", name)
    only, other = client("b"), client("a")
    only.subscribe(f"/queue/{queue}", **{"activemq.exclusive": "true"})
    other.subscribe(f"/queue/{queue}", **{"activemq.exclusive": "true"})
    for number in range(5):
        other.send(f"/queue/{queue}", str(number))
    assert only.bodies(5) == list("01234")
    only.leave()
    other.send(f"/queue/{queue}", "5")
    assert other.bodies() == ["5"]


def test_a_consumer_of_higher_priority_on_another_node_comes_first(broker, client, name):
    queue = broker.queue_at("a", name)
    low, high = client("a"), client("b")
    low.subscribe(f"/queue/{queue}")
    high.subscribe(f"/queue/{queue}", **{"activemq.priority": "10"})
    for number in range(5):
        low.send(f"/queue/{queue}", str(number))
    assert high.bodies(5) == list("01234")


def test_a_transaction_settles_and_sends_at_once_whatever_nodes_its_queues_are_at(broker, client, name):
    one, two = broker.queue_at("a", name), broker.queue_at("b", f"{name}.more")
    worker = client("a")
    for queue in (one, two):
        worker.subscribe(f"/queue/{queue}", id=queue, ack="client-individual")
        worker.send(f"/queue/{queue}", queue, persistent="true")
    worker.frame("BEGIN", transaction="t")
    for message in worker.take(2):
        worker.ack(message, transaction="t")
    worker.send(f"/queue/{two}.out", "done", persistent="true", transaction="t")
    assert (broker.depth(one), broker.depth(two), broker.depth(f"{two}.out")) == (1, 1, 0)
    worker.frame("COMMIT", transaction="t")
    assert (broker.depth(one), broker.depth(two), broker.depth(f"{two}.out")) == (0, 0, 1)
    assert worker.has_no_more()


def test_messages_that_a_transaction_sends_to_two_queues_in_turn_come_once_and_in_order(broker, client, name):
    queues = [broker.queue_at("b", f"{name}.{number}") for number in range(2)]
    sender, takers = client("a"), [client("b") for _ in queues]
    for queue, taker in zip(queues, takers, strict=True):
        taker.subscribe(f"/queue/{queue}", ack="client-individual")
    for number in range(0, 80, 4):
        sender.frame("BEGIN", transaction=f"t{number}")
        for each in range(number, number + 4):
            sender.send(
                f"/queue/{queues[each % 2]}", str(each), wait=False, persistent="true", transaction=f"t{number}"
            )
        sender.frame("COMMIT", transaction=f"t{number}")
    for turn, (queue, taker) in enumerate(zip(queues, takers, strict=True)):
        messages = taker.take(40)
        assert [each.body for each in messages] == [str(number) for number in range(turn, 80, 2)]
        for each in messages:
            taker.ack(each)
        assert taker.has_no_more()
        wait_until(lambda queue=queue: broker.depth(queue) == 0, "all is acknowledged")


def test_an_aborted_transaction_leaves_messages_of_another_node_with_their_consumer(broker, client, name):
    queue = broker.queue_at("b", name)
    worker = client("a")
    worker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    worker.send(f"/queue/{queue}", "1")
    worker.send(f"/queue/{queue}", "2")
    worker.frame("BEGIN", transaction="t")
    [message] = worker.take()
    worker.ack(message, transaction="t")
    [second] = worker.take()
    worker.frame("ABORT", transaction="t")
    for each in (message, second):
        worker.ack(each)
    assert broker.depth(queue) == 0


@pytest.mark.parametrize("home", ["a", "b"])
def test_what_one_producer_sends_comes_in_order_to_a_consumer_on_another_node(broker, client, name, home):
    queue = broker.queue_at(home, name)
    sender, taker = client("a"), client("b")
    taker.subscribe(f"/queue/{queue}", ack="client")
    for number in range(300):
        sender.send(f"/queue/{queue}", str(number), wait=number == 299, persistent="true")
    messages = taker.take(300)
    assert [each.body for each in messages] == [str(number) for number in range(300)]
    taker.ack(messages[-1])
    wait_until(lambda: broker.depth(queue) == 0, "all is acknowledged")


def test_a_transaction_that_comes_to_nothing_takes_the_credit_back_that_its_acks_gave(broker, client, name):
    queue = broker.queue_at("b", name)
    worker = client("a")
    worker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    for number in range(3):
        worker.send(f"/queue/{queue}", str(number))
    worker.frame("BEGIN", transaction="t")
    [first] = worker.take()
    worker.ack(first, transaction="t")
    [second] = worker.take()
    worker.frame("ABORT", transaction="t")
    worker.ack(second)
    assert worker.has_no_more()
    worker.ack(first)
    assert worker.bodies() == ["2"]
