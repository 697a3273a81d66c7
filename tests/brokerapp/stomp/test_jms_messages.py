"""Messages of JMS clients as STOMP clients get them."""

import pytest

from brokerapp.model.jms.form import JmsForm, JmsKind, has_jms_form
from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.message import Message
from brokerapp.openwire.marshalled_values import encode_map
from brokerapp.stomp.frames import Frame
from brokerapp.stomp.jms_messages import counted, plain_form, stomp_view
from brokerapp.stomp.session import StompSession

FIRST = "message-id:ID\\ca\\c1\npriority:4\n"


def message(kind, body=b"", lines="", types=None):
    return Message("ID:a:1", (FIRST + lines + JmsForm(kind, types or {}).header_line()).encode(), body)


def test_what_only_jms_clients_see_is_left_out():
    lines = "JMSXGroupID:g\nJMSXGroupSeq:0\nn:5\nsluice-jms-transaction:c\\c1\n"
    shown = stomp_view(message(JmsKind.TEXT, b"text", lines, {"n": PropertyType.INT}), None)
    assert (shown.head.decode(), shown.body) == (FIRST + "n:5\n", b"text")
    assert not has_jms_form(shown)


def test_bytes_have_a_length():
    shown = stomp_view(message(JmsKind.BYTES, b"\0\1", "content-length:2\n"), None)
    assert (shown.head.decode(), shown.body) == (FIRST + "content-length:2\n", b"\0\1")


@pytest.mark.parametrize("kind", [JmsKind.MAP, JmsKind.STREAM, JmsKind.OBJECT, JmsKind.PLAIN])
def test_other_bodies_are_empty(kind):
    shown = stomp_view(message(kind, b"\0\0\0\0"), None)
    assert (shown.head.decode(), shown.body) == (FIRST, b"")


def test_a_text_that_would_end_its_frame_has_a_length():
    assert stomp_view(message(JmsKind.TEXT, b"a\0b"), None).headers["content-length"] == "3"


@pytest.mark.parametrize(
    ("wanted", "named", "body"),
    [
        ("jms-map-json", "jms-map-json", b'{"map":{"entry":{"string":"n","int":5}}}'),
        ("jms-json", "jms-map-json", b'{"map":{"entry":{"string":"n","int":5}}}'),
        ("unknown", "unknown", b""),
    ],
)
def test_a_map_is_written_in_the_syntax_that_is_asked_for(wanted, named, body):
    shown = stomp_view(message(JmsKind.MAP, encode_map({"n": 5})), wanted)
    assert (shown.headers["transformation"], shown.body) == (named, body)


def test_an_object_is_never_read():
    shown = stomp_view(message(JmsKind.OBJECT, b"\xac\xed\0\5t\0\1a"), "jms-xml")
    assert (shown.headers["transformation"], shown.body) == ("jms-object-xml", b"")


def test_a_map_that_cannot_be_read_has_an_empty_body():
    assert stomp_view(message(JmsKind.MAP, b"\1"), "jms-json").body == b""


def test_properties_have_their_own_names_where_no_header_has_it():
    lines = "sluice-property.priority:high\nsluice-property.type:t\nsluice-property.ack:1\n"
    shown = stomp_view(message(JmsKind.TEXT, b"", lines), None)
    assert shown.head.decode() == FIRST + "type:t\n"


def test_properties_that_are_maps_and_lists_are_written_as_java_writes_them():
    value = encode_map({"": {"k": [1, True, None]}}).hex()
    shown = stomp_view(message(JmsKind.TEXT, b"", f"m:{value}\n", {"m": PropertyType.OTHER}), None)
    assert shown.headers["m"] == "{k=[1, true, null]}"


def test_a_bridge_gets_what_is_stored_with_the_length_of_the_body():
    stored = message(JmsKind.MAP, b"\0\0\0\0", "n:5\n", {"n": PropertyType.INT})
    assert counted(stored).head == stored.head + b"content-length:4\n"
    assert counted(counted(stored)).head == counted(stored).head


LINES = "n:5\nsluice-property.priority:high\nsluice-jms-transaction:c\\c1\n"


@pytest.mark.parametrize("kind", list(JmsKind))
@pytest.mark.parametrize("is_bridge", [True, False])
def test_a_message_crosses_a_bridge_as_it_was_and_nobody_else_can_send_such_a_one(kind, is_bridge):
    length = "content-length:3\n" if kind is JmsKind.BYTES else ""
    stored = message(kind, b"a\0b", LINES + length, {"n": PropertyType.INT})
    session = StompSession()
    session.receive(Frame("CONNECT", {"accept-version": "1.2", **({"sluice-broker": "A"} if is_bridge else {})}, b""))
    headers = {**counted(stored).headers, "destination": "/queue/q"}
    [send] = session.receive(Frame("SEND", headers, stored.body)).requests
    assert (JmsForm(kind, {"n": PropertyType.INT}).header_line() in send.properties) is is_bridge
    assert ("sluice-jms-transaction:" in send.properties) is is_bridge
    assert "n:5\nsluice-property.priority:high\n" in send.properties
    assert (send.body, send.is_bytes) == (b"a\0b", kind is JmsKind.BYTES or not is_bridge)


@pytest.mark.parametrize(
    ("kind", "body", "headers", "shown"),
    [
        (JmsKind.TEXT, b"text", {}, b"text"),
        (JmsKind.BYTES, b"\0", {"content-length": "1"}, b"\0"),
        (JmsKind.MAP, encode_map({"n": 5}), {"transformation": "jms-map-json"},
         b'{"map":{"entry":{"string":"n","int":5}}}'),
        (JmsKind.OBJECT, b"\xac\xed", {}, b""),
    ],
)  # fmt: skip
def test_a_broker_that_does_not_know_the_form_gets_what_it_reads(kind, body, headers, shown):
    stored = counted(message(kind, body, "n:5\nJMSXGroupID:g\n", {"n": PropertyType.INT}))
    common = {"message-id": "ID:a:1", "priority": "4", "n": "5", "JMSXGroupID": "g"}
    assert plain_form(stored.headers, body) == (common | headers, shown)


def test_a_message_of_a_stomp_client_crosses_as_it_is():
    assert plain_form({"n": "5"}, b"text") == ({"n": "5"}, b"text")
