"""Test that operators send and edit messages of JMS types, and that JMS clients get exactly what was written."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JMS_HEADER
from brokerapp.model.message import Message, escape
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short, decode_map, encode_map
from brokerapp.openwire.message_content import decode_text_content
from brokerapp.openwire.session.outgoing_messages import message_command
from console.broker.gateway import gateway
from console.messages.jobs.message_form import MessageForm
from console.messages.jobs.models import Template

names = iter(range(100))


@pytest.fixture
def name(console) -> str:
    return f"typed.{next(names)}"


def stored(name: str):
    """The only message of a queue."""
    (message,) = gateway().browse(Destination.queue(name), 0, 10, None).messages
    return message


def received(name: str):
    """The only message of a queue as a JMS client gets it: type, content, typed properties."""
    message = stored(name)
    head = "".join(f"{escape(header)}:{escape(value)}\n" for header, value in message.headers.items())
    command = message_command(Message(message.id, f"\n{head}".encode(), message.body))
    properties = decode_map(command.marshalled_properties) if command.marshalled_properties else {}
    return command.data_type, command.content, {each: (type(value), value) for each, value in properties.items()}


def rows(what: str, *given: tuple[str, str, str]) -> dict[str, list[str]]:
    """The fields of rows of a form."""
    parts = zip(("name", "type", "value"), zip(*given, strict=True), strict=True)
    return {f"{what}-{part}": list(values) for part, values in parts}


PROPERTIES = (
    ("b", "boolean", "true"), ("y", "byte", "-128"), ("h", "short", "32767"), ("i", "int", "+5"),
    ("l", "long", "9223372036854775807"), ("f", "float", "0.1"), ("d", "double", "1e3"), ("s", "string", "5"),
)  # fmt: skip
TYPED = {
    "b": (bool, True), "y": (Byte, -128), "h": (Short, 32767), "i": (int, 5), "l": (Long, 2**63 - 1),
    "f": (Float, 0.10000000149011612), "d": (float, 1000.0), "s": (str, "5"),
}  # fmt: skip

#: What the broker says of who sent it.
BY_ADMIN = {"sentBy": (str, "admin")}


def test_a_jms_client_gets_the_properties_of_every_type_that_the_page_sent(admin, name):
    page = admin.post(reverse("send"), {"destination": name, "body": "hi", **rows("property", *PROPERTIES)})
    assert page.status_code == 200, page.context["error"]
    kind, content, properties = received(name)
    assert (kind, decode_text_content(content), properties) == (t.TEXT_MESSAGE, "hi", TYPED | BY_ADMIN)
    assert stored(name).headers["d"] == "1000.0"  # as Java writes it, for STOMP consumers


def test_a_text_with_strings_is_stored_as_that_of_a_stomp_client(admin, name):
    admin.post(reverse("send"), {"destination": name, "body": "hi", **rows("property", ("n", "string", "5"))})
    assert JMS_HEADER not in stored(name).headers
    assert received(name)[2] == {"n": (str, "5")} | BY_ADMIN


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"encoding": "base64", "body": "AP8="}, b"\x00\xff"),
        ({"encoding": "hex", "body": "00 ff\n10"}, b"\x00\xff\x10"),
        ({"encoding": "text", "body": "é"}, "é".encode()),
        ({"encoding": "file", "body": "ignored"}, b"\x00\r\n\xff"),
    ],
)
@pytest.mark.parametrize("properties", [(), (("n", "int", "5"),)], ids=["strings", "typed"])
def test_bytes_are_sent_as_they_were_written_or_as_the_file_has_them(admin, name, fields, sent, properties):
    file = {"body-file": SimpleUploadedFile("b.bin", b"\x00\r\n\xff")} if fields["encoding"] == "file" else {}
    given = {"destination": name, "kind": "bytes", **fields, **file}
    page = admin.post(reverse("send"), given | (rows("property", *properties) if properties else {}))
    assert page.status_code == 200, page.context["error"]
    assert received(name)[:2] == (t.BYTES_MESSAGE, sent)


ENTRIES = (*PROPERTIES, ("c", "char", "é"), ("raw", "byte[]", "00 ff"), ("none", "null", ""))
VALUES = {name: value for name, (_, value) in TYPED.items()} | {"c": "é", "raw": b"\x00\xff", "none": None}


def test_a_map_is_sent_with_the_types_of_its_entries(admin, name):
    page = admin.post(reverse("send"), {"destination": name, "kind": "map", "body": "left", **rows("entry", *ENTRIES)})
    assert page.status_code == 200, page.context["error"]
    kind, content, _ = received(name)
    values = decode_map(content)
    assert (kind, values) == (t.MAP_MESSAGE, VALUES)
    assert (type(values["c"]), type(values["y"]), type(values["f"])) == (Char, Byte, Float)


WRONG = [
    (rows("property", ("n", "byte", "128")), "property 'n': '128' is not a byte: use a whole number from -128"),
    (rows("property", ("n", "int", "1.5")), "property 'n': '1.5' is not an int: use a whole number"),
    (rows("property", ("n", "boolean", "yes")), "property 'n': 'yes' is not a boolean: use true or false"),
    (rows("property", ("n", "float", "1e39")), "property 'n': '1e39' is not a float: use a number in the range"),
    (rows("property", ("n", "date", "1")), "property 'n': 'date' is not a type: use string, boolean"),
    (rows("property", ("n", "int", "1"), ("n", "int", "2")), "property 'n' is given twice"),
    (rows("property", ("sluice-property.n", "int", "1")), "reserved for the broker"),
    ({"kind": "map", **rows("entry", ("c", "char", "ab"))}, "map entry 'c': 'ab' is not a char: use exactly one"),
    ({"kind": "map", **rows("entry", ("", "int", "5"))}, "a map entry with the value '5' has no name"),
    ({"kind": "map", **rows("entry", ("a", "int", "5"), ("a", "int", "6"))}, "map entry 'a' is given twice"),
    ({"kind": "bytes", "encoding": "hex", "body": "0g"}, "invalid hex"),
    ({"kind": "bytes", "encoding": "file"}, "choose a file"),
    ({"kind": "object"}, "must be text, bytes or map"),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG, ids=[each[1][:40] for each in WRONG])
def test_what_is_no_value_of_its_type_is_named_with_the_rule(admin, console, wrong, sentence):
    page = admin.post(reverse("send"), {"destination": "never", **wrong})
    assert page.status_code == 400
    assert sentence in page.context["error"]


def test_a_schedule_of_a_typed_message_has_the_types_of_activemq(admin, name):
    fields = {
        "destination": name,
        "delay": "1",
        "period": "3600",
        "repeat": "-1",
        **rows("property", ("n", "int", "5")),
    }
    admin.post(reverse("send"), fields)
    (waiting,) = [each for each in gateway().scheduled(0, 50)[1] if each.to.endswith(name)]
    assert "AMQ_SCHEDULED_PERIOD=l" in waiting.headers[JMS_HEADER]
    assert "AMQ_SCHEDULED_REPEAT=i" in waiting.headers[JMS_HEADER]


def test_a_template_keeps_kind_and_entries_and_one_of_a_former_version_is_read(admin, name):
    given = {"destination": name, "kind": "map", "do": "keep", "template-name": "mine", **rows("entry", *ENTRIES)}
    admin.post(reverse("send"), given)
    form = MessageForm.from_json(Template.objects.get().form)
    assert (form.kind, form.entries) == ("map", ENTRIES)
    former = {"destination": "a", "encoding": "base64", "properties": [["n", "number", "5"], ["r", "text", "eu"]]}
    read = MessageForm.from_json(former)
    assert (read.kind, read.properties) == ("bytes", (("n", "long", "5"), ("r", "string", "eu")))


# -- the API


def call(admin, path: str, document: dict, status: int):
    answer = admin.post(path, json.dumps(document), content_type="application/json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_the_api_sends_typed_messages(admin, name):
    document = {"destination": name, "properties": {each: text for each, _, text in PROPERTIES},
                "types": {each: type for each, type, _ in PROPERTIES if type != "string"},
                "values": [{"name": each, "type": type, "value": text} for each, type, text in ENTRIES]}  # fmt: skip
    call(admin, "/api/v1/messages", document, 201)
    kind, content, properties = received(name)
    assert (kind, decode_map(content), properties) == (t.MAP_MESSAGE, VALUES, TYPED | BY_ADMIN)


def test_the_api_sends_hex_and_names_what_does_not_fit(admin, name):
    call(admin, "/api/v1/messages", {"destination": name, "encoding": "hex", "body": "00ff"}, 201)
    assert received(name)[:2] == (t.BYTES_MESSAGE, b"\x00\xff")
    for wrong, sentence in (
        ({"types": {"n": "int"}}, "types: 'n' is not one of the properties"),
        ({"types": {"n": "int"}, "properties": {"n": "x"}}, "property 'n': 'x' is not an int"),
        ({"kind": "map", "body": "x"}, "a map message has values instead of a body"),
        ({"kind": "text", "values": [{"name": "a"}]}, "only a map message has values"),
        ({"kind": "text", "encoding": "hex", "body": "ff"}, "byte 0 is not valid UTF-8"),
    ):
        answer = call(admin, "/api/v1/messages", {"destination": name, **wrong}, 409)
        assert sentence in answer["detail"]


# -- editing


def form_of(admin, name: str) -> tuple[str, dict]:
    """The address of the page that edits the only message, and what its form posts unchanged."""
    address = reverse("edit-message", kwargs={"name": name, "seq": stored(name).seq})
    form = admin.get(address).context["form"]
    fields = {f"field-{each}": value for each, value in form.fields.items()}
    fields |= {each: getattr(form, each) for each in ("destination", "kind", "body", "encoding", "priority")}
    fields |= rows("property", *form.properties) if form.properties else {}
    fields |= rows("entry", *form.entries) if form.entries else {}
    fields |= {"keeps-body": "true"} if form.keeps_body else {}
    fields |= {"is-coded": "true"} if form.is_coded else {}
    return address, {**fields, "persistent": "true", "reason": "r"}


def edited(admin, name: str, **changes) -> None:
    address, fields = form_of(admin, name)
    answer = admin.post(address, {**fields, **changes})
    assert answer.status_code == 302, answer.context["error"]


def put(name: str, form: str, body: bytes, **properties: str) -> None:
    """Store a message as that of a JMS client is stored."""
    gateway().send(OperatorMessage(name, properties, body, jms_form=form).to_json(), 1, "")


BODIES = [
    ("text", b"hello"), ("text", b"\nhello\r\n\x01"), ("text!", b""), ("bytes", b"\x00\xff"), ("bytes", b"words"),
    ("map", encode_map(VALUES | {"y": Byte(-128)})), ("map", encode_map({"deep": {"a": [1]}})),
    ("map", encode_map({"lines": "a\nb"})), ("stream", b"\x05\x00\x00\x00\x01"), ("object", b"\xac\xed\x00\x05sr"),
    ("plain!", b""), ("blob", b"reference"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "body"), BODIES)
def test_an_edit_that_changes_nothing_keeps_the_message_as_jms_clients_get_it(admin, name, form, body):
    types = " a=i type=l none=n raw=y any=o lines=z"
    properties = {
        "a": "5", "sluice-property.type": "7", "type": "order", "none": "null", "raw": "00ff", "s": "5",
        "any": encode_map({"": [1]}).hex(), "note": "a\nb", "JMSXGroupID": "g", "JMSXGroupSeq": "3",
    }  # fmt: skip
    put(name, form + types, body, **properties)
    before, group = received(name), stored(name).headers["JMSXGroupSeq"]
    edited(admin, name)
    assert received(name) == before
    assert stored(name).headers["JMSXGroupSeq"] == group
    assert stored(name).headers[JMS_HEADER].split(" ")[0] == form


def test_text_entries_and_types_of_a_message_are_edited(admin, name):
    put(name, "map a=i", encode_map({"n": 1}), a="5")
    edited(
        admin, name, **rows("entry", ("n", "long", "2"), ("m", "string", "x")), **rows("property", ("a", "string", "5"))
    )
    kind, content, properties = received(name)
    assert (kind, decode_map(content), properties) == (t.MAP_MESSAGE, {"n": 2, "m": "x"}, {"a": (str, "5")})


def test_the_form_of_an_edit_never_shows_the_lines_in_which_the_broker_keeps_the_types(admin, name):
    put(name, "object type=l any=o", b"\xac\xed\x00\x05sr\x00\x01Csecret", **{"sluice-property.type": "7", "any": "00"})
    page = admin.get(form_of(admin, name)[0]).content.decode()
    assert "sluice-" not in page
    assert "Kept unchanged" in page
    assert "secret" not in page


def test_a_message_of_a_stomp_client_stays_one_and_its_bytes_stay_bytes(admin, name, console):
    console.send(f"/queue/{name}", "words", n="5")
    before = received(name)
    edited(admin, name)
    assert received(name) == before
    assert JMS_HEADER not in stored(name).headers


def test_the_api_keeps_the_types_of_a_message_or_replaces_them(admin, name):
    put(name, "text a=i", b"hello", a="5")
    path = f"/api/v1/queues/{name}/messages/{{}}/edited"
    document = {"destination": name, "body": "bye", "reason": "r", "properties": {"a": "6"}}
    call(admin, path.format(stored(name).seq), document, 200)
    assert received(name)[2] == {"a": (int, 6)}
    call(admin, path.format(stored(name).seq), {**document, "types": {"a": "long"}}, 200)
    assert received(name)[2] == {"a": (Long, 6)}
    call(admin, path.format(stored(name).seq), {**document, "kind": "text"}, 200)
    assert received(name)[2] == {"a": (str, "6")}
