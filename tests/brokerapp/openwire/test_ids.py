"""Test the text forms of ids, which are those of Java, and when two are equal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands import (
    ConnectionId,
    ConsumerId,
    LocalTransactionId,
    MessageId,
    OpenWireDestination,
    ProducerId,
    SessionId,
    XATransactionId,
)
from brokerapp.openwire.commands import data_types as t

CONNECTION = "ID:host-1-2-0:1"
LONGS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ConnectionId(CONNECTION), CONNECTION),
        (SessionId(CONNECTION, 4), f"{CONNECTION}:4"),
        (ConsumerId(CONNECTION, 2, 3), f"{CONNECTION}:2:3"),
        (ProducerId(CONNECTION, value=3, session_id=2), f"{CONNECTION}:2:3"),
        (MessageId(None, ProducerId(CONNECTION, 3, 2), 9), f"{CONNECTION}:2:3:9"),
        (MessageId("ID:sluice-5f3a:17", ProducerId("x"), 9), "ID:sluice-5f3a:17"),
        (MessageId("amqp-7", ProducerId("x"), 9), "ID:amqp-7"),
        (LocalTransactionId(5, ConnectionId(CONNECTION)), f"TX:{CONNECTION}:5"),
        (XATransactionId(-7, b"\x01\xff", b"\x10\x03"), "XID:[-7,globalId=1ffffffff,branchId=103]"),
        (OpenWireDestination(t.TEMP_TOPIC, "a.b"), "temp-topic://a.b"),
    ],
)
def test_the_text_of_an_id_is_that_of_java(value, text):
    assert str(value) == text


@settings(max_examples=30)
@given(connection=st.text(min_size=1, max_size=20), first=LONGS, second=LONGS, third=LONGS)
def test_an_id_is_read_from_its_text(connection, first, second, third):
    producer = ProducerId(connection, first, second)
    assert ProducerId.parse(str(producer)) == producer
    consumer = ConsumerId(connection, first, second)
    assert ConsumerId.parse(str(consumer)) == consumer
    message = MessageId(None, producer, third)
    parsed = MessageId.parse(str(message))
    assert (parsed, parsed.text_view) == (message, None)
    assert ConnectionId.parse(connection) == ConnectionId(connection)


@given(text=st.text())
def test_any_text_is_a_message_id_with_that_text(text):
    parsed = MessageId.parse(text)
    assert str(parsed) in (text, f"ID:{text}")
    assert parsed.producer_id is not None


def test_the_ids_of_messages_of_this_broker_differ_also_by_producer_and_number():
    one, other = MessageId.parse("ID:sluice-5f3a:17"), MessageId.parse("ID:sluice-5f3a:18")
    assert str(one) == one.text_view == "ID:sluice-5f3a:17"
    assert (one.producer_id, one.producer_sequence_id) == (ProducerId("ID:sluice-5f3a"), 17)
    assert one != other


@pytest.mark.parametrize("text", ["", "a", "a:1", ":1:2", "a:1:x", "a:1:99999999999999999999", "a:01:2", "a:1:٣"])
def test_a_text_that_is_not_an_id_is_refused(text):
    with pytest.raises(OpenWireError, match="is not the id of a producer: expected CONNECTION:NUMBER:NUMBER"):
        ProducerId.parse(text)
    with pytest.raises(OpenWireError, match="is not the id of a consumer"):
        ConsumerId.parse(text)


def test_message_ids_are_equal_by_producer_and_number_alone():
    one = MessageId(None, ProducerId("a", 1, 2), 3, 4)
    same = MessageId("ID:a:2:1:3", ProducerId("a", 1, 2), 3, 5)
    assert one == same
    assert len({one, same, MessageId(None, ProducerId("a", 1, 2), 4)}) == 2
    assert one != "ID:a:2:1:3"


def test_ids_of_different_types_are_never_equal():
    assert len({ProducerId("a", 1, 2), ConsumerId("a", 1, 2), SessionId("a", 1), ConnectionId("a")}) == 4
