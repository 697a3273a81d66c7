"""Test that pages and the API show messages of JMS clients as what they are, and that edits keep them so."""

import json
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType
from brokerapp.openwire.marshalled_values import Long, encode_map, encode_stream
from console.access.masking import mask_message
from console.broker.gateway import gateway
from console.exporters.jolokia.jms_messages import as_data
from console.messages.body_format import render_body

TYPES = {"amount": PropertyType.INT, "urgent": PropertyType.BOOLEAN, "type": PropertyType.LONG}
PROPERTIES = {"amount": "5", "urgent": "true", "region": "eu", "sluice-property.type": "77", "type": "order"}
names = iter(range(100))


@pytest.fixture
def name(console) -> str:
    return f"jms.{next(names)}"


def put(name: str, kind: JmsKind, body: bytes, properties=PROPERTIES, types=TYPES) -> None:
    """Store a message as that of a JMS client is stored."""
    message = OperatorMessage(f"/queue/{name}", properties, body, jms_form=JmsForm(kind, types).header_value())
    gateway().send(message.to_json(), 1, "")


def stored(name: str) -> list:
    return gateway().browse(Destination.queue(name), 0, 10, None).messages


def shown(client, name: str) -> str:
    """The panel of the only message, and the list behind it."""
    (message,) = stored(name)
    return client.get(reverse("message", args=[name, message.seq])).content.decode()


def test_pages_show_typed_properties_and_never_the_lines_in_which_the_broker_keeps_them(admin, name):
    put(name, JmsKind.TEXT, b"hello")
    page = shown(admin, name)
    assert "text message" in page
    assert "sluice-jms" not in page
    assert "sluice-property" not in page
    rows = {row.name: (row.type, row.value) for row in admin.get(
        reverse("message", args=[name, stored(name)[0].seq])).context["row"].property_rows}  # fmt: skip
    assert rows["amount"] == ("int", "5")
    assert rows["urgent"] == ("boolean", "true")
    assert rows["region"] == ("string", "eu")
    assert rows["type"] == ("long", "77")
    journey = admin.get(reverse("message-page", args=[stored(name)[0].id]), {"queue": name, "seq": stored(name)[0].seq})
    assert "text message" in journey.content.decode()
    assert "sluice-" not in journey.content.decode()


def test_the_values_of_a_map_and_a_stream_are_shown_with_their_types(admin, name):
    put(name, JmsKind.MAP, encode_map({"card": Long(5), "paid": True, "raw": b"\x01\xff", "who": {"a": [1, None]}}))
    page = shown(admin, name)
    assert "map message" in page
    form = JmsForm(JmsKind.MAP)
    values = render_body(stored(name)[0].body, form)[0].values
    assert [(each.name, each.type, each.value) for each in values] == [
        ("card", "long", "5"), ("paid", "boolean", "true"), ("raw", "byte[]", "01 ff"),
        ("who", "map", '{"a": [1, null]}'),
    ]  # fmt: skip
    stream = render_body(encode_stream(["x", 1.5]), JmsForm(JmsKind.STREAM))[0].values
    assert [(each.name, each.type, each.value) for each in stream] == [("1", "string", "x"), ("2", "double", "1.5")]


def test_of_an_object_only_the_class_is_shown(admin, name):
    put(name, JmsKind.OBJECT, b"\xac\xed\x00\x05sr\x00\x0bcom.x.Ordersecret")
    page = shown(admin, name)
    assert "com.x.Order" in page
    assert "secret" not in page
    assert 'id="body-hex"' not in page


def test_a_body_that_is_no_map_is_shown_in_hex_with_the_reason():
    (only,) = render_body(b"\x00\x00\x00\x05oops", JmsForm(JmsKind.MAP))
    assert only.name == "hex"
    assert "cannot be read" in only.note


def test_the_api_says_kind_properties_and_values(admin, name):
    put(name, JmsKind.MAP, encode_map({"paid": True}))
    (item,) = admin.get(f"/api/v1/queues/{name}/messages").json()["items"]
    assert item["jms"]["kind"] == "map"
    assert item["jms"]["values"] == [{"name": "paid", "type": "boolean", "value": "true"}]
    assert {"name": "amount", "type": "int", "value": "5"} in item["jms"]["properties"]
    assert not [header for header in item["headers"] if header.startswith("sluice-")]
    assert item["headers"]["type"] == "order"


