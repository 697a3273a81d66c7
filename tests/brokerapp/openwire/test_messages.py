"""Messages of OpenWire as the broker stores them, and back."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.core.publishing.message_factory import MessageIds, MessageTemplate
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.broker_headers import ORIGIN, SIGNATURE
from brokerapp.errors import OpenWireError, RequestRefused
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.message import Message, escape
from brokerapp.openwire.codec import Codec
from brokerapp.openwire.commands import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    LocalTransactionId,
    MessageCommand,
    MessageId,
    OpenWireDestination,
    ProducerId,
    XATransactionId,
)
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short, decode_map, encode_map
from brokerapp.openwire.message_content import encode_text_content
from brokerapp.openwire.session.consumers import OpenWireConsumer
from brokerapp.openwire.session.incoming_messages import MAX_PROPERTIES, MAX_PROPERTIES_BYTES, send_command
from brokerapp.openwire.session.outgoing_messages import MAX_KEPT_BYTES, message_command, message_dispatch

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = texts.filter(bool) | st.sampled_from(["priority", "type", "ack", "transformation", "sluice-property.x"])
properties = st.dictionaries(
    names,
    texts
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.integers(-(2**63), 2**63 - 1).map(Long)
    | st.integers(-(2**15), 2**15 - 1).map(Short)
    | st.integers(-128, 127).map(Byte)
    | st.floats(allow_nan=False)
    | st.floats(allow_nan=False, width=32).map(Float)
    | st.sampled_from("aé€").map(Char)
    | st.none()
    | st.binary(max_size=5)
    | st.lists(texts, max_size=2),
    max_size=5,
)
destinations = st.builds(
    OpenWireDestination, st.sampled_from(t.DESTINATIONS), st.sampled_from(["A", "B.C", "A,topic://B"])
)
transactions = st.builds(LocalTransactionId, st.integers(0, 99), st.just(ConnectionId("ID:c:1"))) | st.builds(
    XATransactionId, st.integers(0, 99), st.binary(min_size=1, max_size=4), st.binary(min_size=1, max_size=4)
)
QUEUE = OpenWireDestination(t.QUEUE, "q")


def sent(**fields):
    id = MessageId(None, ProducerId("ID:c:1", 1, 1), 7)
    return MessageCommand(
        **(
            {"destination": QUEUE, "message_id": id, "producer_id": id.producer_id, "priority": 4, "timestamp": 5}
            | fields
        )
    )


def stored(command: MessageCommand) -> Message:
    send = send_command(command, "", None)
    template = MessageTemplate(
        MessageIds("ID:"), persistent=send.persistent, priority=send.priority, expires=send.expires,
        timestamp=send.timestamp, is_bytes=send.is_bytes, now_us=0,
    )  # fmt: skip
    return Message.load(template.make(send.properties, send.body, send.message_id).stored())


@given(
    properties=properties,
    body=st.none() | texts,
    correlation_id=st.none() | texts,
    type=st.none() | texts,
    group_id=st.none() | texts,
    sequence=st.integers(-1, 5),
    reply_to=st.none() | destinations,
    transaction=st.none() | transactions,
)
def test_a_text_message_is_what_it_was(
    properties, body, correlation_id, type, group_id, sequence, reply_to, transaction
):
    command = sent(
        data_type=t.TEXT_MESSAGE, content=encode_text_content(body), correlation_id=correlation_id, type=type,
        group_id=group_id, group_sequence=0 if group_id is None else sequence, reply_to=reply_to,
        transaction_id=transaction, marshalled_properties=encode_map(properties) if properties else None,
    )  # fmt: skip
    back = message_command(stored(command))
    for name in ("data_type", "content", "correlation_id", "type", "group_id", "group_sequence", "reply_to"):
        assert getattr(back, name) == getattr(command, name), name
    assert back.original_transaction_id == transaction
    found = decode_map(back.marshalled_properties) if back.marshalled_properties else {}
    assert {name: (each.__class__, each) for name, each in found.items()} == {
        name: (each.__class__, each) for name, each in properties.items()
    }


@given(
    data_type=st.sampled_from([each for each in t.MESSAGES if each != t.BLOB_MESSAGE]),
    properties=properties,
    content=st.none() | texts,
    correlation_id=st.none() | texts,
    group_id=st.none() | texts,
    reply_to=st.none() | destinations,
    transaction=st.none() | transactions,
    user=st.none() | texts.filter(bool),
    large=st.booleans(),
)
def test_what_is_kept_of_a_message_is_what_is_made_of_its_stored_form(
    data_type, properties, content, correlation_id, group_id, reply_to, transaction, user, large
):
    body = None if content is None else content + "x" * MAX_KEPT_BYTES * large
    command = sent(
        data_type=data_type, marshalled_properties=encode_map(properties) if properties else None, group_sequence=3,
        content=encode_text_content(body) if data_type == t.TEXT_MESSAGE else body and body.encode(),
        correlation_id=correlation_id, group_id=group_id, reply_to=reply_to, transaction_id=transaction,
        priority=12, expiration=77, droppable=True, cluster=(BrokerId("b"),), broker_out_time=9, command_id=8,
        user_id="forged", response_required=True, target_consumer_id=ConsumerId("ID:c:1", 1, 1),
    )  # fmt: skip
    send = send_command(command, "" if user is None else f"JMSXUserID:{escape(user)}\n", "8", keep=True)
    template = MessageTemplate(
        MessageIds("ID:"), persistent=send.persistent, priority=send.priority, expires=send.expires,
        timestamp=send.timestamp, is_bytes=send.is_bytes, now_us=5_000,
    )  # fmt: skip
    made = template.make(send.properties, send.body, send.message_id)
    loaded = Message.load(made.stored())
    assert (send.converted is None) is bool({ORIGIN, SIGNATURE} & properties.keys())
    made.converted = send.converted
    consumer = OpenWireConsumer(ConsumerInfo(consumer_id=ConsumerId("ID:c:1", 1, 1)), QUEUE)
    for entry in ({"original_destination": "/queue/o"}, {"shown_destination": "/queue/s", "redelivery_count": 2}, {}):
        kept, converted = (
            message_dispatch(consumer, LogEntry("queue://q", 1, each, **entry), 9) for each in (made, loaded)
        )
        for each in (kept, converted):
            encoded = each.message.marshalled_properties
            each.message.marshalled_properties = decode_map(encoded) if encoded else {}
        assert kept == converted
        kept.message.marshalled_properties = encode_map(kept.message.marshalled_properties)


@pytest.mark.parametrize("data_type", [each for each in t.MESSAGES if each != t.TEXT_MESSAGE])
@given(content=st.none() | st.binary(max_size=20))
def test_other_bodies_are_kept_as_they_are(data_type, content):
    back = message_command(stored(sent(data_type=data_type, content=content)))
    assert (back.data_type, back.content) == (data_type, content)


def test_a_compressed_message_is_stored_as_it_was_before():
    content = encode_text_content("text" * 100)
    back = message_command(stored(sent(data_type=t.TEXT_MESSAGE, content=zlib.compress(content), compressed=True)))
    assert (back.content, back.compressed) == (content, False)


def test_a_body_that_inflates_to_too_much_is_refused():
    bomb = sent(data_type=t.MAP_MESSAGE, content=zlib.compress(bytes(10_000)), compressed=True)
    with pytest.raises(OpenWireError, match="exceeds the limit of 1000 bytes"):
        send_command(bomb, "", None, max_body=1000)


def test_more_properties_than_are_allowed_are_refused():
    many = sent(marshalled_properties=encode_map({f"p{number}": True for number in range(MAX_PROPERTIES + 1)}))
    with pytest.raises(RequestRefused, match="10001 properties: at most 10000 are allowed"):
        send_command(many, "", None)
    long = sent(marshalled_properties=encode_map({"p": bytes(MAX_PROPERTIES_BYTES)}))
    with pytest.raises(RequestRefused, match="at most 16777216 are allowed"):
        send_command(long, "", None)


def of_stomp(lines="", body=b"body"):
    return Message("ID:a:1", f"message-id:ID\\ca\\c1\nexpires:0\ntimestamp:5\n{lines}".encode(), body)


def properties_of(message):
    raw = message_command(message).marshalled_properties
    return decode_map(raw) if raw else {}


@pytest.mark.parametrize(
    ("lines", "data_type"),
    [
        ("", t.TEXT_MESSAGE),
        ("content-length:4\n", t.BYTES_MESSAGE),
        ("content-length:4\namq-msg-type:text\n", t.TEXT_MESSAGE),
        ("content-length:4\namq-msg-type:TEXT\n", t.TEXT_MESSAGE),
        ("transformation:jms-map-json\n", t.TEXT_MESSAGE),
        ("transformation:jms-object-json\n", t.TEXT_MESSAGE),
    ],
)
def test_a_message_of_stomp_is_a_text_or_bytes(lines, data_type):
    assert message_command(of_stomp(lines)).data_type == data_type


def test_a_map_in_json_of_stomp_is_a_map():
    found = message_command(of_stomp("transformation:jms-map-json\n", b'{"map":{"entry":{"string":"n","long":5}}}'))
    assert (found.data_type, decode_map(found.content)) == (t.MAP_MESSAGE, {"n": Long(5)})


def test_properties_of_stomp_are_texts_but_for_schedules():
    lines = "n:5\nAMQ_SCHEDULED_DELAY:7\nAMQ_SCHEDULED_REPEAT:1\ncontent-type:text/plain\n"
    assert {name: (type(each), each) for name, each in properties_of(of_stomp(lines)).items()} == {
        "n": (str, "5"),
        "AMQ_SCHEDULED_DELAY": (Long, 7),
        "AMQ_SCHEDULED_REPEAT": (int, 1),
        "content-type": (str, "text/plain"),
    }


@pytest.mark.parametrize(
    ("text", "destination"),
    [
        ("/topic/T", OpenWireDestination(t.TOPIC, "T")),
        ("/queue/A,/queue/B", OpenWireDestination(t.QUEUE, "A,queue://B")),
        ("/remote-temp-queue/ID:c:1:1", OpenWireDestination(t.TEMP_QUEUE, "ID:c:1:1")),
        ("/queue/", None),
        ("", None),
    ],
)
def test_a_reply_to_of_stomp_is_a_destination_where_it_names_one(text, destination):
    assert message_command(of_stomp(f"reply-to:{text.replace(':', chr(92) + 'c')}\n")).reply_to == destination


def test_another_reply_to_is_a_property():
    message = of_stomp("reply-to:desk\n")
    assert (message_command(message).reply_to, properties_of(message)) == (None, {"reply-to": "desk"})


DEAD = (
    "original-destination:/queue/A\ndlqDeliveryFailureCause:why\ndlqDeliveryCount:1\ndlqConsumer:c\ndlqTime:9\n"
    "dlqRoute:/queue/A\nsluice-wrote:dlqConsumer,dlqDeliveryCount,dlqDeliveryFailureCause,dlqRoute,dlqTime"
)


@pytest.mark.parametrize(("more", "expired"), [("\n", 0), (",originalExpiration\noriginalExpiration:77\n", 77)])
def test_a_dead_letter_says_what_activemq_says_of_it(more, expired):
    message = of_stomp(DEAD + more)
    assert message_command(message).original_destination == OpenWireDestination(t.QUEUE, "A")
    assert properties_of(message) == {"dlqDeliveryFailureCause": "why", "originalExpiration": Long(expired)}


@pytest.mark.parametrize("form", ["", JmsForm(JmsKind.TEXT).header_line()])
def test_the_operator_who_sent_a_message_is_a_property(form):
    assert properties_of(of_stomp(f"{form}sentBy:ada\nsluice-wrote:sentBy\n")) == {"sentBy": "ada"}


def test_what_a_client_says_of_failures_is_shown_as_it_said_it():
    assert properties_of(of_stomp("dlqTime:9\nsluice-wrote:\n")) == {"dlqTime": "9"}


def test_a_message_that_is_sent_on_keeps_where_it_was_sent_to_without_passing_for_a_dead_letter():
    command = sent(original_destination=QUEUE, marshalled_properties=encode_map({"dlqTime": "9"}))
    message = stored(command)
    assert message_command(message).original_destination == QUEUE
    assert properties_of(message) == {"dlqTime": "9"}


def dispatched(message, log, shown, number):
    """What a consumer is given, as it is encoded at once."""
    info = ConsumerInfo(consumer_id=ConsumerId("ID:c:1", 1, 1), destination=OpenWireDestination(t.TOPIC, "T"))
    consumer = OpenWireConsumer(info, info.destination)
    entry = LogEntry(log, 1, message, shown_destination=shown, redelivery_count=number)
    return Codec().decode(Codec().encode(message_dispatch(consumer, entry, number))[4:])


@pytest.mark.parametrize("log", ["queue://q", "subscription://s", "topic://T"])
def test_what_a_delivery_changes_is_not_seen_by_the_consumers_after_it(log):
    message = stored(sent(data_type=t.TEXT_MESSAGE, content=encode_text_content("text")))
    first, second = dispatched(message, log, "/topic/A", 1), dispatched(message, log, "/topic/B", 2)
    for number, (each, name) in enumerate([(first, "A"), (second, "B")], 1):
        assert each.destination.physical_name == each.message.destination.physical_name == name
        assert each.message.message_id.broker_sequence_id == each.redelivery_counter == number
    assert first.message.content == second.message.content
    assert message_command(message).redelivery_counter == 0


def test_headers_are_unescaped_wherever_the_escapes_are():
    assert of_stomp("n:5\n").headers["message-id"] == "ID:a:1"
    assert of_stomp("a\\cb:c\\nd\n").headers["a:b"] == "c\nd"
    assert Message("", b"", b"").headers == {}
