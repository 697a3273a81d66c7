"""Test advisories about messages, which policies enable."""

import base64
import json
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from tests.protocol.running_node import RunningNode

ADVISORY = "/topic/ActiveMQ.Advisory."
EVERYTHING = dict.fromkeys(
    (
        "advisory_for_consumed", "advisory_for_delivery", "advisory_for_dispatched", "send_advisory_if_no_consumers",
        "advisory_for_discarding_messages", "advisory_when_full", "advisory_for_fast_producers",
    ),
    True,
)  # fmt: skip
POLICIES = (
    PolicyEntry(Destination.queue("TOLD.>"), **EVERYTHING),
    PolicyEntry(Destination.topic("TOLD.>"), **EVERYTHING),
    PolicyEntry(Destination.queue("WHOLE.>"), advisory_for_consumed=True, include_body_for_advisory=True),
    PolicyEntry(Destination.queue("FULL.>"), store_limit=2000, send_fail_if_no_space=True, **EVERYTHING),
)


@pytest.fixture(scope="module")
def node(store):
    config = default_config("telling", 0)
    running = RunningNode(replace(config, definitions=replace(config.definitions, policies=POLICIES)), store.url)
    yield running
    running.stop()


@pytest.fixture
def listen(connect):
    """Makes clients that listen to advisory topics, named without their common prefix."""

    def make(*topics: str):
        client = connect()
        client.subscribe(",".join(ADVISORY + each for each in topics))
        return client

    return make


def said(frame) -> dict:
    """What an advisory says."""
    return json.loads(frame.body)


def story(frames) -> list[str]:
    """What is told of, in order."""
    return [each.headers["destination"].removeprefix(ADVISORY).partition(".")[0] for each in frames]


@pytest.mark.scenario("AV-01")
@pytest.mark.parametrize("ack", ["auto", "client-individual"])
@pytest.mark.parametrize("persistent", ["true", "false"])
def test_the_way_of_a_message_through_a_queue_is_told(listen, connect, name, ack, persistent):
    queue = f"TOLD.{name}"
    events = ("MessageDelivered", "MessageDispatched", "MessageConsumed")
    listener = listen(*(f"{event}.Queue.{queue}" for event in events))
    client = connect()
    client.subscribe(f"/queue/{queue}", ack=ack)
    for number in range(3):  # some of them alike in one read: told of one by one all the same
        client.send(f"/queue/{queue}", f"{number}", wait=False, persistent=persistent)
    messages = client.take(3)
    for message in messages if ack != "auto" else ():
        client.ack(message)
    told = listener.take(9)
    ids = [each.headers["message-id"] for each in messages]
    for event in events:
        assert [each.headers["orignalMessageId"] for each in told if event in each.headers["destination"]] == ids
    assert {each.headers["orignalDestination"] for each in told} == {f"queue://{queue}"}


@pytest.mark.scenario("AV-01")
def test_the_way_of_a_message_to_the_subscribers_of_a_topic_is_told(listen, connect, name):
    topic = f"TOLD.{name}"
    listener = listen(*(f"Message{event}.Topic.{topic}" for event in ("Delivered", "Dispatched", "Consumed")))
    first, second = connect(), connect()
    first.subscribe(f"/topic/{topic}")
    second.subscribe(f"/topic/{topic}", ack="client")
    first.send(f"/topic/{topic}", "x")
    second.ack(second.take()[0])
    told = story(listener.take(5))
    assert told[0] == "MessageDelivered"
    assert sorted(told[1:]) == ["MessageConsumed", "MessageConsumed", "MessageDispatched", "MessageDispatched"]


@pytest.mark.scenario("AV-01")
def test_the_way_of_a_message_through_a_durable_subscription_is_told_by_its_topic(listen, connect, name):
    topic = f"TOLD.{name}"
    listener = listen(*(f"Message{event}.Topic.{topic}" for event in ("Delivered", "Dispatched", "Consumed")))
    client = connect(**{"client-id": name})
    client.subscribe(f"/topic/{topic}", **{"activemq.subscriptionName": "kept"})
    client.send(f"/topic/{topic}", "x", persistent="true")
    assert client.bodies() == ["x"]
    assert sorted(story(listener.take(3))) == ["MessageConsumed", "MessageDelivered", "MessageDispatched"]


