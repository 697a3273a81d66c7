"""Test that consumers of OpenWire get the commands that advisories are about."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.core.advisories import documents
from brokerapp.engine.routing.advisory_subjects import REMOVED
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.message import Message
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import (
    BrokerId,
    BrokerInfo,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    DestinationInfo,
    MessageCommand,
    OpenWireDestination,
    ProducerId,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import Long, decode_map
from brokerapp.openwire.session.advisory_messages import advisory_of
from brokerapp.openwire.session.outgoing_messages import message_command

QUEUE = {"@class": "ActiveMQQueue", "string": "orders", "null": ""}
ORDERS = OpenWireDestination(t.QUEUE, "orders")
CONSUMER = {"connectionId": "ID:c:1", "sessionId": -1, "value": 7}


def advisory(document, **headers) -> Message:
    """A message as the broker publishes an advisory."""
    lines = {"message-id": "ID:b-advisory:1", "transformation": "jms-advisory-json", "type": "Advisory", **headers}
    head = "".join(f"{name}:{value}\n" for name, value in lines.items())
    return Message("ID:b-advisory:1", head.encode(), json.dumps(document).encode())


def read(command: MessageCommand) -> MessageCommand:
    """The message as the client decodes it."""
    return Codec().decode(Codec().encode(command)[4:])


@pytest.mark.parametrize(
    ("document", "command"),
    [
        (
            {"ConnectionInfo": {"connectionId": {"value": "ID:c:1"}, "clientId": "me", "manageable": True}},
            ConnectionInfo(connection_id=ConnectionId("ID:c:1"), client_id="me", manageable=True),
        ),
        (
            {"ConsumerInfo": {"consumerId": CONSUMER, "destination": QUEUE, "prefetchSize": 5, "selector": "a = 1"}},
            ConsumerInfo(
                consumer_id=ConsumerId("ID:c:1", -1, 7), destination=ORDERS, prefetch_size=5, selector="a = 1"
            ),
        ),
        (
            {"ConsumerInfo": {"brokerPath": {"BrokerId": [{"value": "a"}]}, "networkConsumerPath": {"ConsumerId": []}}},
            ConsumerInfo(broker_path=(BrokerId("a"),), network_consumer_path=()),
        ),
        (
            documents.destination_info(Destination(DestinationKind.TEMP_QUEUE, "ID:c:1:2"), REMOVED),
            DestinationInfo(
                connection_id=ConnectionId("ID:c:1"),
                destination=OpenWireDestination(t.TEMP_QUEUE, "ID:c:1:2"),
                operation_type=1,
            ),
        ),
        (documents.gone_by_id(CONSUMER), RemoveInfo(object_id=ConsumerId("ID:c:1", -1, 7))),
        (
            {"RemoveInfo": {"objectId": {"@class": "ProducerId", **CONSUMER}, "lastDeliveredSequenceId": 3}},
            RemoveInfo(object_id=ProducerId("ID:c:1", 7, -1), last_delivered_sequence_id=3),
        ),
        (documents.subscription_gone("me", "s"), RemoveSubscriptionInfo(client_id="me", subscription_name="s")),
        (
            documents.bridge_info("b", "tcp://b:1"),
            BrokerInfo(broker_id=BrokerId("b"), broker_url="tcp://b:1", broker_name="b"),
        ),
        (documents.NOTHING, None),
        (documents.all_told(3), None),
    ],
)
def test_the_command_has_the_fields_of_the_document(document, command):
    message = read(message_command(advisory(document)))
    assert message.data_type == t.MESSAGE
    assert message.content is None
    assert message.data_structure == command


def test_the_properties_of_an_advisory_have_types():
    message = message_command(
        advisory(documents.NOTHING, consumerCount=2, discardedCount=1, started="true", usageName="memory")
    )
    assert decode_map(message.marshalled_properties) == {
        "consumerCount": 2, "discardedCount": 1, "started": True, "usageName": "memory",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data_type", "content"),
    [
        (JmsKind.TEXT, t.TEXT_MESSAGE, b"\0\0\0\2hi"),
        (JmsKind.BYTES, t.BYTES_MESSAGE, b"hi"),
        (JmsKind.MAP, t.MAP_MESSAGE, b"hi"),
        (JmsKind.OBJECT, t.OBJECT_MESSAGE, b"hi"),
    ],
)
def test_an_advisory_about_a_message_holds_the_message(kind, data_type, content):
    form = JmsForm(kind, {"n": PropertyType.LONG, "wide": PropertyType.CHAR})
    head = (
        f"message-id:ID:c:1:1:1:5\ntype:t\ncorrelation-id:c\nn:5\nwide:x\ns:v\nreply-to:/queue/re\n{form.header_line()}"
    )
    about = Message("ID:c:1:1:1:5", head.encode(), b"hi", priority=7, persistent=True, expires=99)
    document = documents.message_document(about, Destination.queue("orders"), with_body=True)
    found = read(message_command(advisory(document))).data_structure
    assert isinstance(found, MessageCommand)
    assert (found.data_type, found.content, str(found.message_id)) == (data_type, content, "ID:c:1:1:1:5")
    assert (found.priority, found.persistent, found.expiration, found.type) == (7, True, 99, "t")
    assert (found.destination, found.reply_to) == (ORDERS, OpenWireDestination(t.QUEUE, "re"))
    assert decode_map(found.marshalled_properties) == {"n": Long(5), "wide": "x", "s": "v"}
    assert type(decode_map(found.marshalled_properties)["n"]) is Long


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        5,
        {"ConsumerInfo": 5},
        {"ConsumerInfo": {"consumerId": {}, "destination": "x"}},
        {"ConsumerInfo": {"prefetchSize": "many"}},
        {"ConsumerInfo": {"selector": "x" * 70_000}},
        {"RemoveInfo": {"objectId": {"@class": "BrokerId", "value": "x"}}},
        {"ActiveMQTextMessage": {"properties": {"entry": [{"string": "n", "byte": 1000}]}}},
        {"ActiveMQTextMessage": {"content": {"data": []}}},
    ],
)
def test_a_message_that_only_says_that_it_is_an_advisory_is_a_text(document):
    message = advisory(document)
    assert advisory_of(message) is None
    assert read(message_command(message)).data_type == t.TEXT_MESSAGE


@given(members=st.dictionaries(st.sampled_from(["prefetchSize", "priority", "browser", "clientId"]), st.integers()))
def test_numbers_of_any_size_can_be_encoded(members):
    found = read(message_command(advisory({"ConsumerInfo": members}))).data_structure
    assert isinstance(found, ConsumerInfo)


@pytest.mark.parametrize(
    ("document", "values"),
    [
        ({"map": ""}, {}),
        ({"map": {"entry": {"string": ["a", "b"]}}}, {"a": "b"}),
        (
            {
                "map": {
                    "entry": [{"string": "n", "long": 5}, {"string": "f", "float": 1.5}, {"string": "x", "null": ""}]
                }
            },
            {"n": 5, "f": 1.5, "x": None},
        ),
    ],
)
def test_a_map_in_json_is_a_map_message(document, values):
    head = b"message-id:m\ntransformation:jms-map-json\n"
    message = read(message_command(Message("m", head, json.dumps(document).encode())))
    assert message.data_type == t.MAP_MESSAGE
    assert decode_map(message.content) == values


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"map":{"entry":[5]}}', b'{"map":{"entry":{"string":["a"]}}}'])
def test_what_is_no_map_is_a_text(body):
    head = b"message-id:m\ntransformation:jms-map-json\n"
    assert message_command(Message("m", head, body)).data_type == t.TEXT_MESSAGE
