"""Test that brokerctl sends typed messages, and shows those of JMS clients as what they are."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import Float, Long, decode_map, encode_map
from brokerapp.openwire.message_content import decode_text_content
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.protocol.running_node import RunningNode, node_of

XML = """<broker brokerName="sending"><transportConnectors>
  <transportConnector name="openwire" uri="tcp://127.0.0.1:0"/>
</transportConnectors></broker>"""


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def said(node):
    """What brokerctl says on the node."""

    def call(*words: str) -> str:
        out = StringIO()
        call_command("brokerctl", "--redis", node.redis_url, "--name", node.name, *words, stdout=out)
        return out.getvalue()

    return call


@pytest.fixture
def received(node, name):
    """What a JMS client gets of the only message: type, content, typed properties."""

    def receive():
        with OpenWireClient(node.port) as client:
            client.consumer(1, queue(name))
            [dispatch] = client.dispatches(1)
            client.acknowledge(dispatch)
        message = dispatch.message
        properties = decode_map(message.marshalled_properties) if message.marshalled_properties else {}
        return message.data_type, message.content, {each: (type(value), value) for each, value in properties.items()}

    return receive


TYPED = ("--set", "n:int=5", "--set", "f:float=0.5", "--set", "s=5", "--set", "a:b=x", "--set", "correlation-id=c-1")
PROPERTIES = {"n": (int, 5), "f": (Float, 0.5), "s": (str, "5"), "a:b": (str, "x"), "sentBy": (str, "brokerctl")}


def test_a_text_is_sent_with_typed_properties(said, received, name):
    told = json.loads(said("--json", "send", name, "--body", "hi", *TYPED))
    assert (told["count"], told["queues"]) == (1, [f"queue://{name}"])
    kind, content, properties = received()
    assert (kind, decode_text_content(content), properties) == (t.TEXT_MESSAGE, "hi", PROPERTIES)


@pytest.mark.parametrize("given", [("--base64", "AP8="), ("--hex", "00 FF"), ("--body-file", "FILE")])
def test_bytes_are_sent(said, received, name, given, tmp_path):
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff")
    assert f"sent to queue://{name}" in said("send", name, *(str(file) if each == "FILE" else each for each in given))
    assert received()[:2] == (t.BYTES_MESSAGE, b"\x00\xff")


def test_a_map_is_sent(said, received, name):
    said("send", name, "--entry", "card:long=7", "--entry", "who=Ada", *TYPED)
    kind, content, properties = received()
    assert (kind, decode_map(content), properties) == (t.MAP_MESSAGE, {"card": Long(7), "who": "Ada"}, PROPERTIES)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--set", "n:int=x"), "property 'n': 'x' is not an int: use a whole number"),
        (("--set", "n"), "--set n: expected NAME=VALUE"),
        (("--entry", "n:byte=300"), "map entry 'n': '300' is not a byte"),
        (("--entry", "n=1", "--body", "x"), "a map message has --entry instead of a body"),
        (("--entry", "n=1", "--kind", "text"), "only a map message has entries"),
        (("--hex", "f"), "invalid hex"),
        (("--kind", "text", "--hex", "ff"), "not valid UTF-8"),
        (("--priority", "10"), "--priority 10: must be a whole number from 0 to 9"),
        (("--count", "0"), "the number must be from 1"),
    ],
)
def test_what_does_not_fit_is_named_with_the_rule(said, name, words, sentence):
    with pytest.raises(CommandError, match=sentence):
        said("send", name, *words)


def test_browse_shows_kinds_types_and_values_and_never_the_lines_of_the_broker(said, node, name):
    def put(form: str, body: bytes, **properties: str) -> None:
        message = OperatorMessage(f"/queue/{name}", properties, body, jms_form=form)
        node.ask(lambda admin: admin.send(message.to_json(), 1, "ada"))

    put("map n=i type=l", encode_map({"card": Long(7)}), n="5", **{"sluice-property.type": "9"})
    put("object", b"\xac\xed\x00\x05sr\x00\x01Csecret")
    text = said("browse", name)
    for line in ("map message", "n (int): 5", "type (long): 9", "card (long): 7", "object message", "\nC\n"):
        assert line in text
    assert "sluice-jms" not in text
    assert "sluice-property" not in text
    assert "secret" not in text
    first, second = json.loads(said("--json", "browse", name))["messages"]
    assert first["jms"]["types"] == {"n": "int", "type": "long"}
    assert first["jms"]["values"] == [{"name": "card", "type": "long", "value": "7"}]
    assert (first["headers"]["type"], second["jms"]["class_name"]) == ("9", "C")
    assert not [header for header in first["headers"] if header.startswith(("sluice-jms", "sluice-property"))]


def test_edits_keep_types_or_set_them(said, received, name):
    said("send", name, "--body", "hi", "--set", "n:int=5", "--set", "m:int=5")
    shown = said("edit", name, "--set", "n:long=6", "--set", "m=7", "--dry-run")
    assert "  - n (int): 5" in shown
    assert "  + n (long): 6" in shown
    said("edit", name, "--set", "n:long=6", "--set", "m=7", "--set", "sent=1")
    assert received()[2] == {"n": (Long, 6), "m": (int, 7), "sent": (str, "1")}
