"""Test the content of advisories, and when they are sent."""

import json
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from tests.protocol.running_node import RunningNode

ADVISORY = "/topic/ActiveMQ.Advisory."


@pytest.fixture
def listen(connect):
    """Makes clients that listen to advisory topics, named without their common prefix."""

    def make(topics: str, **headers):
        client = connect()
        client.subscribe(",".join(ADVISORY + each for each in topics.split(",")), **headers)
        return client

    return make


def said(frame) -> dict:
    """What an advisory says."""
    return json.loads(frame.body)


@pytest.mark.scenario("AV-01", "SC-12")
def test_consumers_that_come_and_go_are_counted(listen, connect, name):
    listener = listen(f"Consumer.Queue.{name}")
    first, second = connect(), connect()
    first.subscribe(f"/queue/{name}", selector="x = 1", prefetch=10, **{"activemq.priority": "3"})
    second.subscribe(f"/queue/{name}")
    first.leave()
    second.unsubscribe()
    come, again, gone, last = listener.take(4)
    assert [each.headers["consumerCount"] for each in (come, again, gone, last)] == ["1", "2", "1", "0"]
    assert {each.headers["destination"] for each in (come, again, gone, last)} == {f"{ADVISORY}Consumer.Queue.{name}"}
    info = said(come)["ConsumerInfo"]
    assert (info["selector"], info["prefetchSize"], info["priority"]) == ("convert_string_expressions:x = 1", 10, 3)
    assert info["destination"] == {"@class": "ActiveMQQueue", "string": name, "null": ""}
    assert said(gone)["RemoveInfo"]["objectId"] == {"@class": "ConsumerId", **info["consumerId"]}


@pytest.mark.scenario("AV-01", "SC-12")
def test_connections_are_told_of_without_passwords(listen, connect):
    listener = listen("Connection")
    listener.take()  # its own
    client = connect(**{"client-id": "advised", "login": "me", "passcode": "secret"})
    client.leave()
    come, gone = listener.take(2)
    info = said(come)["ConnectionInfo"]
    assert (info["clientId"], info["password"]) == ("advised", "")
    assert "secret" not in come.body
    assert said(gone)["RemoveInfo"]["objectId"] == {"@class": "ConnectionId", **info["connectionId"]}


@pytest.mark.scenario("AV-01")
def test_advisories_bear_the_headers_of_activemq(listen, connect, node):
    listener = listen("Connection", id="7")
    [frame] = listener.take()
    assert frame.headers == {
        "destination": f"{ADVISORY}Connection",
        "subscription": "7",
        "message-id": frame.headers["message-id"],
        "expires": "0",
        "priority": "0",
        "timestamp": "0",
        "type": "Advisory",
        "transformation": "jms-advisory-json",
        "originBrokerId": f"ID:{node.name}-{node.node.session}",
        "originBrokerName": node.name,
        "originBrokerURL": node.node.addresses[0],
    }


@pytest.mark.scenario("AV-01")
def test_destinations_that_come_and_go_are_told_of(listen, connect, name, node):
    queue, topic = Destination.queue(f"{name}.q"), Destination.topic(f"{name}.t")
    listener = listen("Queue,Topic", selector="timestamp = 0")
    before = len(listener.take(listener.messages.qsize()))
    client = connect()
    client.send(queue.stomp, "x")
    client.send(topic.stomp, "x")
    node.ask(lambda admin: admin.purge(queue))
    node.ask(lambda admin: admin.delete(queue))
    found = [said(each)["DestinationInfo"] for each in listener.take(3) if name in each.body]
    assert before >= 0
    assert [(each["destination"]["string"], each["operationType"]) for each in found] == [
        (queue.name, 0),
        (topic.name, 0),
        (queue.name, 1),
    ]


@pytest.mark.scenario("AV-01")
def test_a_new_listener_and_only_it_is_told_what_exists(listen, connect, name):
    early = listen(f"Consumer.Queue.{name},Consumer.Topic.{name}")
    consumer = connect()
    consumer.subscribe(f"/queue/{name}")
    consumer.subscribe(f"/topic/{name}", id="t")
    early.take(2)
    late = listen("Consumer.>")
    told = {each.headers["destination"] for each in late.take(2)}
    assert told == {f"{ADVISORY}Consumer.Queue.{name}", f"{ADVISORY}Consumer.Topic.{name}"}
    assert late.has_no_more()
    assert early.has_no_more()


@pytest.mark.scenario("AV-01")
def test_producers_are_told_of_when_they_first_send_and_when_they_leave(listen, connect, name):
    listener = listen(f"Producer.Queue.{name}")
    producer = connect()
    producer.send(f"/queue/{name}", "1")
    producer.send(f"/queue/{name}", "2")
    late = listen(f"Producer.Queue.{name}")
    assert said(late.take()[0])["ProducerInfo"]["destination"]["string"] == name
    producer.leave()
    come, gone = listener.take(2)
    assert [each.headers["producerCount"] for each in (come, gone)] == ["1", "0"]
    assert said(gone)["RemoveInfo"]["objectId"]["@class"] == "ProducerId"


