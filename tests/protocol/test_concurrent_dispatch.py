"""Test concurrent dispatch: consumers get messages during the commit; the RECEIPT waits for it.

The store stands still in most of these tests, so that nothing can be stored meanwhile.
"""

import queue
import threading

import pytest

from brokerapp.engine.dispatch.recovery_marks import OPEN_MARK
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.conftest import paused_store
from tests.protocol.running_node import named, node_of
from tests.waiting import wait_until

LIMIT = 4096
XML = f"""\
<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="early">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="limited.>" sluice:storeLimit="{LIMIT}"/>
  </policyEntries></policyMap></destinationPolicy>
  <destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <virtualTopic name="VirtualTopic.>" prefix="Consumer.*."/>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""
SHORT = 0.3  # seconds in which what must not come would have come


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def sender(connect):
    return connect()


@pytest.fixture
def consumer(connect, name):
    """It consumes the test's queue and acknowledges by itself."""
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual")
    return client


def send(client, destination, *bodies, **headers):
    """SENDs whose receipts nobody waits for now; what to wait for them with."""
    receipts = []
    for body in bodies:
        asked = {"persistent": "true", **headers}
        receipts.append(client._with_receipt(asked, True))
        client.connection.send(destination, body, headers=asked)
    return receipts


def is_confirmed(client, receipt, patience=0.0):
    return client._receipts[receipt].wait(patience)


def hears_nothing(client):
    with pytest.raises(queue.Empty):
        client.messages.get(timeout=SHORT)
    return True


def test_a_consumer_has_messages_in_order_before_they_are_stored_and_their_sender_is_confirmed_after(
    store, node, sender, consumer, name
):
    with paused_store(store):
        receipts = send(sender, f"/queue/{name}", *"abcde")
        assert consumer.bodies(5) == list("abcde")
        assert not any(is_confirmed(sender, each, SHORT / 5) for each in receipts)
        numbers = node.numbers(Destination.queue(name))
        assert (numbers.QueueSize, numbers.InFlightCount, numbers.EnqueueCount) == (5, 5, 5)
    assert all(is_confirmed(sender, each, 10) for each in receipts)
    assert node.bodies(name) == list("abcde")


def test_what_is_acknowledged_before_it_is_stored_is_gone_when_it_is(store, node, sender, consumer, name):
    with paused_store(store):
        [receipt] = send(sender, f"/queue/{name}", "a")
        consumer.ack(consumer.take()[0], wait=False)
        wait_until(lambda: node.depth(name) == 0, "the ACK is heard")
    assert is_confirmed(sender, receipt, 10)
    wait_until(lambda: node.bodies(name) == [], "it is removed")


def test_an_ack_with_a_receipt_is_confirmed_when_its_message_is_stored_and_removed(store, node, sender, consumer, name):
    with paused_store(store):
        send(sender, f"/queue/{name}", "a")
        asked = {"id": consumer.take()[0].headers["ack"]}
        acked = consumer._with_receipt(asked, True)
        consumer.connection.send_frame("ACK", asked)
        assert not is_confirmed(consumer, acked, SHORT)
    assert is_confirmed(consumer, acked, 10)
    assert node.bodies(name) == []
    assert consumer.has_no_more()


def test_a_nack_before_it_is_stored_makes_a_dead_letter_of_it_once(store, node, sender, consumer, name):
    with paused_store(store):
        [receipt] = send(sender, f"/queue/{name}", name)
        consumer.nack(consumer.take()[0], wait=False)
    assert is_confirmed(sender, receipt, 10)
    wait_until(lambda: node.bodies("ActiveMQ.DLQ").count(name) == 1, "it is a dead letter")
    assert node.bodies(name) == []


