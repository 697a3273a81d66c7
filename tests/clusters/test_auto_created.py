"""Test where auto-created destinations of a cluster are created, and when they are deleted."""

import pytest

from brokerapp.errors import RequestRefused
from tests.waiting import wait_until


def native(name):
    return f"queue://{name}"


@pytest.mark.scenario("L13", "L14")
def test_a_producer_creates_it_on_its_home_broker_only(cluster, client_at, name):
    client_at("X").send(f"/queue/{name}", "kept", persistent="true")
    cluster["Y"].create(f"{name}.later")
    wait_until(
        lambda: all(each.stored(native(f"{name}.later")) for each in cluster), "something that happened after it"
    )
    assert cluster["X"].stored(native(name))
    assert cluster["W"].stored(native(name)) is cluster["Y"].stored(native(name)) is None


@pytest.mark.scenario("L16")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_with_a_consumer_it_and_the_consumer_are_known_everywhere(cluster, client_at, name, kind):
    client_at("X").subscribe(f"/{kind}/{name}")
    for other in "WY":
        cluster.serves(other, "X", f"{kind}://{name}")
    cluster.everywhere(f"{kind}://{name}")


@pytest.mark.scenario("L26")
def test_messages_of_two_home_brokers_meet_where_a_consumer_comes(cluster, client_at, name):
    for home in "WX":
        client_at(home).send(f"/queue/{name}", home, persistent="true")
    consumer = client_at("Y")
    consumer.subscribe(f"/queue/{name}")
    assert sorted(consumer.bodies(2)) == ["W", "X"]


@pytest.mark.scenario("L29")
def test_of_a_topic_that_nobody_subscribed_to_nothing_is_kept(cluster, client_at, name):
    publisher, subscriber = client_at("X"), client_at("Y")
    publisher.send(f"/topic/{name}", "before", persistent="true")
    subscriber.subscribe(f"/topic/{name}")
    cluster.serves("X", "Y", f"topic://{name}")
    publisher.send(f"/topic/{name}", "after", persistent="true")
    assert subscriber.bodies() == ["after"]


@pytest.mark.scenario("L24")
def test_an_administrator_deletes_it_everywhere_with_one_command(cluster, client_at, name):
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}")
    wait_until(lambda: all(each.stored(native(name)) for each in cluster), "it is everywhere")
    with pytest.raises(RequestRefused, match="has consumers"):
        cluster["Y"].delete(native(name))
    consumer.unsubscribe()
    for home in "WX":
        client_at(home).send(f"/queue/{name}", "goes with it", persistent="true")
    wait_until(lambda: cluster["Y"].ask(lambda admin: admin.cluster()), "an answer")
    cluster.serves_no_more("Y", "X", native(name))
    cluster["Y"].delete(native(name))
    wait_until(lambda: not any(each.stored(native(name)) for each in cluster), "it is nowhere")


@pytest.mark.scenario("L08", "L18", "L25")
def test_each_broker_removes_it_when_nobody_used_it_for_the_time(cluster, client_at, name):
    consumer, producer = client_at("X"), client_at("W")
    consumer.subscribe(f"/queue/{name}")
    wait_until(lambda: all(each.stored(native(name)) for each in cluster), "it is everywhere")
    cluster["X"].create(f"{name}.admin")
    producer.send(f"/queue/{name}", "first", persistent="true")
    assert consumer.bodies() == ["first"]
    consumer.unsubscribe()
    wait_until(lambda: not any(cluster[each].stored(native(name)) for each in "XY"), "gone where nobody uses it")
    assert cluster["W"].stored(native(name))  # its producer is connected still
    producer.leave()
    wait_until(lambda: not cluster["W"].stored(native(name)), "gone where its producer was")
    assert all(each.stored(native(f"{name}.admin")) for each in cluster)  # nobody used it either


@pytest.mark.scenario("L21")
def test_one_that_holds_a_message_stays_where_that_is_and_goes_elsewhere(cluster, client_at, name):
    consumer = client_at("X")
    consumer.subscribe(f"/queue/{name}")
    wait_until(lambda: all(each.stored(native(name)) for each in cluster), "it is everywhere")
    consumer.unsubscribe()
    cluster.serves_no_more("Y", "X", native(name))
    sender = client_at("Y")
    sender.send(f"/queue/{name}", "kept", persistent="true")
    sender.leave()
    wait_until(lambda: not any(cluster[each].stored(native(name)) for each in "XW"), "gone where it is empty")
    assert cluster.bodies("Y", native(name)) == ["kept"]


@pytest.mark.scenario("L22", "L23")
def test_a_broker_that_restarts_removes_it_when_it_is_empty(cluster, client_at, name):
    sender, both = client_at("Y"), ("empty", "volatile", "kept")
    for each in both:
        sender.send(f"/queue/{name}.{each}", each, persistent="false" if each == "volatile" else "true")
    consumer = client_at("Y")
    consumer.subscribe(f"/queue/{name}.empty")
    assert consumer.bodies() == ["empty"]
    consumer.subscribe(f"/queue/Consumer.a.VirtualTopic.{name}", id="subscribed")
    cluster["Y"].create(f"{name}.admin")
    cluster["Y"].restart()
    wait_until(lambda: not cluster["Y"].stored(native(f"{name}.volatile")), "without its messages it goes")
    assert cluster["Y"].stored(native(f"{name}.empty")) is None
    assert cluster.bodies("Y", native(f"{name}.kept")) == ["kept"]
    for stays in (f"{name}.admin", f"Consumer.a.VirtualTopic.{name}"):
        assert cluster["Y"].stored(native(stays)), stays


@pytest.mark.scenario("L17")
def test_what_only_operators_may_create_is_refused_to_clients_on_all_brokers(cluster, client_at, name):
    client = client_at("X")
    client.subscribe(f"/queue/closed.{name}")
    assert "allows only operators to create it" in client.error().headers["message"]
    cluster["Y"].create(f"closed.{name}")
    wait_until(lambda: cluster["X"].stored(native(f"closed.{name}")), "it is there")
    client.subscribe(f"/queue/closed.{name}")
    client_at("W").send(f"/queue/closed.{name}", "let in", persistent="true")
    assert client.bodies() == ["let in"]