@pytest.mark.scenario("AV-01")
def test_consumers_of_advisories_are_not_told_of(listen, connect):
    listener = listen("Consumer.>")
    other = listen("Queue")
    other.unsubscribe()
    assert listener.has_no_more()


def test_a_pattern_and_a_list_have_a_topic_each(listen, connect, name):
    listener = listen("Consumer.>")
    client = connect()
    client.subscribe(f"/queue/{name}.>", id="w", wait=False)
    client.subscribe(f"/queue/{name}.1,/queue/{name}.2", id="l")
    pattern, both = listener.take(2)
    assert pattern.headers["destination"] == f"{ADVISORY}Consumer.Queue.{name}.>"
    assert both.headers["destination"] == f"{ADVISORY}Consumer.Queue.{name}.1&sbquo;queue://{name}.2"
    assert both.headers["consumerCount"] == "4"  # both queues have both consumers


@pytest.mark.scenario("SC-12")
@pytest.mark.parametrize("asked", ["jms-advisory-xml", "jms-xml"])
def test_whoever_asks_for_xml_gets_it(listen, connect, name, asked):
    listener = listen(f"Consumer.Queue.{name}", transformation=asked)
    connect().subscribe(f"/queue/{name}")
    [frame] = listener.take()
    assert frame.headers["transformation"] == "jms-advisory-xml"
    assert frame.body.startswith("<ConsumerInfo>\n  <consumerId>\n    <connectionId>ID:")
    assert f'<destination class="ActiveMQQueue">\n    <string>{name}</string>\n    <null/>' in frame.body


def test_a_virtual_topic_never_fans_out_advisories_but_a_composite_forwards_them(node, connect):
    node.define(
        VirtualTopic(name=">", prefix="VA.*."),
        CompositeDestination(
            Destination.topic("ActiveMQ.Advisory.Connection"),
            (ForwardTarget(Destination.queue("Conns")),),
            forward_only=False,
        ),
    )
    try:
        reader = connect()
        reader.subscribe("/queue/VA.X.ActiveMQ.Advisory.Connection", id="never")
        connect(**{"client-id": "forwarded"}).leave()
        reader.subscribe("/queue/Conns")
        _, come, gone = reader.take(3)  # the first is the reader's own
        assert said(come)["ConnectionInfo"]["clientId"] == "forwarded"
        assert come.headers["original-destination"] == f"{ADVISORY}Connection"
        assert list(said(gone)) == ["RemoveInfo"]
    finally:
        node.define(VirtualTopic(name="VirtualTopic.>"))


@pytest.mark.scenario("AV-01", "DL-01")
def test_messages_that_fail_and_that_expire_are_told_of_without_their_body(listen, connect, name):
    queue = f"{name}.q"
    listener = listen(f"MessageDLQd.Queue.{queue},Expired.Queue.{queue}")
    client = connect()
    client.send(f"/queue/{queue}", "body", persistent="true", colour="red", correlation_id="c", reply_to="/queue/r")
    client.subscribe(f"/queue/{queue}", ack="client-individual")
    [message] = client.take()
    client.nack(message)
    [failed] = listener.take()
    assert failed.headers["destination"] == f"{ADVISORY}MessageDLQd.Queue.{queue}"
    assert not {"orignalMessageId", "orignalDestination"} & failed.headers.keys(), "as in ActiveMQ"
    told = said(failed)["ActiveMQBytesMessage"]  # stomp.py says how long it is
    assert told["messageId"] == {"textView": message.headers["message-id"]}
    assert told["destination"]["string"] == queue
    assert (told["persistent"], told["correlationId"], told["size"]) == (True, "c", 4)
    assert told["replyTo"] == {"@class": "ActiveMQQueue", "string": "r", "null": ""}
    assert told["properties"] == {"entry": [{"string": ["colour", "red"]}]}
    assert "content" not in told
    client.send(f"/queue/{queue}", "late", persistent="true", expires="1000")
    topics = [each.headers["destination"] for each in listener.take(2)]
    assert sorted(topics) == [f"{ADVISORY}Expired.Queue.{queue}", f"{ADVISORY}MessageDLQd.Queue.{queue}"]