def test_acks_of_a_transaction_before_their_messages_are_stored_count_with_its_commit(
    store, node, sender, consumer, name
):
    with paused_store(store):
        send(sender, f"/queue/{name}", *"ab")
        consumer.frame("BEGIN", wait=False, transaction="t")
        for message in consumer.take(2):
            consumer.ack(message, wait=False, transaction="t")
        consumer.send(f"/queue/{name}.out", "c", wait=False, transaction="t", persistent="true")
        consumer.frame("COMMIT", wait=False, transaction="t")
        asked = {"transaction": "u"}
        begun = consumer._with_receipt(asked, True)
        consumer.connection.send_frame("BEGIN", asked)
        assert is_confirmed(consumer, begun, 10)  # all before was heard
    wait_until(lambda: node.depth(f"{name}.out") == 1, "the transaction is committed")
    assert node.bodies(f"{name}.out") == ["c"]
    assert node.bodies(name) == []


def test_what_a_consumer_leaves_behind_before_it_is_stored_goes_to_the_next_in_order_and_flagged(
    store, node, connect, sender, consumer, name
):
    with paused_store(store):
        receipts = send(sender, f"/queue/{name}", *"abc")
        consumer.take(3)
        consumer.break_off()
        wait_until(lambda: not node.look(lambda: node.node.broker.queues[f"queue://{name}"].consumers), "it is gone")
        receipts += send(sender, f"/queue/{name}", "d")
    assert all(is_confirmed(sender, each, 10) for each in receipts)
    heir = connect()
    heir.subscribe(f"/queue/{name}")
    found = heir.take(4)
    assert named(found) == list("abcd")
    assert [each.headers.get("redelivered", "false") for each in found] == ["true", "true", "true", "false"]
    assert heir.has_no_more()


def test_what_finds_no_credit_follows_in_order_when_it_is_stored(store, node, connect, sender, name):
    consumer = connect()
    consumer.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    with paused_store(store):
        send(sender, f"/queue/{name}", *"ab")
        first = consumer.take(2)
        send(sender, f"/queue/{name}", *"cd")
        consumer.ack(first[0], wait=False)  # credit, but `c` waits for the store, and `e` must not overtake it
        wait_until(lambda: node.depth(name) == 1, "the ACK is heard")
        send(sender, f"/queue/{name}", "e")
        assert hears_nothing(consumer)
    assert named(first) == ["a", "b"]
    got = []
    for _ in "cde":
        [message] = consumer.take()
        got.append(message.body)
        consumer.ack(message)
    assert got == list("cde")
    consumer.ack(first[1])
    assert node.bodies(name) == []


def test_a_selector_decides_before_as_after(store, node, connect, sender, name):
    consumer = connect()
    consumer.subscribe(f"/queue/{name}", ack="client-individual", selector="kind = 'x'")
    with paused_store(store):
        send(sender, f"/queue/{name}", "a", kind="x")
        send(sender, f"/queue/{name}", "b", kind="x")
        assert consumer.bodies(2) == ["a", "b"]
        send(sender, f"/queue/{name}", "c", kind="y")
        send(sender, f"/queue/{name}", "d", kind="x")  # behind one that waits: after
        assert hears_nothing(consumer)
    assert consumer.bodies() == ["d"]
    assert node.bodies(name) == list("abcd")


def write_together(client, *sends):
    """SENDs in one write: destination, body, and other headers."""
    client.write(
        b"".join(
            encode("SEND", {"destination": destination, "persistent": "true", **headers}, body.encode())
            for destination, body, headers in sends
        )
    )


def test_nothing_overtakes_what_of_one_write_was_not_given_early(store, node, raw, connect, name):
    consumer, client = connect(), raw()
    consumer.subscribe(f"/queue/{name}", ack="client-individual", selector="kind = 'x'")
    one, other = f"/queue/{name}", f"/queue/{name}.other"
    with paused_store(store):
        write_together(client, (one, "a", {"kind": "x"}), (one, "b", {"kind": "y"}), (one, "c", {"kind": "x"}))
        assert consumer.bodies() == ["a"]
        write_together(client, (one, "d", {"kind": "x"}))
        assert hears_nothing(consumer)
    assert consumer.bodies(2) == ["c", "d"]
    with paused_store(store):
        write_together(client, (other, "e", {}), (f"{one},{other}", "f", {"kind": "x"}), (one, "g", {"kind": "x"}))
        assert hears_nothing(consumer)
    assert consumer.bodies(2) == ["f", "g"]