def test_an_edited_message_keeps_its_kind_and_the_types_of_what_still_has_them(admin, name):
    put(name, JmsKind.TEXT, b"hello", {"amount": "5", "urgent": "true"}, TYPES)
    (message,) = stored(name)
    wanted = {
        "destination": f"/queue/{name}", "body": "bye", "reason": "wrong",
        "properties": {"amount": "6", "urgent": "maybe"},
    }  # fmt: skip
    url = f"/api/v1/queues/{name}/messages/{message.seq}/edited"
    answer = admin.post(url, json.dumps(wanted), content_type="application/json")
    assert answer.status_code == 200, answer.content
    (edited,) = stored(name)
    form = JmsForm.parse(edited.headers[JMS_HEADER])
    assert (form.kind, dict(form.types), edited.body) == (JmsKind.TEXT, {"amount": PropertyType.INT}, b"bye")
    assert "content-length" not in edited.headers


def test_nobody_sets_the_line_in_which_the_broker_keeps_the_form(admin, name):
    wanted = {"destination": f"/queue/{name}", "properties": {"sluice-jms": "map"}}
    answer = admin.post("/api/v1/messages", json.dumps(wanted), content_type="application/json")
    assert answer.status_code == 409
    assert "set by the broker" in answer.content.decode()


def test_jolokia_gives_properties_by_type_and_the_map_of_a_map_message(console, admin, name):
    put(name, JmsKind.MAP, encode_map({"paid": 5}))
    user = User.objects.get()
    data = as_data(mask_message(user, stored(name)[0], Destination.queue(name)))
    assert data["IntProperties"] == {"amount": 5}
    assert data["BooleanProperties"] == {"urgent": True}
    assert data["StringProperties"] == {"region": "eu"}
    assert data["ContentMap"] == "{paid=5}"
    assert "sluice" not in data["PropertiesText"]


def test_dead_letters_that_are_resubmitted_moved_or_copied_keep_their_types(admin, name):
    put(name, JmsKind.MAP, encode_map({"paid": True}))
    before = stored(name)[0].headers[JMS_HEADER]
    for action, target in (("copy", f"{name}.copy"), ("move", f"{name}.moved")):
        wanted = {"action": action, "queue": name, "target": f"queue://{target}", "seqs": [stored(name)[0].seq]}
        answer = admin.post("/api/v1/jobs", json.dumps(wanted), content_type="application/json")
        assert answer.status_code == 201, answer.content
        (message,) = stored(target)
        assert (message.headers[JMS_HEADER], message.headers["sluice-property.type"]) == (before, "77")
        assert render_body(message.body, JmsForm(JmsKind.MAP))[0].values
    wanted = {"action": "retry", "queue": f"{name}.moved", "seqs": [stored(f"{name}.moved")[0].seq], "reason": "r"}
    answer = admin.post("/api/v1/jobs", json.dumps(wanted), content_type="application/json")
    assert answer.status_code == 201, answer.content
    (message,) = stored(name)
    assert JmsForm.parse(message.headers[JMS_HEADER]).types == TYPES


def test_a_search_and_a_selector_see_typed_properties(admin, name, settings, wait_for_mirror):
    settings.SLUICE = replace(settings.SLUICE, indexed=("amount", "type"))
    put(name, JmsKind.TEXT, b"x", {"amount": "77", "sluice-property.type": "78"}, {"amount": PropertyType.INT})
    put(name, JmsKind.TEXT, b"x", {"amount": "77"}, {})
    wait_for_mirror(name, 2)
    page = admin.get(reverse("messages", args=[name]), {"selector": "amount > 76"})
    assert [row.message.seq for row in page.context["rows"]] == [stored(name)[0].seq]
    for asked in ("amount:77", "type:78"):
        text = admin.get(reverse("find-messages"), {"q": asked}).content.decode()
        assert stored(name)[0].id in text
        assert "sluice-" not in text
