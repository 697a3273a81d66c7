"""Messages between clients of OpenWire and STOMP, and across a bridge, over real sockets."""

import zlib
from collections.abc import Iterator

import pytest

from brokerapp.config import TransportConnector
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import Float, Long, decode_map, encode_map
from tests.protocol.clients import RawClient
from tests.protocol.networking import QUICK, bridged, running, wait_for_demand
from tests.protocol.openwire_client import OpenWireClient, queue, topic
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

BOTH = (TransportConnector("both", "tcp", "127.0.0.1", 0),)
PROPERTIES = {"n": 5, "l": Long(7), "f": Float(1.5), "b": True, "priority": "high", "text": "a:b\nc"}
VALUES = {"name": "x", "count": Long(3), "raw": b"\0\1"}


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with running(store, connectors=BOTH) as started:
        yield started


@pytest.fixture
def jms(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as client:
        yield client


def typed(values):
    return {name: (type(each), each) for name, each in values.items()}


def a_map(client, destination):
    return client.message(
        destination, "", data_type=t.MAP_MESSAGE, content=encode_map(VALUES),
        marshalled_properties=encode_map(PROPERTIES), group_id="g",
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_stomp_clients_get_maps_in_the_syntax_they_ask_for_and_no_line_of_the_broker(node, jms, connect, name, kind):
    wanting, others = connect(port=node.port), [connect(port=node.port) for _ in range(2)]
    wanting.subscribe(f"/{kind}/{name}", transformation="jms-json")
    jms.producer()
    if kind == "topic":
        for each in others:
            each.subscribe(f"/topic/{name}")
    jms.ask(a_map(jms, topic(name) if kind == "topic" else queue(name)))
    [(headers, body)] = [(each.headers, each.body) for each in wanting.take(1)]
    assert headers["transformation"] == "jms-map-json"
    assert body.startswith('{"map":{"entry":[{"string":["name","x"]},{"string":"count","long":3}')
    assert {each: headers[each] for each in ("n", "l", "f", "b", "text", "priority")} == {
        "n": "5", "l": "7", "f": "1.5", "b": "true", "text": "a:b\nc", "priority": "4",
    }  # fmt: skip
    assert not [each for each in headers if each.startswith(("sluice-", "JMSX"))]
    for each in others if kind == "topic" else []:
        assert each.bodies(1) == [""]


def test_a_map_of_a_stomp_client_is_a_map_for_jms_clients(node, jms, name):
    jms.consumer(1, queue(name))
    body = b'{"map":{"entry":[{"string":["name","x"]},{"string":"n","int":5}]}}'
    client = RawClient(node.port)  # others send a content-length, so that bodies are bytes
    client.write(b"SEND\ndestination:/queue/%b\ntransformation:jms-map-json\n\n%b\0" % (name.encode(), body))
    [dispatch] = jms.dispatches(1)
    assert dispatch.message.data_type == t.MAP_MESSAGE
    assert decode_map(dispatch.message.content) == {"name": "x", "n": 5}
    client.close()


def test_a_body_that_would_inflate_to_too_much_is_refused_and_the_connection_lives_on(store, name):
    small = (TransportConnector("both", "tcp", "127.0.0.1", 0, (("transport.maxDataLength", "100000"),)),)
    with running(store, connectors=small) as limited, OpenWireClient(limited.port) as client:
        client.producer()
        bomb = client.message(queue(name), "", content=zlib.compress(bytes(1_000_000)), compressed=True)
        answer = client.ask(bomb)
        assert "exceeds the limit of 100000 bytes" in answer.exception.message
        client.send(queue(name), "small")
        assert limited.depth(name) == 1


def test_a_jms_message_is_the_same_at_the_other_end_of_a_bridge(store, node, name):
    far = NetworkConnector("bridge", f"static:(tcp://127.0.0.1:{node.port}){QUICK}")
    with running(store, far, connectors=BOTH) as near, OpenWireClient(node.port) as there:
        wait_until(lambda: bridged(near), "the bridge")
        there.consumer(1, queue(name))
        wait_for_demand(near, f"queue://{name}")
        with OpenWireClient(near.port) as here:
            here.producer()
            here.ask(a_map(here, queue(name)))
            [dispatch] = there.dispatches(1)
    message = dispatch.message
    assert (message.data_type, message.content, message.group_id) == (t.MAP_MESSAGE, encode_map(VALUES), "g")
    assert typed(decode_map(message.marshalled_properties)) == typed(PROPERTIES)
    assert str(message.message_id).startswith("ID:test-")