def test_members_of_a_group_go_to_its_owner_before_as_after(store, node, connect, sender, name):
    consumers = [connect(), connect()]
    for each in consumers:
        each.subscribe(f"/queue/{name}", ack="client-individual")
    with paused_store(store):
        for body in "abcd":
            send(sender, f"/queue/{name}", body, JMSXGroupID="ac"["bd".find(body) >= 0])
        heard = [each.bodies(2) for each in consumers]
    assert sorted(heard) == [["a", "c"], ["b", "d"]]


def test_what_is_copied_to_several_queues_is_given_to_none_before_all_copies_are_stored(
    store, node, connect, sender, name
):
    topic = f"VirtualTopic.{name}"
    queues = [f"Consumer.{each}.{topic}" for each in "pqr"]
    consumers = [connect() for _ in queues]
    for client, each in zip(consumers, queues, strict=True):
        client.subscribe(f"/queue/{each}", ack="client-individual")
    consumers[2].unsubscribe()
    with paused_store(store):
        receipts = send(sender, f"/topic/{topic}", *"abc")
        assert all(client.has_no_more() for client in consumers)
    assert all(is_confirmed(sender, each, 10) for each in receipts)
    assert [client.bodies(3) for client in consumers[:2]] == 2 * [list("abc")]
    assert node.bodies(queues[2]) == list("abc")


def test_the_only_consumer_queue_of_a_virtual_topic_is_given_it_early(store, node, connect, sender, name):
    topic, client = f"VirtualTopic.{name}", connect()
    client.subscribe(f"/queue/Consumer.p.{topic}", ack="client-individual")
    with paused_store(store):
        receipts = send(sender, f"/topic/{topic}", *"abc")
        heard = client.take(3)
        assert named(heard) == list("abc")
        for each in heard:
            client.ack(each, wait=False)
    assert all(is_confirmed(sender, each, 10) for each in receipts)
    wait_until(lambda: node.bodies(f"Consumer.p.{topic}") == [], "it is removed")


def test_a_durable_subscriber_has_it_early(store, node, connect, sender, name):
    subscriber = connect(**{"client-id": name})
    subscriber.subscribe(f"/topic/{name}", ack="client-individual", **{"activemq.subscriptionName": "s"})
    with paused_store(store):
        [receipt] = send(sender, f"/topic/{name}", "a")
        assert subscriber.bodies() == ["a"]
        assert not is_confirmed(sender, receipt, SHORT)
    assert is_confirmed(sender, receipt, 10)


def test_a_transactions_messages_are_nobodys_before_it_is_stored(store, node, sender, consumer, name):
    sender.frame("BEGIN", transaction="t")
    with paused_store(store):
        sender.send(f"/queue/{name}", "a", wait=False, transaction="t", persistent="true")
        sender.frame("COMMIT", wait=False, transaction="t")
        send(sender, f"/queue/{name}", "b")
        assert hears_nothing(consumer)
    assert consumer.bodies(2) == ["a", "b"]


