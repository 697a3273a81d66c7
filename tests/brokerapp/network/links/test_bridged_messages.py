"""Test what messages, consumers and paths are on both sides of a link over OpenWire."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.model.destination import Destination
from brokerapp.network.links.broker_link import BridgeSubscription, OutgoingMessage
from brokerapp.network.links.openwire_messages import (
    bridged_message,
    command_of,
    consumer_event,
    consumer_info,
)
from brokerapp.network.links.remote_consumers import (
    ConsumerStarted,
    ConsumerStopped,
    RemoteConsumer,
    SubscriptionRemoved,
)
from brokerapp.openwire.commands import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    OpenWireDestination,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from brokerapp.openwire.commands import data_types as t

MAX_BODY = 1_000_000
JMS = {
    "message-id": "ID:host-1-2:1:1:1:7", "expires": "99", "priority": "7", "timestamp": "5", "persistent": "true",
    "type": "order", "correlation-id": "c:1", "reply-to": "/queue/answers", "JMSXGroupID": "g", "JMSXGroupSeq": "2",
    "JMSXUserID": "ada", "redelivered": "true", "sluice-jms": "bytes n=i d=d none=n", "n": "5", "d": "0.1",
    "none": "null", "colour": "a:b\nc", "content-length": "3",
}  # fmt: skip


@pytest.fixture
def ids():
    found = BrokerIds()
    found.learn("ID:vm-1", "classic")
    return found


def crossed(headers, body, ids, destination="/queue/q", path=("here",)):
    """A message as it comes back from the broker it was sent to, at once."""
    command = command_of(OutgoingMessage({**headers, "destination": destination}, body, path), ids)
    return bridged_message(command, "s", "1", ids, MAX_BODY)


def test_a_message_of_a_jms_client_comes_back_as_it_was(ids):
    message = crossed(JMS, b"\0\1\2", ids)
    user = message.headers.pop("JMSXUserID", None)
    assert {**message.headers, "JMSXUserID": user} == JMS
    assert (message.id, message.body, message.destination, message.path) == (
        "ID:host-1-2:1:1:1:7", b"\0\1\2", "/queue/q", ("here",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "body", "kind"), [({}, "grüß".encode(), "text"), ({"content-length": "2"}, b"\xff\0", "bytes")]
)
def test_a_message_of_a_stomp_client_is_text_or_bytes_there(ids, headers, body, kind):
    message = crossed({"message-id": "ID:here-1:3", "colour": "red", **headers}, body, ids)
    assert message.headers["sluice-jms"] == kind
    assert (message.id, message.body, message.headers["colour"]) == ("ID:here-1:3", body, "red")


@given(text=st.text(), name=st.text(min_size=1), value=st.text())
def test_any_text_and_property_crosses(text, name, value):
    name = f"p.{name}"
    headers = {"message-id": "ID:here-1:3", "sluice-jms": "text", name: value}
    message = crossed(headers, text.encode(), BrokerIds())
    assert (message.body, message.headers[name]) == (text.encode(), value)


def test_what_delayed_a_message_and_the_path_that_it_took_over_stomp_are_no_properties(ids):
    headers = {"message-id": "ID:here-1:3", "AMQ_SCHEDULED_DELAY": "5", "sluice_path": ",far,"}
    message = crossed(headers, b"", ids)
    assert not {"AMQ_SCHEDULED_DELAY", "sluice_path"} & message.headers.keys()
    assert message.path == ("far", "here")


def test_a_subscription_says_whose_it_is_and_keeps_there_what_may_not_cross(ids):
    wanted = BridgeSubscription(
        "in:1", Destination.queue("q"), "here", 2, ("here", "far"), 10, -5, "a = 1", frozenset({"c:1:2", "odd"})
    )
    id = ConsumerId("bridge", 1, 4)
    info = consumer_info(wanted, id, OpenWireDestination(t.QUEUE, "q"), ids)
    assert (info.consumer_id, info.prefetch_size, info.priority, info.selector) == (id, 10, -5, "a = 1")
    assert info.broker_path == (BrokerId("far"), BrokerId("here"))
    assert info.network_subscription
    assert info.network_consumer_path == (ConsumerId("c", 1, 2),)
    kept = info.additional_predicate
    assert (kept.network_broker_id, kept.message_ttl, kept.network_ttl) == (BrokerId("here"), 2, 2)


INFO = ConsumerInfo(
    consumer_id=ConsumerId("c", 1, 2), destination=OpenWireDestination(t.TOPIC, "a,queue://b"), priority=3
)
SEEN = RemoteConsumer("c:1:2", (Destination.topic("a"), Destination.queue("b")), None, 3, (), frozenset({"c:1:2"}))


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, {}),
        ({"selector": "x = 1"}, {"selector": "x = 1"}),
        ({"browser": True}, {"is_browser": True}),
        ({"client_id": "me", "subscription_name": "s"}, {"client_id": "me", "subscription_name": "s"}),
        ({"broker_path": (BrokerId("far"), BrokerId("ID:vm-1"))}, {"path": ("classic", "far")}),
        ({"network_consumer_path": (ConsumerId("d", 1, 1),)}, {"origins": frozenset({"d:1:1"})}),
        (
            {"selector": "sluice_path IS NULL OR (sluice_path NOT LIKE '%,there,%' ESCAPE '!')"},
            {"path": ("there",)},
        ),
    ],
)
def test_a_consumer_is_read_from_its_advisory(ids, changes, differs):
    event = consumer_event(replace(INFO, **changes), ids)
    assert event == ConsumerStarted(replace(SEEN, **differs))


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (RemoveInfo(object_id=ConsumerId("c", 1, 2)), ConsumerStopped("c:1:2")),
        (RemoveInfo(object_id=ConnectionId("c")), None),
        (RemoveSubscriptionInfo(client_id="me", subscription_name="s"), SubscriptionRemoved("me", "s")),
        (DestinationInfo(), None),
        (None, None),
    ],
)
def test_the_end_of_a_consumer_is_read_from_its_advisory(ids, command, event):
    assert consumer_event(command, ids) == event
