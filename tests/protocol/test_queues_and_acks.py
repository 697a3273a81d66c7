"""Test receipts, ack modes, prefetch, redelivery and dead letters, with stomp.py in all three versions."""

import pytest

from brokerapp.model.destination import Destination
from tests.waiting import wait_until

VERSIONS = ("1.0", "1.1", "1.2")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


def test_a_message_goes_from_a_producer_to_a_consumer(connect, version, name):
    consumer, producer = connect(version), connect(version)
    consumer.subscribe(f"/queue/{name}")
    producer.send(f"/queue/{name}", "hello", colour="red", persistent="true")
    [message] = consumer.take()
    assert message.body == "hello"
    assert message.headers["destination"] == f"/queue/{name}"
    assert (message.headers["colour"], message.headers["persistent"]) == ("red", "true")
    assert (message.headers["priority"], message.headers["expires"]) == ("4", "0")
    assert message.headers["subscription"] == "s"
    assert "redelivered" not in message.headers


def test_a_message_whose_receipt_came_is_stored(connect, node, version, name):
    connect(version).send(f"/queue/{name}", "kept")
    assert node.bodies(name) == ["kept"]


@pytest.mark.scenario("ST-12")
def test_auto_acked_messages_are_gone(connect, node, version, name):
    client = connect(version)
    client.subscribe(f"/queue/{name}")
    for body in "abc":
        client.send(f"/queue/{name}", body)
    assert client.bodies(3) == ["a", "b", "c"]
    client.round_trip()
    assert node.bodies(name) == []


@pytest.mark.scenario("S2-03", "S13")
def test_ack_mode_client_settles_all_up_to_the_message(connect, node, version, name):
    client = connect(version)
    client.subscribe(f"/queue/{name}", ack="client")
    for body in "abcd":
        client.send(f"/queue/{name}", body)
    messages = client.take(4)
    client.ack(messages[2])
    assert node.bodies(name) == ["d"]


@pytest.mark.scenario("S2-04")
def test_ack_mode_client_individual_settles_the_one_message(connect, node, version, name):
    client = connect(version)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    for body in "abcd":
        client.send(f"/queue/{name}", body)
    messages = client.take(4)
    client.ack(messages[2])
    client.ack(messages[0])
    assert node.bodies(name) == ["b", "d"]


@pytest.mark.scenario("ST-26")
def test_a_consumer_gets_no_more_than_its_prefetch_before_it_acks(connect, version, name):
    client = connect(version)
    for body in "abcde":
        client.send(f"/queue/{name}", body)
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    first, second = client.take(2)
    assert client.has_no_more()
    client.ack(second)
    assert client.bodies() == ["c"]
    assert client.has_no_more()
    client.ack(first)
    assert client.bodies() == ["d"]


def test_prefetch_zero_is_accepted_and_delivers_nothing(connect, name):
    client = connect()
    client.send(f"/queue/{name}", "a")
    client.subscribe(f"/queue/{name}", prefetch=0)
    assert client.has_no_more()


@pytest.mark.scenario("ST-15", "S18")
def test_a_broken_connection_gives_back_what_it_held_in_order_and_flagged(connect, version, name):
    first, second = connect(version), connect(version)
    first.subscribe(f"/queue/{name}", ack="client-individual", prefetch=3)
    for body in "abcde":
        second.send(f"/queue/{name}", body)
    first.ack(first.take(3)[1])
    assert first.bodies() == ["d"]
    first.break_off()
    second.subscribe(f"/queue/{name}")
    messages = second.take(4)
    assert [each.body for each in messages] == ["a", "c", "d", "e"]
    assert [each.headers.get("redelivered") for each in messages] == ["true", "true", "true", None]


def test_unsubscribe_gives_back_what_it_held(connect, version, name):
    client = connect(version)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.send(f"/queue/{name}", "a")
    client.take()
    client.unsubscribe()
    client.subscribe(f"/queue/{name}", id="again")
    [message] = client.take()
    assert (message.body, message.headers["redelivered"]) == ("a", "true")


