"""Test which consumer gets a message in a cluster, also when consumers, links and brokers fail."""

import pytest

from brokerapp.model.selector_prefixes import condition_of
from tests.waiting import wait_until


def native(name):
    return f"queue://{name}"


@pytest.mark.scenario("D04")
def test_consumers_of_all_brokers_share_a_queue_and_each_message_is_consumed_once(cluster, client_at, name):
    consumers = {each: client_at(each) for each in "WXY"}
    for each in consumers.values():
        each.subscribe(f"/queue/{name}", ack="client-individual", prefetch=1)
    for each in "XY":
        cluster.serves("W", each, native(name))
    producer, seen = client_at("W"), []
    for number in range(30):
        producer.send(f"/queue/{name}", str(number), persistent="true")
    for _ in range(10):  # with a prefetch of one each holds one at a time
        held = {home: each.take()[0] for home, each in consumers.items()}
        seen += [(home, int(message.body)) for home, message in held.items()]
        for home, message in held.items():
            consumers[home].ack(message)
    assert sorted(number for _, number in seen) == list(range(30))
    for home in consumers:
        own = [number for at_home, number in seen if at_home == home]
        assert own == sorted(own)
    wait_until(lambda: cluster.bodies("W", native(name)) == [], "all are settled")


@pytest.mark.scenario("D06")
def test_what_a_consumer_of_another_broker_holds_is_counted_once_and_shown_at_both(cluster, client_at, name):
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}", ack="client-individual", prefetch=3)
    cluster.serves("W", "X", native(name))
    for number in range(5):
        client_at("W").send(f"/queue/{name}", str(number), persistent="true")
    held = consumer.take(3)
    wait_until(lambda: cluster["W"].has(native(name)) and cluster["X"].has(native(name)), "both tell of it")

    def held_at_x():
        return next(each.waiting for each in cluster["X"].status().members if each.name == "W")

    wait_until(lambda: (cluster["W"].stats(native(name)).InFlightCount, held_at_x()) == (3, 3), "both count three")
    assert cluster["W"].stats(native(name)).QueueSize == 5
    at_x = cluster["X"].stats(native(name))
    assert (at_x.QueueSize, at_x.EnqueueCount) == (0, 0), "its consumer's broker stores none of them"
    for each in held:
        consumer.ack(each)
    for each in consumer.take(2):
        consumer.ack(each)
    wait_until(lambda: (cluster["W"].stats(native(name)).QueueSize, held_at_x()) == (0, 0), "all are acknowledged")


@pytest.mark.scenario("D12")
def test_a_slow_consumer_of_another_broker_holds_no_more_than_its_prefetch(cluster, client_at, name):
    slow, fast = client_at("X"), client_at("Y")
    slow.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    fast.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    for each in "XY":
        cluster.serves("W", each, native(name))
    producer = client_at("W")
    for number in range(10):
        producer.send(f"/queue/{name}", str(number), persistent="true")
    held, done = slow.take(2), []
    for _ in range(8):
        [message] = fast.take()
        done.append(message.body)
        fast.ack(message)
    assert sorted(done + [each.body for each in held]) == [str(number) for number in range(10)]
    assert slow.has_no_more()


@pytest.mark.scenario("Q10")
def test_the_limit_of_a_queue_holds_at_each_broker_for_itself(cluster, client_at, name):
    queue, sent = f"bounded.{name}", {}
    for each in "XY":
        producer, sent[each] = client_at(each), 0
        while producer.errors.empty():
            producer.send(f"/queue/{queue}", "x" * 500, persistent="true")
            sent[each] += 1
            assert sent[each] < 10
        assert f"queue://{queue} is full" in producer.error().body
        sent[each] -= 1
    assert sent["X"] == sent["Y"] >= 2, "what is stored at X takes no space at Y"
    consumer = client_at("W")
    consumer.subscribe(f"/queue/{queue}")
    assert len(consumer.take(sum(sent.values()))) == sum(sent.values())


