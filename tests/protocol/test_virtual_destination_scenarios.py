"""Virtual destinations as the catalogue tries them: families of consumer queues, wildcards, headers, restarts."""

import threading

import pytest

from brokerapp.model.definitions import (
    DEFAULT_VIRTUAL_TOPIC,
    CompositeDestination,
    ForwardTarget,
    MirroredQueue,
    VirtualTopic,
)
from brokerapp.model.destination import Destination

queue, topic = Destination.queue, Destination.topic
SENT = 10


@pytest.fixture
def define(node):
    yield node.define
    node.define(DEFAULT_VIRTUAL_TOPIC)


def publish(client, destination, count=SENT, **headers):
    """Numbered messages."""
    for number in range(count):
        client.send(destination, str(number), wait=number == count - 1, **headers)


NUMBERS = [str(number) for number in range(SENT)]


@pytest.mark.scenario("VT-02")
def test_what_two_consumers_of_a_consumer_queue_acked_comes_to_nobody_again(connect, node, name):
    consumer_queue = f"Consumer.A.VirtualTopic.{name}"
    consumers = [connect(), connect()]
    for client in consumers:
        client.subscribe(f"/queue/{consumer_queue}", ack="client-individual")
    publish(connect(), f"/topic/VirtualTopic.{name}")
    taken = [client.take(SENT // 2) for client in consumers]
    for client, messages in zip(consumers, taken, strict=True):
        for message in messages:
            assert "redelivered" not in message.headers
            client.ack(message)
    assert sorted(each.body for messages in taken for each in messages) == NUMBERS
    for client in consumers:
        client.leave()
    assert node.depth(consumer_queue) == 0


@pytest.mark.scenario("VT-05", "VT-08")
def test_a_wildcard_consumer_queue_and_a_plain_one_hold_a_copy_each(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/Other.A.VirtualTopic.{name}.>", id="other")
    client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}.x", id="plain")
    client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}.>", id="wildcard")
    publish(client, f"/topic/VirtualTopic.{name}.x")
    assert sorted(client.bodies(2 * SENT)) == sorted(2 * NUMBERS)
    assert client.has_no_more()
    assert node.look(lambda: queue(f"Other.A.VirtualTopic.{name}.>") not in node.node.broker.queues)


@pytest.mark.scenario("VT-07")
def test_a_wildcard_consumer_queue_alone_gets_each_message_once(connect, name):
    client = connect()
    client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}.>")
    publish(client, f"/topic/VirtualTopic.{name}.x", SENT // 2)
    publish(client, f"/topic/VirtualTopic.{name}.y.z", SENT // 2)
    assert client.bodies(SENT) == 2 * NUMBERS[: SENT // 2]
    assert client.has_no_more()


def test_a_wildcard_consumer_queue_with_a_postfix_is_a_queue_of_its_own_too(connect, define, name):
    define(VirtualTopic(f"{name}.>", prefix="PC.*.", postfix=".Q"))
    client = connect()
    client.subscribe(f"/queue/PC.A.{name}.*.y.Q")
    client.send(f"/topic/{name}.x.y", "both")
    client.send(f"/topic/{name}.x.z", "neither")
    client.send(f"/topic/{name}.z.y", "both")
    assert client.bodies(2) == ["both", "both"]
    assert client.has_no_more()


@pytest.mark.scenario("VT-09")
def test_a_wildcard_consumer_also_empties_plain_queues_that_were_there_before(connect, node, name):
    plain, producer = f"Consumer.A.VirtualTopic.{name}.x", connect()
    node.ask(lambda admin: admin.create(queue(plain)))
    publish(producer, f"/topic/VirtualTopic.{name}.x")
    assert node.depth(plain) == SENT
    consumer = connect()
    consumer.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}.>")
    assert consumer.bodies(SENT) == NUMBERS
    assert node.depth(plain) == 0


@pytest.mark.scenario("VT-10")
def test_selective_consumers_of_aware_queues_get_their_halves_and_nothing_is_left(connect, node, define, name):
    define(VirtualTopic(name=f"{name}.>", prefix="Aware.*.", selector_aware=True))
    client = connect()
    for family, parity in (("A", "odd"), ("B", "even")):
        client.subscribe(f"/queue/Aware.{family}.{name}.x", id=family, selector=f"parity = '{parity}'")
    for number in range(SENT):
        client.send(f"/topic/{name}.x", str(number), parity="odd" if number % 2 else "even")
    taken = client.take(SENT)
    for family, parity in (("A", 1), ("B", 0)):
        place = f"/queue/Aware.{family}.{name}.x"
        assert [int(each.body) % 2 for each in taken if each.headers["destination"] == place] == [parity] * (SENT // 2)
    for family in "AB":
        client.unsubscribe(family)
        client.subscribe(f"/queue/Aware.{family}.{name}.x", id=family)
    assert client.has_no_more()
    client.send(f"/topic/{name}.x", "new", parity="neither")
    assert client.bodies(2) == ["new", "new"]


@pytest.mark.scenario("VT-16")
@pytest.mark.parametrize("concurrent", [False, True])
def test_consumer_queues_deleted_while_messages_come_leave_nothing_behind(connect, node, define, name, concurrent):
    define(VirtualTopic(name=f"{name}.>", concurrent_send=concurrent))
    queues = [f"Consumer.{number}.{name}.x" for number in range(5)]
    producer, before = connect(), node.stored_payloads()
    for each in queues:
        node.ask(lambda admin, each=each: admin.create(queue(each)))
    sending = threading.Thread(target=publish, args=(producer, f"/topic/{name}.x", 300), kwargs={"persistent": "true"})
    sending.start()
    for each in queues:
        node.ask(lambda admin, each=each: admin.delete(queue(each)))
    sending.join(30)
    producer.send(f"/topic/{name}.x", "after all", persistent="true")
    assert producer.errors.empty()
    assert [each for each in queues if node.look(lambda each=each: queue(each) in node.node.broker.queues)] == []
    assert node.stored_payloads() == before


@pytest.mark.scenario("VT-27", "VT-29")
def test_consumers_and_destinations_come_and_go_at_once_and_those_that_stay_get_everything(connect, node, name):
    stable, coming, producer = connect(), [connect() for _ in range(3)], connect()
    stable.subscribe(f"/queue/Consumer.stays.VirtualTopic.{name}")

    def come_and_go(client, number):
        for turn in range(20):
            client.subscribe(f"/queue/Consumer.{number}-{turn}.VirtualTopic.{name}", id=str(turn))
            client.subscribe(f"/topic/VirtualTopic.{name}.{turn}", id=f"t{turn}")
            client.unsubscribe(str(turn))
            client.unsubscribe(f"t{turn}")

    threads = [threading.Thread(target=come_and_go, args=each) for each in zip(coming, range(3), strict=True)]
    for each in threads:
        each.start()
    publish(producer, f"/topic/VirtualTopic.{name}", 200)
    for each in threads:
        each.join(60)
    assert stable.bodies(200) == [str(number) for number in range(200)]
    found = [log.destination.name for log in node.look(lambda: list(node.node.broker.queues)) if name in log.name]
    assert len(found) == 61


@pytest.mark.scenario("VT-31")
def test_producers_and_consumers_in_threads_see_no_id_twice_and_leave_nothing(connect, node, name):
    consumers = [connect() for _ in range(3)]
    for client in consumers:
        client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}", ack="client-individual", prefetch=10)
    producers = [connect() for _ in range(2)]
    threads = [
        threading.Thread(target=publish, args=(each, f"/topic/VirtualTopic.{name}", 150), kwargs={"persistent": "true"})
        for each in producers
    ]
    ids: list[str] = []

    def consume(client):
        while not (threads_done.is_set() and client.messages.empty()):
            if client.messages.empty():
                threads_done.wait(0.01)
                continue
            [message] = client.take()
            ids.append(message.headers["message-id"])
            client.ack(message, wait=False)

    threads_done = threading.Event()
    readers = [threading.Thread(target=consume, args=(each,)) for each in consumers]
    for each in (*threads, *readers):
        each.start()
    for each in threads:
        each.join(60)
    while len(ids) < 300 and any(each.is_alive() for each in readers):
        threads_done.wait(0.01)
    threads_done.set()
    for each in readers:
        each.join(60)
    for client in consumers:
        client.leave()
    assert len(ids) == len(set(ids)) == 300
    assert node.depth(f"Consumer.A.VirtualTopic.{name}") == 0


@pytest.mark.scenario("VT-36")
def test_all_copies_carry_the_headers_that_were_sent(connect, name):
    client = connect()
    for place, id in ((f"/queue/Consumer.A.VirtualTopic.{name}", "A"), (f"/queue/Consumer.B.VirtualTopic.{name}", "B")):
        client.subscribe(place, id=id)
    client.subscribe(f"/topic/VirtualTopic.{name}", id="topic")
    client.send(
        f"/topic/VirtualTopic.{name}", "x", priority="7", expires="4000000000000", colour="red", correlation_id="c",
        reply_to="/queue/answers", type="order", persistent="true",
    )  # fmt: skip
    own = {"destination", "original-destination", "subscription"}
    copies = [{key: value for key, value in each.headers.items() if key not in own} for each in client.take(3)]
    assert copies[0] == copies[1] == copies[2]
    assert {"message-id", "timestamp", "priority", "expires", "colour", "correlation-id", "type"} <= copies[0].keys()


@pytest.mark.scenario("VT-38")
def test_a_section_of_ones_own_hides_the_built_in_one(connect, node, define, name):
    define(VirtualTopic(name="Own.>", prefix="Mine.*."))
    node.ask(lambda admin: admin.create(queue(f"Consumer.A.VirtualTopic.{name}")))
    connect().send(f"/topic/VirtualTopic.{name}", "x")
    assert node.bodies(f"Consumer.A.VirtualTopic.{name}") == []


@pytest.mark.scenario("VT-39", "CD-22")
def test_an_aborted_transaction_leaves_no_copies_and_no_forwards(connect, node, define, name):
    define(DEFAULT_VIRTUAL_TOPIC, CompositeDestination(queue(f"{name}.in"), (ForwardTarget(queue(f"{name}.out")),)))
    node.ask(lambda admin: admin.create(queue(f"Consumer.A.VirtualTopic.{name}")))
    node.ask(lambda admin: admin.create(queue(f"{name}.out")))
    client = connect()
    client.frame("BEGIN", transaction="t")
    for place in (f"/topic/VirtualTopic.{name}", f"/queue/{name}.in"):
        client.send(place, "x", transaction="t", persistent="true")
    client.frame("ABORT", transaction="t")
    assert node.bodies(f"Consumer.A.VirtualTopic.{name}") == node.bodies(f"{name}.out") == []


@pytest.mark.scenario("CD-14")
def test_a_consumer_queue_of_the_mirror_topic_records_a_queue_durably(connect, node, define, name):
    define(DEFAULT_VIRTUAL_TOPIC, MirroredQueue())
    recorder = f"Consumer.A.VirtualTopic.Mirror.{name}"
    node.ask(lambda admin: admin.create(queue(recorder)))
    publish(connect(), f"/queue/{name}", persistent="true")
    assert node.bodies(recorder) == node.bodies(name) == NUMBERS


@pytest.mark.scenario("CD-15")
def test_a_mirror_nobody_listens_to_keeps_nothing(connect, node, define, name):
    define(MirroredQueue(postfix=".mirror"))
    consumer, before = connect(), node.stored_payloads()
    consumer.subscribe(f"/queue/{name}")
    publish(consumer, f"/queue/{name}", persistent="true")
    assert consumer.bodies(SENT) == NUMBERS
    consumer.leave()
    assert node.stored_payloads() == before
    assert node.depth(name) == 0


@pytest.mark.scenario("CD-11")
def test_a_composite_with_slow_targets_gives_its_room_back(connect, node, define, name):
    targets, before = [f"{name}.{each}" for each in "abc"], node.stored_payloads()
    define(CompositeDestination(queue(f"{name}.in"), tuple(ForwardTarget(queue(each)) for each in targets)))
    publish(connect(), f"/queue/{name}.in", persistent="true")
    assert node.stored_payloads() == before + SENT
    for each in targets:
        consumer = connect()
        consumer.subscribe(f"/queue/{each}", ack="client", prefetch=1)
        for expected in NUMBERS:
            [message] = consumer.take()
            assert message.body == expected
            consumer.ack(message)
    assert node.stored_payloads() == before


@pytest.mark.scenario("CD-21", "X02", "X05")
def test_an_open_composite_queue_keeps_its_own_copy_beside_those_of_its_targets(connect, node, define, name):
    legs = (ForwardTarget(queue(f"{name}.a")), ForwardTarget(queue(f"{name}.b")))
    define(CompositeDestination(queue(f"{name}.in"), legs, forward_only=False))
    publish(connect(), f"/queue/{name}.in")
    assert [node.bodies(f"{name}.{each}") for each in ("a", "b", "in")] == [NUMBERS] * 3


@pytest.mark.scenario("CT-04")
def test_subscribers_of_elements_and_of_patterns_each_get_what_is_sent_to_a_list_once(connect, name):
    clients = [connect() for _ in range(3)]
    for client, place in zip(clients, (f"{name}.BAR", f"{name}.*", f"{name}.X.Y"), strict=True):
        client.subscribe(f"/topic/{place}")
    connect().send(f"/topic/{name}.BAR,/topic/{name}.X.Y", "x")
    assert [client.bodies() for client in clients] == [["x"]] * 3
    assert all(client.has_no_more() for client in clients)


@pytest.mark.scenario("AD-08", "AD-14")
def test_browsing_by_selector_leaves_nothing_in_memory(connect, node, name):
    publish(connect(), f"/queue/{name}", 100, colour="red")
    found = node.ask(lambda admin: admin.browse(queue(name), selector="colour = 'red'", limit=60))
    assert len(found.messages) == 60
    assert node.look(lambda: len(node.node.broker.queues[f"queue://{name}"].ready)) == 0


@pytest.mark.scenario("AD-11", "AD-16")
def test_connections_with_what_they_consume_are_listed_with_their_users(connect, node, name):
    client = connect(**{"client-id": f"id-{name}"})
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", "x")

    def listed(admin):
        return admin.nodes()

    for _ in range(200):
        connections = {each["client_id"]: each for node_ in node.ask(listed) for each in node_.connections}
        if connections.get(f"id-{name}", {}).get("sent"):
            break
        threading.Event().wait(0.05)
    found = connections[f"id-{name}"]
    assert found["subscriptions"] == [f"/queue/{name}"]
    assert (found["sent"], found["version"]) == (1, "1.2")


@pytest.mark.scenario("VT-25", "VT-26")
def test_a_consumer_queue_with_an_empty_topic_part_does_no_harm(connect, node, define, name):
    define(VirtualTopic())
    node.ask(lambda admin: admin.create(queue("Consumer.foo.")))
    client = connect()
    client.subscribe("/queue/Consumer.bar.")
    client.send(f"/topic/{name}", "x")
    client.send("/queue/Consumer.bar.", "direct")
    assert client.bodies() == ["direct"]