@pytest.mark.scenario("AV-01")
def test_a_durable_subscriber_is_told_of_as_long_as_something_is_kept_for_it(listen, connect, name):
    listener = listen(f"Consumer.Topic.{name}")
    client = connect(**{"client-id": name})
    client.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "kept"}, selector="x = 1")
    client.unsubscribe()
    client.frame("UNSUBSCRIBE", id="s", **{"activemq.subscriptionName": "kept"})
    come, gone, removed = listener.take(3)
    info = said(come)["ConsumerInfo"]
    assert (info["subscriptionName"], info["selector"], info["prefetchSize"]) == (
        "kept",
        "convert_string_expressions:x = 1",
        100,
    )
    assert list(said(gone)) == ["RemoveInfo"]
    assert said(removed) == {"RemoveSubscriptionInfo": {"clientId": name, "subscriptionName": "kept"}}
    assert [each.headers["consumerCount"] for each in (come, gone, removed)] == ["1", "1", "0"]


@pytest.mark.scenario("AV-01")
def test_temporary_destinations_are_told_of_with_their_owner(listen, connect):
    listener = listen("TempQueue,TempTopic")
    owner = connect()
    owner.subscribe("/temp-queue/replies")
    owner.subscribe("/temp-topic/news", id="t")
    owner.leave()
    told = [said(each)["DestinationInfo"] for each in listener.take(4)]
    found = [(each["destination"]["@class"], each["operationType"]) for each in told]
    assert found[:2] == [("ActiveMQTempQueue", 0), ("ActiveMQTempTopic", 0)]
    assert sorted(found[2:]) == [("ActiveMQTempQueue", 1), ("ActiveMQTempTopic", 1)]
    [owner_id] = {each["connectionId"]["value"] for each in told}
    assert all(each["destination"]["string"].startswith(f"{owner_id}:") for each in told)


@pytest.mark.scenario("AV-01")
def test_the_topics_about_a_destination_go_with_it(listen, connect, name, node):
    topic = Destination.topic(f"ActiveMQ.Advisory.Consumer.Queue.{name}")
    listener = listen(f"Consumer.Queue.{name}")
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.leave()
    listener.take(2)
    listener.unsubscribe()
    assert node.look(lambda: node.node.broker.counters.find(topic)) is not None
    node.ask(lambda admin: admin.delete(Destination.queue(name)))
    assert node.look(lambda: node.node.broker.counters.find(topic)) is None


def test_without_listeners_nothing_is_published(connect, node, name):
    before = node.look(lambda: node.node.broker.advisory_publisher.count)
    client = connect()
    client.subscribe(f"/queue/{name}")
    client.send(f"/queue/{name}", "x")
    client.leave()
    assert node.look(lambda: node.node.broker.advisory_publisher.count) == before


def test_a_broker_without_advisories_tells_nothing(store, connect):
    running = RunningNode(replace(default_config("silent", 0), advisory_support=False), store.url)
    try:
        listener, other = connect(port=running.port), connect(port=running.port)
        listener.subscribe(f"{ADVISORY}>")
        other.send("/queue/a", "x")
        assert listener.has_no_more()
        for client in (listener, other):
            client.leave()
    finally:
        running.stop()


@pytest.mark.scenario("AV-01")
def test_bridges_that_start_and_stop_are_told_of_and_a_new_listener_hears_of_those_that_work(listen, node):
    listener = listen("NetworkBridge")
    advisories = node.node.broker.advisories

    def tell():
        advisories.bridge_started("key", "b", "tcp://127.0.0.1:1", by_duplex=True)
        node.node.broker.dispatcher.run_once()

    def tell_of_the_end():
        advisories.bridge_stopped("key")
        node.node.broker.dispatcher.run_once()

    node.look(tell)
    late = listen("NetworkBridge")
    node.look(tell_of_the_end)
    for client in (listener, late):
        come, gone = client.take(2)
        assert [each.headers["started"] for each in (come, gone)] == ["true", "false"]
        assert (come.headers["createdByDuplex"], come.headers["remoteIp"]) == ("true", "tcp://127.0.0.1:1")
        assert said(come)["BrokerInfo"]["brokerName"] == "b"
    assert listen("NetworkBridge").has_no_more()


def test_a_listener_is_told_that_this_broker_is_the_master(listen):
    [told] = listen("MasterBroker").take()
    assert said(told) == {"null": ""}


def test_clients_may_publish_there_too(listen, connect):
    listener = listen("Mine")
    connect().send(f"{ADVISORY}Mine", "hello")
    assert listener.bodies() == ["hello"]


def test_browsers_and_who_asks_for_the_past_are_told_of_as_such(listen, connect, name):
    listener, client = listen(f"Consumer.Queue.{name},Consumer.Topic.{name}"), connect()
    client.subscribe(f"/queue/{name}", id="1")
    client.subscribe(f"/queue/{name}", id="2", browser="true")
    client.subscribe(f"/topic/{name}", id="3", **{"activemq.retroactive": "true"})
    infos = [said(each)["ConsumerInfo"] for each in listener.take(3)]
    assert [(info["browser"], info["retroactive"]) for info in infos] == [(False, False), (True, False), (False, True)]
    client.unsubscribe("2")
    assert "RemoveInfo" in said(*listener.take())