def test_what_went_back_when_its_client_unsubscribed_may_be_acked_in_vain(connect, node, name):
    client = connect()
    client.send(f"/queue/{name}", "kept", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client-individual")
    [message] = client.take()
    client.unsubscribe()
    client.ack(message)
    client.nack(message)
    assert client.errors.empty()
    assert node.bodies(name) == ["kept"]


def test_competing_consumers_share_a_queue_in_turn(connect, name):
    producer, one, other = connect(), connect(), connect()
    for consumer in (one, other):
        consumer.subscribe(f"/queue/{name}")
    for number in range(10):
        producer.send(f"/queue/{name}", str(number))
    assert one.bodies(5) == ["0", "2", "4", "6", "8"]
    assert other.bodies(5) == ["1", "3", "5", "7", "9"]


@pytest.mark.scenario("SE-21", "ST-05")
def test_a_selector_takes_only_what_it_matches_and_blocks_nobody(connect, node, name):
    producer, red, rest = connect(), connect(), connect()
    red.subscribe(f"/queue/{name}", selector="colour = 'red'")
    for body, colour in (("a", "blue"), ("b", "red"), ("c", "blue"), ("d", "red")):
        producer.send(f"/queue/{name}", body, colour=colour)
    assert red.bodies(2) == ["b", "d"]
    assert node.bodies(name) == ["a", "c"]
    rest.subscribe(f"/queue/{name}")
    assert rest.bodies(2) == ["a", "c"]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.scenario("S1-12", "DL-01")
def test_nack_sends_a_persistent_message_to_the_dead_letters_with_its_cause(connect, node, version, name):
    client = connect(version)
    client.subscribe(f"/queue/{name}", ack="client-individual")
    client.send(f"/queue/{name}", "bad", persistent="true", colour="red")
    [message] = client.take()
    client.nack(message)
    assert node.bodies(name) == []
    dead = [each for each in node.browse("ActiveMQ.DLQ") if each.id == message.headers["message-id"]]
    assert [each.body for each in dead] == [b"bad"]
    assert dead[0].headers["colour"] == "red"
    assert dead[0].original_destination == f"/queue/{name}"
    assert "NACK" in dead[0].headers["dlqDeliveryFailureCause"]


def test_nack_drops_a_non_persistent_message(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client")
    for body in "ab":
        client.send(f"/queue/{name}", body)
    first, second = client.take(2)
    client.nack(second)  # only the one, also in mode client
    assert node.bodies(name) == ["a"]
    assert second.headers["message-id"] not in {each.id for each in node.browse("ActiveMQ.DLQ")}
    client.ack(first)
    assert node.depth(name) == 0


@pytest.mark.scenario("ST-32")
def test_an_expired_persistent_message_goes_to_the_dead_letters(connect, node, name):
    client = connect()
    client.send(f"/queue/{name}", "late", persistent="true", expires="1000")
    client.send(f"/queue/{name}", "fresh", persistent="true")
    client.subscribe(f"/queue/{name}", ack="client")
    assert client.bodies() == ["fresh"]
    client.round_trip()
    [dead] = [each for each in node.browse("ActiveMQ.DLQ") if each.original_destination == f"/queue/{name}"]
    assert (dead.body, dead.headers["expires"], dead.headers["originalExpiration"]) == (b"late", "0", "1000")


def test_the_numbers_of_a_queue_follow_what_happens(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    for body in "abc":
        client.send(f"/queue/{name}", body)
    client.ack(client.take(2)[0])
    client.take()
    numbers = node.numbers(Destination.queue(name))
    assert (numbers.QueueSize, numbers.InFlightCount, numbers.EnqueueCount, numbers.DequeueCount) == (2, 2, 3, 1)
    assert (numbers.DispatchCount, numbers.ConsumerCount, numbers.ProducerCount) == (3, 1, 1)
    assert (numbers.EnqueueBytes, numbers.DequeueBytes) == (3, 1)


def test_two_copies_of_one_message_on_one_subscription_can_both_be_acked(connect, node, version, name):
    """Before 1.2 an ACK names the message-id, which all copies share."""
    client = connect(version)
    topic = f"VirtualTopic.{name}"
    client.subscribe(f"/queue/Consumer.A.{topic}.>", ack="client-individual")  # feeds from both queues
    client.subscribe(f"/queue/Consumer.A.{topic}", id="maker")
    client.unsubscribe("maker")
    client.send(f"/topic/{topic}", "twice")
    one, other = client.take(2)
    assert one.headers["message-id"] == other.headers["message-id"]
    client.ack(one)
    client.ack(other)
    assert client.errors.empty()
    assert node.depth(f"Consumer.A.{topic}") == 0
    assert node.depth(f"Consumer.A.{topic}.>") == 0


def test_both_copies_of_one_message_come_back_from_a_broken_connection(connect, node, version, name):
    client, other = connect(version), connect(version)
    topic = f"VirtualTopic.{name}"
    client.subscribe(f"/queue/Consumer.A.{topic}.>", ack="client-individual")  # feeds from both queues
    other.subscribe(f"/queue/Consumer.A.{topic}", id="maker")
    other.unsubscribe("maker")
    other.send(f"/topic/{topic}", "twice")
    client.take(2)
    client.break_off()
    other.subscribe(f"/queue/Consumer.A.{topic}.>")
    assert [each.headers["redelivered"] for each in other.take(2)] == ["true", "true"]


# -- messages that need not be kept, among those that must be


@pytest.mark.parametrize("ack", ["auto", "client-individual"])
def test_persistent_and_other_messages_of_one_producer_arrive_in_the_order_sent(connect, node, name, ack):
    producer, consumer = connect(), connect()
    consumer.subscribe(f"/queue/{name}", ack=ack, prefetch=1000)
    for number in range(300):
        producer.send(f"/queue/{name}", str(number), wait=False, persistent="true" if number % 7 < 3 else "false")
        if number % 50 == 0:
            producer.round_trip()  # now and then the broker has nothing on its way
    messages = consumer.take(300)
    assert [each.body for each in messages] == [str(number) for number in range(300)]
    for message in messages if ack != "auto" else ():
        consumer.ack(message, wait=message is messages[-1])
    assert node.depth(name) == 0


def test_a_message_that_need_not_be_kept_comes_back_too_when_its_consumer_dies(connect, name):
    producer, first, second = connect(), connect(), connect()
    first.subscribe(f"/queue/{name}", ack="client")
    for number in range(6):
        producer.send(f"/queue/{name}", str(number), wait=False, persistent="true" if number % 2 else "false")
    assert first.bodies(6) == [str(number) for number in range(6)]
    first.break_off()
    second.subscribe(f"/queue/{name}", ack="client")
    messages = second.take(6)
    assert [each.body for each in messages] == [str(number) for number in range(6)]
    assert {each.headers["redelivered"] for each in messages} == {"true"}


def test_a_consumer_that_goes_leaves_messages_that_need_not_be_kept_to_the_next(connect, node, name):
    producer, first = connect(), connect()
    first.subscribe(f"/queue/{name}")
    producer.send(f"/queue/{name}", "a")
    assert first.bodies() == ["a"]
    first.unsubscribe()
    producer.send(f"/queue/{name}", "b")
    assert node.bodies(name) == ["b"]
    first.subscribe(f"/queue/{name}", id="again")
    assert first.bodies() == ["b"]


def test_what_is_consumed_leaves_nothing_in_the_store(connect, node, name):
    """Also when messages that expired, and were never stored, are given up in between."""
    client, other, virtual = connect(), connect(), f"VirtualTopic.{name}"
    before = node.stored_payloads()
    for consumer in "AB":
        client.subscribe(f"/queue/Consumer.{consumer}.{virtual}", id=consumer)
    client.subscribe(f"/queue/{name}", id="waiting")
    for number in range(50):
        client.send(f"/topic/{virtual}", str(number), wait=False)
        other.send(f"/queue/{name}", "late", wait=False, expires="1000")
        if number % 10 == 0:
            other.round_trip()
    client.take(100)
    other.round_trip()
    client.round_trip()
    assert client.messages.empty()
    wait_until(lambda: node.stored_payloads() == before, "nothing is left")
    assert node.numbers(Destination.queue(name)).ExpiredCount == 50
    assert node.depth(name) == 0
