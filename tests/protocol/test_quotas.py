"""Test that a client over its quota gets an ERROR that says so, and others continue."""

import pytest

from brokerapp.engine.clients import quotas
from brokerapp.model.destination import Destination
from tests.waiting import wait_until


@pytest.fixture
def broker(node):
    return node.node.broker


def test_one_subscription_too_many_is_refused_and_one_that_ended_makes_room(connect, broker, name, monkeypatch):
    monkeypatch.setattr(quotas, "MAX_SUBSCRIPTIONS", 2)
    client = connect()
    for number in range(3):
        client.subscribe(f"/queue/{name}.{number}", id=str(number))
    error = client.error()
    assert error.headers["code"] == "limit-exceeded"
    assert error.body == "a connection has at most 2 subscriptions"
    client.subscribe(f"/queue/{name}.another", id="1")  # in the place of the one of this id
    client.unsubscribe("0")
    client.subscribe(f"/queue/{name}.2", id="2")
    assert client.errors.empty()
    client.send(f"/queue/{name}.2", "heard")
    assert client.bodies() == ["heard"]


def test_wildcards_are_counted_too(connect, name, monkeypatch):
    monkeypatch.setattr(quotas, "MAX_PATTERNS", 1)
    client = connect()
    client.subscribe(f"/queue/{name}.>", id="1")
    client.subscribe(f"/topic/{name}.*", id="2")
    assert "1 destinations with wildcards" in client.error().body
    client.subscribe(f"/topic/{name}", id="3")
    assert client.errors.empty()


def test_the_subscriptions_of_a_client_that_left_count_no_more(connect, node, broker, name):
    before = node.look(lambda: broker.quotas.subscriptions)
    client = connect()
    for number in range(5):
        client.subscribe(f"/queue/{name}.{number}", id=str(number))
    assert node.look(lambda: broker.quotas.subscriptions) == before + 5
    client.break_off()
    wait_until(lambda: node.look(lambda: broker.quotas.subscriptions) == before, "they count no more")


def test_open_transactions_of_all_clients_share_one_memory(connect, node, broker, name, monkeypatch):
    monkeypatch.setattr(broker.quotas, "memory", 10_000)
    first, second = connect(), connect()
    for client in (first, second):
        client.frame("BEGIN", transaction="t")
        client.send(f"/queue/{name}", "x" * 6_000, transaction="t")
    error = second.error()
    assert error.headers["code"] == "limit-exceeded"
    assert "memoryUsage" in error.body
    first.frame("ABORT", transaction="t")
    second.send(f"/queue/{name}", "y" * 6_000, transaction="t")
    second.frame("COMMIT", transaction="t")
    assert second.errors.empty()
    assert node.bodies(name) == ["y" * 6_000]
    third = connect()
    third.frame("BEGIN", transaction="t")
    third.send(f"/queue/{name}", "x" * 6_000, transaction="t")
    third.break_off()
    wait_until(lambda: node.look(lambda: broker.quotas.transaction_bytes) == 0, "nothing is held any more")
    assert node.look(lambda: broker.quotas.transactions) == 0


def test_too_many_open_transactions_of_all_clients_are_refused(connect, node, broker, monkeypatch):
    monkeypatch.setattr(quotas, "MAX_ALL_TRANSACTIONS", 1)
    first, second = connect(), connect()
    first.frame("BEGIN", transaction="t")
    second.frame("BEGIN", transaction="t")
    assert "1 transactions are open" in second.error().body
    first.frame("COMMIT", transaction="t")
    second.frame("BEGIN", transaction="t")
    assert second.errors.empty()


def test_idle_topics_are_forgotten_when_there_are_too_many(connect, node, broker, name, monkeypatch):
    monkeypatch.setattr(broker.counters, "limit", 100)
    monkeypatch.setattr(broker.counters, "cleanup_threshold", 100)
    subscriber, sender = connect(), connect()
    subscriber.subscribe(f"/topic/{name}.heard")
    for number in range(500):
        sender.send(f"/topic/{name}.{number}", "", wait=number % 100 == 99)
    known = node.look(lambda: [str(each) for each in broker.counters.destinations()])
    assert len(known) < 200
    assert f"topic://{name}.heard" in known
    assert f"topic://{name}.499" in known
    assert f"topic://{name}.0" not in known
    sender.send(f"/topic/{name}.heard", "still served")
    assert subscriber.bodies() == ["still served"]


def test_a_client_that_sends_to_very_many_places_is_known_at_some(connect, node, broker, name, monkeypatch):
    monkeypatch.setattr("brokerapp.core.publishing.producers.MAX_PRODUCING_TO", 10)
    client = connect(**{"client-id": name})
    for number in range(50):
        client.send(f"/topic/{name}.{number}", "", wait=number == 49)

    def producing():
        [found] = [each for each in broker.clients.values() if each.client_id == name]
        return len(found.producing_to)

    assert node.look(producing) == 10
    counts = [
        node.look(lambda n=n: broker.counters.of(Destination.topic(f"{name}.{n}")).ProducerCount) for n in range(50)
    ]
    assert sum(counts) == 10