def test_the_body_is_told_where_the_policy_says_so(listen, connect, name):
    listener = listen(f"MessageConsumed.Queue.WHOLE.{name}")
    client = connect()
    client.subscribe(f"/queue/WHOLE.{name}")
    client.frame("SEND", destination=f"/queue/WHOLE.{name}", body="hello")  # without content-length: text
    client.send(f"/queue/WHOLE.{name}", b"hello")
    text, raw = (said(each) for each in listener.take(2))
    content = text["ActiveMQTextMessage"]["content"]
    assert base64.b64decode(content["data"][0]) == b"\0\0\0\5hello"
    assert (content["offset"], content["length"]) == (0, 9)
    assert base64.b64decode(raw["ActiveMQBytesMessage"]["content"]["data"][0]) == b"hello"


@pytest.mark.scenario("DL-04")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_what_is_not_persistent_and_finds_nobody_is_told_of_as_it_is(listen, connect, name, kind):
    place = f"TOLD.{name}.{kind}"
    listener = listen(f"NoConsumer.{kind.title()}.{place}")
    client = connect()
    client.send(f"/{kind}/{place}", "kept", persistent="true")
    client.send(f"/{kind}/{place}", "whole", colour="red")
    client.subscribe(f"/{kind}/{place}")
    client.send(f"/{kind}/{place}", "heard")
    [message] = listener.take()
    assert (message.body, message.headers["colour"]) == ("whole", "red")
    assert "transformation" not in message.headers
    assert listener.has_no_more()


@pytest.mark.scenario("AV-01")
def test_a_full_queue_and_who_filled_it_are_told_of(listen, connect, name):
    queue = f"FULL.{name}"
    listener = listen(f"FULL.Queue.{queue}", f"FastProducer.Queue.{queue}")
    client = connect()
    client.send(f"/queue/{queue}", "x" * 1500, persistent="true")
    client.send(f"/queue/{queue}", "x" * 1500, persistent="true")
    assert client.error().headers["code"] == "limit-exceeded"
    full, fast = listener.take(2)
    assert full.headers["usageName"] == "memory"
    producer = said(fast)["ProducerInfo"]["producerId"]
    assert fast.headers["producerId"] == f"{producer['connectionId']}:-1:1"


@pytest.mark.scenario("AV-01")
def test_what_a_slow_subscriber_misses_is_told_of(listen, connect, raw, name, monkeypatch):
    monkeypatch.setattr("brokerapp.engine.entries.eviction.MAX_PENDING", 2)
    topic = f"TOLD.{name}"
    listener = listen(f"MessageDiscarded.Topic.{topic}")
    slow, sender = connect(), connect()
    slow.subscribe(f"/topic/{topic}", ack="client", prefetch=1)
    for number in range(5):
        sender.send(f"/topic/{topic}", str(number))
    told = listener.take(2)
    assert [each.headers["discardedCount"] for each in told] == ["1", "2"]
    assert all(each.headers["consumerId"].endswith(":-1:1") for each in told)


def test_nobody_is_told_of_what_no_policy_asks_for(listen, connect, name):
    listener = listen(f"MessageDelivered.Queue.{name}", f"MessageConsumed.Queue.{name}", f"NoConsumer.Queue.{name}")
    client = connect()
    client.send(f"/queue/{name}", "x")
    client.subscribe(f"/queue/{name}")
    assert client.bodies() == ["x"]
    assert listener.has_no_more()


@pytest.mark.parametrize(("position", "expected"), [("7", 7), ("-5", -5), ("--5", 0), ("9" * 5000, 0), ("x", 0)])
def test_what_a_client_calls_its_position_in_a_group_is_told_if_it_is_a_number(
    listen, connect, name, position, expected
):
    listener, client = listen(f"MessageDelivered.Queue.TOLD.{name}"), connect()
    client.send(f"/queue/TOLD.{name}", "m", JMSXGroupID="g", **{"JMSXGroupSeq": position})
    assert client.errors.empty()
    assert f'"groupSequence":{expected},' in listener.take()[0].body.replace(": ", ":")