@pytest.mark.scenario("T16", "D03")
def test_a_message_goes_to_the_consumer_whose_selector_takes_it_or_stays(cluster, client_at, name):
    for_a, for_b, producer = client_at("X"), client_at("Y"), client_at("W")
    for_a.subscribe(f"/queue/{name}", selector="kind = 'a'")
    for_b.subscribe(f"/queue/{name}", selector="kind = 'b'")
    taken = {each: cluster.taken(each, "W") for each in "XY"}
    for kind in "abc":
        producer.send(f"/queue/{name}", kind, persistent="true", kind=kind)
    assert (for_a.bodies(), for_b.bodies()) == (["a"], ["b"])
    wait_until(lambda: cluster.bodies("W", native(name)) == ["c"], "what nobody wants stays")
    assert {each: cluster.taken(each, "W") - before for each, before in taken.items()} == {"X": 1, "Y": 1}


def test_a_message_comes_with_its_id_headers_and_body(cluster, client_at, name):
    consumer, body = client_at("X"), b"\x00\xffbytes"
    consumer.subscribe(f"/queue/{name}", ack="client-individual")
    client_at("Y").send(
        f"/queue/{name}", body, persistent="true", priority="7", colour="a:b\\c", correlation_id="é", JMSXGroupID="g"
    )
    [message] = consumer.take()
    headers = message.headers
    assert headers["destination"] == f"/queue/{name}"
    assert (headers["priority"], headers["colour"], headers["correlation-id"]) == ("7", "a:b\\c", "é")
    assert (headers["persistent"], headers["JMSXGroupID"], "redelivered" in headers) == ("true", "g", False)
    assert headers["message-id"].startswith("ID:Y-")
    assert headers["content-length"] == str(len(body))
    assert not [each for each in headers if each.startswith("sluice")]
    consumer.ack(message)


def test_what_a_consumer_leaves_behind_is_given_to_another_one_flagged(cluster, client_at, name):
    first, second = client_at("X"), client_at("Y")
    first.subscribe(f"/queue/{name}", ack="client-individual")
    cluster.serves("W", "X", native(name))
    client_at("W").send(f"/queue/{name}", "again", persistent="true")
    [message] = first.take()
    assert "redelivered" not in message.headers
    second.subscribe(f"/queue/{name}", ack="client-individual")
    first.break_off()
    [message] = second.take()
    assert (message.body, message.headers["redelivered"]) == ("again", "true")
    second.ack(message)
    wait_until(lambda: cluster.bodies("W", native(name)) == [], "it is settled")


def test_what_is_rejected_is_a_dead_letter_of_its_home_broker(cluster, client_at, name):
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}", ack="client-individual")
    client_at("W").send(f"/queue/{name}", "bad", persistent="true")
    [message] = consumer.take()
    consumer.nack(message)
    wait_until(lambda: cluster["W"].stored("queue://ActiveMQ.DLQ"), "the dead-letter queue")
    wait_until(lambda: "bad" in cluster.bodies("W", "queue://ActiveMQ.DLQ"), "the dead letter")
    assert cluster["X"].stored("queue://ActiveMQ.DLQ") is None


@pytest.mark.parametrize("end", ["COMMIT", "ABORT"])
def test_acks_in_a_transaction_count_at_the_home_broker_when_it_commits(cluster, client_at, name, end):
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}", ack="client-individual")
    client_at("W").send(f"/queue/{name}", "one", persistent="true")
    [message] = consumer.take()
    consumer.frame("BEGIN", transaction="t")
    consumer.ack(message, transaction="t")
    consumer.frame(end, transaction="t")
    if end == "COMMIT":
        wait_until(lambda: cluster.bodies("W", native(name)) == [], "it is settled")
    else:
        assert cluster.bodies("W", native(name)) == ["one"]
        consumer.ack(message)
        wait_until(lambda: cluster.bodies("W", native(name)) == [], "it is settled then")


def test_a_consumer_of_a_pattern_gets_what_matches_at_all_brokers(cluster, client_at, name):
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}.>")
    for home in "WXY":
        client_at(home).send(f"/queue/{name}.{home}", home, persistent="true")
    assert sorted(consumer.bodies(3)) == ["W", "X", "Y"]


def test_overlapping_subscribers_of_topics_get_a_message_once_each(cluster, client_at, name):
    narrow, wide = client_at("X"), client_at("X")
    narrow.subscribe(f"/topic/{name}.a")
    wide.subscribe(f"/topic/{name}.>")
    for each in (f"{name}.a", f"{name}.>"):
        cluster.serves("Y", "X", f"topic://{each}")
    publisher = client_at("Y")
    for number in range(3):
        publisher.send(f"/topic/{name}.a", str(number))
    for each in (narrow, wide):
        assert each.bodies(3) == ["0", "1", "2"]
        assert each.has_no_more()