def test_what_a_limit_may_refuse_is_given_out_when_it_is_stored(store, node, connect, sender, name):
    consumer = connect()
    consumer.subscribe(f"/queue/limited.{name}", ack="client-individual")
    body = "x" * (LIMIT // 4)
    send(sender, f"/queue/limited.{name}", f"0{body}")
    held = consumer.take()  # what the queue holds is known from here on
    with paused_store(store):
        receipts = send(sender, f"/queue/limited.{name}", f"1{body}")
        held += consumer.take()
        receipts += send(sender, f"/queue/limited.{name}", f"2{body}")
        held += consumer.take()
        receipts += send(sender, f"/queue/limited.{name}", f"3{body}", f"4{body}")
        assert hears_nothing(consumer)  # the queue has no room for the fourth, and the fifth is behind it
    assert [is_confirmed(sender, each, 10) for each in receipts[:2]] == [True, True]
    assert not is_confirmed(sender, receipts[2], SHORT)
    for each in held:
        consumer.ack(each)
    assert [message.body[0] for message in (*held, *consumer.take(2))] == list("01234")
    assert all(is_confirmed(sender, each, 10) for each in receipts)


def test_messages_that_one_consumer_acknowledges_by_hearing_them_are_removed_when_they_are_stored(
    store, node, connect, sender, name
):
    consumer = connect()
    consumer.subscribe(f"/queue/{name}")
    with paused_store(store):
        receipts = send(sender, f"/queue/{name}", *"abc")
        assert consumer.bodies(3) == list("abc")
    assert all(is_confirmed(sender, each, 10) for each in receipts)
    wait_until(lambda: node.bodies(name) == [], "they are removed")


def limit_store(node, size):
    """It holds so many bytes from now on."""

    def change():
        node.node._core.limits.total = size

    node.look(change)


def test_what_was_given_early_and_finds_no_room_after_all_is_stored_when_there_is_some(
    store, node, sender, consumer, name
):
    before = node.look(lambda: node.node._core.limits.total)
    try:
        with paused_store(store):
            receipts = send(sender, f"/queue/{name}", "a")  # under way
            held = consumer.take()
            receipts += send(sender, f"/queue/{name}", "b")  # behind it
            held += consumer.take()
            limit_store(node, 1)
        assert is_confirmed(sender, receipts[0], 10)
        wait_until(lambda: node.numbers(Destination.queue(name)).BlockedSends == 1, "the second waits for room")
        consumer.ack(held[1], wait=False)
        wait_until(lambda: node.depth(name) == 1, "the ACK is heard")
        assert not is_confirmed(sender, receipts[1])
    finally:
        limit_store(node, before)
    assert is_confirmed(sender, receipts[1], 10)
    wait_until(lambda: node.bodies(name) == ["a"], "it is removed")
    assert consumer.has_no_more()


def test_what_was_acknowledged_before_it_was_stored_counts_as_delivered_until_it_is_settled(
    store, node, sender, consumer, name, monkeypatch
):
    """Its node may die between the two: then it is there once more, and must be flagged."""
    marks, committer = [], node.node.broker.commits

    def noting(log, mark, note=committer.set_recovery_mark):
        marks.append(mark)
        note(log, mark)

    monkeypatch.setattr(committer, "set_recovery_mark", noting)
    with paused_store(store):
        [receipt] = send(sender, f"/queue/{name}", "a")
        consumer.ack(consumer.take()[0], wait=False)
        consumer.break_off()
        wait_until(lambda: marks, "its last consumer is gone")
        assert marks == [OPEN_MARK]
    assert is_confirmed(sender, receipt, 20)
    wait_until(lambda: marks == [OPEN_MARK, "0"], "nothing is left of it")


def test_what_many_clients_send_at_once_is_given_before_it_is_stored_and_stored_by_one_commit(
    store, node, connect, name
):
    queues, consumer = [f"/queue/{name}.{number}" for number in range(6)], connect()
    senders, has_begun, may_end = [connect() for _ in queues], threading.Event(), threading.Event()
    consumer.subscribe(f"/queue/{name}.*", ack="client-individual")
    for sender, destination in zip(senders, queues, strict=True):
        sender.send(destination, "before", persistent="true")
        consumer.ack(consumer.take()[0])
    commits, batches = node.node.broker.commits, []
    wait_until(lambda: not node.look(lambda: commits.busy), "nothing is left to be stored")
    with paused_store(store):
        turn = threading.Thread(target=node.look, args=(lambda: has_begun.set() or may_end.wait(5),))
        turn.start()
        has_begun.wait(5)
        for sender, destination in zip(senders, queues, strict=True):  # all wait in their sockets
            send(sender, destination, destination)
        may_end.set()
        turn.join()
        assert sorted(consumer.bodies(len(queues))) == queues
        first = commits.first
        report, first._on_batch = first._on_batch, lambda batch: (batches.append(batch), report(batch))
    wait_until(lambda: not node.look(lambda: commits.busy), "all is stored")
    commits.first._on_batch = report
    [written] = [len(each.writes) for each in batches if any(write.count for write in each.writes)]
    assert written == 1
