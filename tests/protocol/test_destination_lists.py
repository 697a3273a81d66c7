"""Test lists of destinations in SEND and SUBSCRIBE, and unusual but valid names."""

import pytest

from brokerapp.config import default_config
from brokerapp.model.destination import Destination
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, named


@pytest.mark.scenario("CT-01", "CT-05", "SC-01")
@pytest.mark.parametrize(
    "text", ["/queue/{0}.1,/queue/{0}.2,/topic/{0}.3", "{0}.1,{0}.2,topic://{0}.3", "/topic/{0}.3,/queue/{0}.1,{0}.2"]
)
def test_each_of_a_list_gets_a_copy_that_names_the_list(connect, name, text):
    client, producer = connect(), connect()
    for number, kind in ((1, "queue"), (2, "queue"), (3, "topic")):
        client.subscribe(f"/{kind}/{name}.{number}", id=str(number))
    producer.send(text.format(name), "m", persistent="true")
    messages = {each.headers["subscription"]: each.headers for each in client.take(3)}
    assert sorted(messages) == ["1", "2", "3"]
    assert messages["3"]["destination"] == f"/topic/{name}.3"
    first, *others = Destination.parse_list(text.format(name))
    sent_to = ",".join([first.stomp, *map(str, others)])
    assert {each["original-destination"] for each in messages.values()} == {sent_to}
    assert client.has_no_more()


@pytest.mark.scenario("CT-02")
def test_one_that_is_named_twice_gets_one_copy(connect, node, name):
    client = connect()
    client.send(f"/queue/{name},{name}", "m", persistent="true")
    assert node.bodies(name) == ["m"]
    client.subscribe(f"/queue/{name}")
    assert client.take()[0].headers["original-destination"] == f"/queue/{name},queue://{name}"


@pytest.mark.scenario("CT-03", "SC-01")
def test_one_subscription_consumes_from_a_list_with_wildcards(connect, name):
    client, producer = connect(), connect()
    client.subscribe(f"/queue/{name}.BAR,{name}.X.Y,/queue/{name}.BAZ.>")
    for each in ("BAR", "X.Y", "BAZ.a.b"):
        producer.send(f"/queue/{name}.{each}", each)
    producer.send(f"/queue/{name}.other", "other")
    assert sorted(named(client.take(3))) == ["BAR", "BAZ.a.b", "X.Y"]
    assert client.has_no_more()


@pytest.mark.scenario("CT-04")
def test_subscribers_of_elements_of_a_list_get_theirs_once(connect, name):
    exact, wild, other, producer = connect(), connect(), connect(), connect()
    exact.subscribe(f"/topic/{name}.BAR")
    wild.subscribe(f"/topic/{name}.*")
    other.subscribe(f"/topic/{name}.X.Y")
    producer.send(f"/topic/{name}.BAR,/topic/{name}.X.Y", "m")
    for client, destination in ((exact, "BAR"), (wild, "BAR"), (other, "X.Y")):
        assert [each.headers["destination"] for each in client.take()] == [f"/topic/{name}.{destination}"]
        assert client.has_no_more()


def test_an_element_that_is_refused_leaves_nothing_behind(connect, node, name):
    client = connect()
    client.send(f"/queue/{name},/remote-temp-queue/ID:nobody", "m", persistent="true", wait=False)
    assert "does not exist" in client.error().headers["message"]
    assert node.depth(name) == 0


@pytest.mark.scenario("VT-25", "VT-26")
def test_a_consumer_queue_whose_topic_has_no_name_is_no_obstacle_to_a_restart(store):
    config = default_config("odd-names", 0)
    names = ("Consumer.foo.", "Consumer.bar.")
    first = RunningNode(config, store.url)
    first.ask(lambda admin: admin.create(Destination.queue(names[0])))
    client = StompClient(first.port)
    client.subscribe(f"/queue/{names[1]}")
    client.leave()
    first.stop()
    again = RunningNode(config, store.url)
    try:
        client = StompClient(again.port)
        for each in names:
            client.send(f"/queue/{each}", each, persistent="true")
            assert again.bodies(each) == [each]
    finally:
        again.stop()