def test_a_queue_behind_a_virtual_topic_gets_one_copy_wherever_it_is_consumed(cluster, client_at, name):
    queue = f"Consumer.a.VirtualTopic.{name}"
    consumer, publisher = client_at("X"), client_at("Y")
    consumer.subscribe(f"/queue/{queue}")
    cluster.serves("Y", "X", native(queue))
    for number in range(3):
        publisher.send(f"/topic/VirtualTopic.{name}", str(number), persistent="true")
    assert consumer.bodies(3) == ["0", "1", "2"]
    assert consumer.has_no_more()


# -- durable subscriptions


def durable(client_at, home, name, **more):
    """The client of a durable subscription, which consumes it."""
    client = client_at(home, **{"client-id": name})
    client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "all", **more})
    return client


@pytest.mark.scenario("D13")
def test_a_durable_subscription_gets_what_was_published_anywhere_wherever_its_client_returns(cluster, client_at, name):
    durable(client_at, "X", name).leave()
    log = f"subscription://{name}:all"
    wait_until(lambda: all(log in cluster.logs(each) for each in "WXY"), "the subscription everywhere")
    for home in "WY":
        client_at(home).send(f"/topic/{name}", home, persistent="true")
    client = durable(client_at, "Y", name)
    assert sorted(client.bodies(2)) == ["W", "Y"]
    client_at("X").send(f"/topic/{name}", "now", persistent="true")
    assert client.bodies() == ["now"]
    assert client.has_no_more()


@pytest.mark.scenario("D14", "D16")
def test_a_durable_subscription_has_one_consumer_in_the_cluster_and_ends_everywhere(cluster, client_at, name):
    client = durable(client_at, "X", name)
    cluster.serves("Y", "X", f"topic://{name}")
    second = client_at("Y", **{"client-id": name})
    second.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "all"})
    assert "has a consumer already" in second.error().headers["message"]
    client.unsubscribe()
    cluster.serves_no_more("Y", "X", f"topic://{name}")
    second.frame("UNSUBSCRIBE", id="-", **{"activemq.subscriptionName": "all"})
    log = f"subscription://{name}:all"
    wait_until(lambda: not any(log in cluster.logs(each) for each in "WXY"), "nothing of it is left")


@pytest.mark.scenario("D15")
def test_a_durable_subscription_that_wants_something_else_begins_anew_everywhere(cluster, client_at, name):
    durable(client_at, "X", name).leave()
    client_at("W").send(f"/topic/{name}", "old", persistent="true")
    durable(client_at, "Y", name, selector="kind = 'new'").leave()
    selectors = lambda: {  # noqa: E731
        each: next((condition_of(about["selector"]) for log, about in cluster.attributes(each) if name in log), "")
        for each in "WXY"
    }
    wait_until(lambda: set(selectors().values()) == {"kind = 'new'"}, "the selector everywhere")
    client_at("W").send(f"/topic/{name}", "new", persistent="true", kind="new")
    client = durable(client_at, "X", name, selector="kind = 'new'")
    assert client.bodies() == ["new"]


# -- brokers that die


@pytest.mark.scenario("T17")
def test_when_the_consumers_broker_dies_what_it_held_goes_to_another_one(cluster, client_at, name):
    held, other = client_at("Y"), client_at("X")
    held.subscribe(f"/queue/{name}", ack="client-individual")
    cluster.serves("W", "Y", native(name))
    client_at("W").send(f"/queue/{name}", "kept", persistent="true")
    assert held.bodies() == ["kept"]
    other.subscribe(f"/queue/{name}", ack="client-individual")
    cluster["Y"].kill()
    [message] = other.take()
    assert (message.body, message.headers["redelivered"]) == ("kept", "true")
    other.ack(message)


@pytest.mark.scenario("D09")
def test_what_a_broker_keeps_that_dies_comes_when_it_is_back(cluster, client_at, name):
    consumer = client_at("X")
    producer = client_at("Y")
    producer.send(f"/queue/{name}", "waits", persistent="true")
    cluster["Y"].kill()
    consumer.subscribe(f"/queue/{name}", ack="client-individual")
    client_at("W").send(f"/queue/{name}", "meanwhile", persistent="true")
    [message] = consumer.take()
    assert message.body == "meanwhile"
    consumer.ack(message)
    cluster["Y"].start()
    assert consumer.bodies() == ["waits"]
