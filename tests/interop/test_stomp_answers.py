"""Test that Sluice answers STOMP frames as ActiveMQ does, against a real one where it is installed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import pytest
from lxml import etree

from brokerapp.config import default_config
from tests.interop.activemq_server import ActiveMQ, needs_activemq
from tests.interop.asking import Asker
from tests.protocol.running_node import RunningNode

VERSIONS = ("1.0", "1.1", "1.2")
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["sluice", pytest.param("activemq", marks=[pytest.mark.slow, needs_activemq])])
def port(request, tmp_path_factory, store_url) -> Iterator[int]:
    """Where the broker that is asked listens."""
    if request.param == "sluice":
        node = RunningNode(default_config("answers", 0), store_url)
        yield node.port
        node.stop()
        return
    activemq = ActiveMQ(tmp_path_factory.mktemp("activemq"))
    activemq.plain("answers")
    activemq.start()
    yield activemq.port
    activemq.stop()


@pytest.fixture
def asker(port) -> Iterator[Callable[..., Asker]]:
    """Makes connections to the broker; they are closed at the end."""
    made: list[Asker] = []

    def make(version: str = "1.2", **headers: str) -> Asker:
        made.append(Asker(port, version, **headers))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def left(asker) -> Callable[[str], list[str]]:
    """Tells the bodies of the messages that are left in a queue."""

    def read(queue: str) -> list[str]:
        reader = asker()
        reader.send(queue, "last")
        found: list[str] = []
        reader.tell("SUBSCRIBE", {"id": "s", "destination": queue})
        while "last" not in found:
            found += [each.body.decode() for each in reader.take(1)]
        return found[:-1]

    return read


@pytest.fixture
def name() -> str:
    """A name for destinations of this test alone."""
    return f"answers.{next(_numbers)}"


# -- UNSUBSCRIBE in STOMP 1.0


def test_in_1_0_unsubscribe_by_destination_ends_a_subscription_with_an_id(asker, left, name):
    queue, client = f"/queue/{name}", asker("1.0")
    client.ask("SUBSCRIBE", destination=queue, id="s")
    assert client.ask("UNSUBSCRIBE", destination=queue) == "RECEIPT"
    client.send(queue, "m")
    assert client.messages == []
    assert left(queue) == ["m"]


def test_in_1_0_unsubscribe_by_destination_ends_one_of_two_subscriptions(asker, name):
    topic, client = f"/topic/{name}", asker("1.0")
    for id in "ab":
        client.ask("SUBSCRIBE", destination=topic, id=id)
    assert client.ask("UNSUBSCRIBE", destination=topic) == "RECEIPT"
    client.send(topic, "one is left")
    assert [each.body for each in client.take(1)] == [b"one is left"]
    assert client.ask("UNSUBSCRIBE", destination=topic) == "RECEIPT"
    client.send(topic, "none is left")
    assert client.ask("UNSUBSCRIBE", destination=topic) == "ERROR"
    client.send(f"/queue/{name}", "last")
    assert [each.body for each in client.consume(f"/queue/{name}", 1)] == [b"last"]


def test_in_1_0_an_id_counts_and_not_the_destination_beside_it(asker, name):
    queue, client = f"/queue/{name}", asker("1.0")
    client.ask("SUBSCRIBE", destination=queue, id="s")
    assert client.ask("UNSUBSCRIBE", destination=queue, id="other") == "ERROR"
    assert client.ask("UNSUBSCRIBE", destination="/queue/other", id="s") == "RECEIPT"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_after_1_0_unsubscribe_needs_an_id(asker, name, version):
    client = asker(version)
    client.ask("SUBSCRIBE", destination=f"/queue/{name}", id="s")
    assert client.ask("UNSUBSCRIBE", destination=f"/queue/{name}") == "ERROR"


# -- what ACK and NACK must name


@pytest.mark.parametrize("mode", ["client", "client-individual"])
@pytest.mark.parametrize("command", ["ACK", "NACK"])
@pytest.mark.parametrize("named", [{}, {"subscription": "other"}])
def test_in_1_1_ack_and_nack_need_the_subscription_of_the_message(asker, left, name, command, mode, named):
    queue, client = f"/queue/{name}", asker("1.1")
    client.send(queue, "a", "b")
    first, _second = client.consume(queue, 2, ack=mode)
    assert client.ask(command, headers={"message-id": first.headers["message-id"], **named}) == "ERROR"
    client.close()
    assert left(queue) == ["a", "b"]


def test_in_1_0_a_subscription_on_an_ack_must_be_that_of_the_message(asker, left, name):
    queue, client = f"/queue/{name}", asker("1.0")
    client.send(queue, "a", "b", "c")
    a, b, _c = client.consume(queue, 3, ack="client-individual")
    assert client.settle("ACK", a, subscription="other") == "ERROR"
    assert client.settle("ACK", b, subscription="s") == "RECEIPT"
    client.close()
    assert left(queue) == ["a", "c"]


@pytest.mark.parametrize(("version", "headers"), [("1.1", {"subscription": "s"}), ("1.2", {})])
def test_ack_and_nack_need_the_id_of_the_message(asker, left, name, version, headers):
    queue, client = f"/queue/{name}", asker(version)
    client.send(queue, "a")
    client.consume(queue, 1, ack="client")
    assert [client.ask(command, **headers) for command in ("ACK", "NACK")] == ["ERROR", "ERROR"]
    client.close()
    assert left(queue) == ["a"]


# -- ACK of what an open transaction acknowledged already


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("order", [(2, 0), (2, 2), (1, 0, 2), (2, 1, 0)])
@pytest.mark.parametrize("end", ["COMMIT", "ABORT"])
def test_before_1_2_an_ack_again_in_a_transaction_is_no_error(asker, left, name, version, order, end):
    queue, client = f"/queue/{name}", asker(version)
    client.send(queue, "a", "b", "c", "d")
    messages = client.consume(queue, 4, ack="client")
    client.ask("BEGIN", transaction="t")
    answers = [client.settle("ACK", messages[each], transaction="t") for each in order]
    furthest = [max(order[:at], default=-1) for at in range(len(order))]
    again = "ERROR" if version == "1.2" else "RECEIPT"
    assert answers == [again if each <= far else "RECEIPT" for each, far in zip(order, furthest, strict=True)]
    assert client.ask(end, transaction="t") == "RECEIPT"
    client.close()
    assert left(queue) == (["d"] if end == "COMMIT" else ["a", "b", "c", "d"])


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("mode", ["client", "client-individual"])
@pytest.mark.parametrize("end", ["COMMIT", "ABORT"])
def test_before_1_2_an_ack_outside_the_transaction_of_an_earlier_one_counts_at_once(
    asker, left, name, version, mode, end
):
    queue, client = f"/queue/{name}", asker(version)
    client.send(queue, "a", "b", "c", "d")
    messages = client.consume(queue, 4, ack=mode)
    client.ask("BEGIN", transaction="t")
    for each in messages[:3]:
        assert client.settle("ACK", each, transaction="t") == "RECEIPT"
    assert client.settle("ACK", messages[1]) == "RECEIPT"
    assert client.ask(end, transaction="t") == "RECEIPT"
    client.close()
    kept = {"client": ["c", "d"], "client-individual": ["a", "c", "d"]}[mode]
    assert left(queue) == (["d"] if end == "COMMIT" else kept)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_ack_in_a_transaction_of_what_was_acknowledged_outside_is_an_error(asker, left, name, version):
    queue, client = f"/queue/{name}", asker(version)
    client.send(queue, "a", "b", "c")
    messages = client.consume(queue, 3, ack="client")
    assert client.settle("ACK", messages[1]) == "RECEIPT"
    client.ask("BEGIN", transaction="t")
    assert client.settle("ACK", messages[0], transaction="t") == "ERROR"
    client.close()
    assert left(queue) == ["c"]


@pytest.mark.parametrize("receipt", [{}, {"receipt": "r"}])
def test_a_send_that_is_no_message_at_all_leaves_its_transaction_as_it_is(asker, left, name, receipt):
    queue, client = f"/queue/{name}", asker()
    client.tell("BEGIN", {"transaction": "t"})
    client.tell("SEND", {"destination": queue, "transaction": "t", "persistent": "true"}, b"a")
    client.tell("SEND", {"transaction": "t", **receipt}, b"without a destination")
    assert client.ask("COMMIT", transaction="t") == "RECEIPT"
    client.close()
    assert left(queue) == ["a"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(("ends", "kept"), [("ABORT", ["a", "b"]), ("COMMIT", ["b"])])
def test_before_1_2_a_message_may_be_acknowledged_in_a_second_transaction(asker, left, name, version, ends, kept):
    queue, client = f"/queue/{name}", asker(version)
    client.send(queue, "a", "b")
    first, _second = client.consume(queue, 2, ack="client-individual")
    for transaction in "tu":
        client.ask("BEGIN", transaction=transaction)
        assert client.settle("ACK", first, transaction=transaction) == "RECEIPT"
    assert client.ask("ABORT", transaction="t") == "RECEIPT"
    assert client.ask(ends, transaction="u") == "RECEIPT"
    client.close()
    assert left(queue) == kept


# -- what is read generously


@pytest.mark.parametrize("version", VERSIONS)
def test_a_header_line_without_a_colon_is_not_refused(asker, name, version):
    queue, client = f"/queue/{name}", asker(version)
    client.raw.write(f"SUBSCRIBE\ndestination:{queue}\nid:s\nactivemq.prefetchSize=1\nack:auto\n\n\0".encode())
    client.send(queue, "m")
    assert [each.body for each in client.take(1)] == [b"m"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("before", [b"\0", b"\n\0\n", b" ", b"\t", b"\0 \r\n"])
def test_nuls_and_blanks_before_a_command_are_skipped(asker, version, before):
    client = asker(version)
    client.raw.write(before)
    assert client.ask("BEGIN", transaction="t") == "RECEIPT"


# -- transformations

MAP_XML = """<map><entry><string>name</string><string>Dejan</string></entry>
<entry><string>age</string><int>33</int></entry><entry><string>alive</string><boolean>true</boolean></entry></map>"""
MAP_JSON = '{"map":{"entry":[{"string":["name","Dejan"]},{"string":"age","int":33},{"string":"alive","boolean":true}]}}'


def entries_of(document: dict) -> list[str]:
    """The entries of a map in no order, as ActiveMQ keeps none."""
    return sorted(json.dumps(each) for each in document["map"]["entry"])


@pytest.mark.parametrize(("asked", "named"), [("jms-json", "jms-map-json"), ("jms-map-json", "jms-map-json")])
def test_a_map_sent_as_xml_comes_as_json(asker, name, asked, named):
    queue, client = f"/queue/{name}", asker()
    client.send(queue, MAP_XML, transformation="jms-map-xml")
    [message] = client.consume(queue, 1, transformation=asked)
    assert message.headers["transformation"] == named
    assert entries_of(json.loads(message.body)) == entries_of(json.loads(MAP_JSON))


@pytest.mark.parametrize(("asked", "named"), [("jms-xml", "jms-map-xml"), ("jms-map-xml", "jms-map-xml")])
def test_a_map_sent_as_json_comes_as_xml(asker, name, asked, named):
    queue, client = f"/queue/{name}", asker()
    client.send(queue, MAP_JSON, transformation="jms-map-json")
    [message] = client.consume(queue, 1, transformation=asked)
    assert message.headers["transformation"] == named
    pairs = [[(each.tag, each.text) for each in entry] for entry in etree.fromstring(message.body)]
    assert sorted(pairs) == [
        [("string", "age"), ("int", "33")], [("string", "alive"), ("boolean", "true")],
        [("string", "name"), ("string", "Dejan")],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("transformation", "body"),
    [
        ("jms-object-xml", "Hello World"),
        ("jms-object-json", "Hello World"),
        ("jms-map-xml", "<map><entry><string>a</string></entry></map>"),
        ("jms-map-xml", "<string>a</string>"),
        ("jms-map-json", '{"map":{"entry":{"int":5,"string":"n"}}}'),
        ("jms-json", "{}"),
        ("jms-xml", "<a/>"),
    ],
)
def test_what_cannot_be_read_as_announced_passes_as_text_and_is_marked(asker, name, transformation, body):
    queue, client = f"/queue/{name}", asker()
    client.send(queue, body, transformation=transformation)
    [message] = client.consume(queue, 1)
    assert (message.body.decode(), "transformation-error" in message.headers) == (body, True)


@pytest.mark.parametrize("transformation", ["nonsense", "JMS-MAP-XML", "jms-byte"])
def test_a_transformation_that_is_not_known_is_no_error(asker, name, transformation):
    queue, client = f"/queue/{name}", asker()
    client.send(queue, "<a", transformation=transformation)
    [message] = client.consume(queue, 1)
    assert (message.body, "transformation-error" in message.headers) == (b"<a", False)


# -- what a client is told


def test_the_session_of_a_client_without_an_id_begins_as_ids_of_activemq_do(asker):
    sessions = [asker().session for _ in range(2)]
    assert all(each.startswith("ID:") for each in sessions)
    assert len(set(sessions)) == 2
    assert asker(**{"client-id": "myself"}).session == "myself"
