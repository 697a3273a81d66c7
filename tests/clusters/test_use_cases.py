"""Test the three use cases of Open MQ's overview, step by step, on three linked brokers."""

import pytest

from tests.waiting import wait_until


@pytest.mark.scenario("T14", "T11")
def test_use_case_1_a_queue_with_replies(cluster, client_at, name):
    queue, native = f"/queue/{name}", f"queue://{name}"
    # 1. The administrator creates the queue; it is on all brokers before anybody uses it.
    cluster["W"].create(native)
    wait_until(lambda: all(each.stored(native) for each in cluster), "the queue everywhere")
    first, second = client_at("X"), client_at("Y")
    for consumer in (first, second):
        consumer.subscribe(queue, ack="client-individual")
    for home in "XY":
        cluster.serves("W", home, native)
    # 2. The producer uses the reply-to model; its temporary queue is on all brokers when it has a consumer.
    producer = client_at("W")
    producer.subscribe("/temp-queue/replies", id="replies")
    for other in "XY":
        wait_until(lambda other=other: cluster.lodgers(other, "W"), "the temporary queue on the others")
    producer.send(queue, "question", persistent="true", reply_to="/temp-queue/replies")
    # 3. The home broker keeps the message and gives it to one of the consumers, who replies.
    wait_until(lambda: first.messages.qsize() + second.messages.qsize() == 1, "one of them has it")
    holder, home = (first, "X") if first.messages.qsize() else (second, "Y")
    [message] = holder.take()
    assert (message.body, cluster.bodies("W", native)) == ("question", ["question"])
    assert cluster.bodies("X", native) == cluster.bodies("Y", native) == []
    cluster.serves(home, "W", message.headers["reply-to"])
    holder.send(message.headers["reply-to"], "answer")
    holder.ack(message)
    [reply] = producer.take()
    assert (reply.body, reply.headers["destination"]) == ("answer", "/temp-queue/replies")
    wait_until(lambda: cluster.bodies("W", native) == [], "it is settled where it was kept")
    # The temporary queue goes with its connection, on all brokers, and no ordinary one comes to be in its place.
    producer.leave()
    for other in "XY":
        wait_until(lambda other=other: not cluster.lodgers(other, "W"), "no temporary queue on the others")
    holder.send(message.headers["reply-to"], "too late")
    assert "does not exist" in holder.error().headers["message"]


@pytest.mark.scenario("T15")
def test_of_many_requests_each_is_answered_once_and_to_who_asked(cluster, client_at, name):
    answering, asking = {home: client_at(home) for home in "XY"}, [client_at("W"), client_at("W")]
    for each in answering.values():
        each.subscribe(f"/queue/{name}", prefetch=1)
    for home in answering:
        cluster.serves("W", home, f"queue://{name}")
    for each in asking:
        each.subscribe("/temp-queue/replies", id="replies")
    for number in range(100):
        for each in asking:
            each.send(f"/queue/{name}", str(number), wait=False, reply_to="/temp-queue/replies")

    def answer(client, count):
        for _ in range(count):
            [request] = client.take()
            client.send(request.headers["reply-to"], request.body, wait=False)
        return count

    waiting = 200
    while waiting:
        waiting -= sum(answer(each, each.messages.qsize()) for each in answering.values())
    for each in asking:
        assert sorted(map(int, each.bodies(100))) == list(range(100))
        assert each.has_no_more()


@pytest.mark.scenario("L15")
@pytest.mark.parametrize("where", ["X", "Y"], ids=["consumed at another broker", "consumed at the same broker"])
def test_use_case_2_a_queue_that_is_created_by_sending_to_it(cluster, client_at, name, where):
    queue, native = f"/queue/{name}", f"queue://{name}"
    # 1. and 2. The producer's home broker keeps the message and creates the queue, which is nowhere else.
    producer = client_at("Y")
    producer.send(queue, "first", persistent="true")
    assert (cluster["Y"].stored(native), cluster.bodies("Y", native)) == ({"kind": "queue"}, ["first"])
    assert cluster["W"].stored(native) is cluster["X"].stored(native) is None
    # 3. When one consumer creates it, it is replicated; the message is conveyed to the consumer.
    consumer = client_at(where)
    consumer.subscribe(queue, ack="client-individual")
    [message] = consumer.take()
    assert message.body == "first"
    wait_until(lambda: all(each.stored(native) for each in cluster), "the queue everywhere")
    consumer.ack(message)
    wait_until(lambda: cluster.bodies("Y", native) == [], "it is settled where it was kept")
    client_at("W").send(queue, "second", persistent="true")
    [message] = consumer.take()
    assert message.body == "second"
    consumer.ack(message)


@pytest.mark.scenario("D01", "D02", "D03")
@pytest.mark.parametrize("where", ["XW", "XX", "YY"])
def test_use_case_3_publishing_to_a_topic(cluster, client_at, name, where):
    topic, native = f"/topic/{name}", f"topic://{name}"
    # 1. The administrator creates the topic; it is on all brokers before anybody uses it.
    cluster["X"].create(native)
    wait_until(lambda: all(each.stored(native) for each in cluster), "the topic everywhere")
    # 2. and 3. The home broker routes what is published to all subscribers whose selectors take it.
    subscribers = [client_at(each) for each in where]
    for each in subscribers:
        each.subscribe(topic, selector="kind = 'wanted'")
    for home in set(where) - {"Y"}:
        cluster.serves("Y", home, native)
    taken = {each: cluster.taken(each, "Y") for each in set(where) - {"Y"}}
    publisher = client_at("Y")
    for kind in ("other", "wanted"):
        publisher.send(topic, kind, persistent="true", kind=kind)
    for each in subscribers:
        assert each.bodies() == ["wanted"]
        assert each.has_no_more()
    for home, before in taken.items():  # one transfer for all who subscribe there, and none for nobody
        assert cluster.taken(home, "Y") == before + 1
