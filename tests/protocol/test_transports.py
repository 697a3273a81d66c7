"""Test STOMP over TCP, TLS and WebSocket, and faults that only a WebSocket has."""

from __future__ import annotations

import itertools
import socket
import ssl
import time
from collections.abc import Iterator

import pytest

from brokerapp.config import BrokerConfig, TransportConnector
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.openwire.commands import Response
from brokerapp.openwire.wire_format_options import WireFormatOptions
from brokerapp.stomp.frames import FrameParser, encode
from tests.certificates import PASSWORD, Authority
from tests.protocol.clients import PATIENCE, RawClient
from tests.protocol.openwire_client import OpenWireSocket
from tests.protocol.running_node import RunningNode
from tests.protocol.websocket_client import WebSocketClient
from tests.waiting import wait_until

_numbers = itertools.count(1)
SCHEMES = ("stomp", "stomp+ssl", "ws", "wss")
#: Those at which OpenWire is spoken beside STOMP, over TLS.
SHARED = ("ssl", "nio+ssl", "auto+ssl", "auto+nio+ssl")
#: Bytes a frame may have here; a WebSocket message of more is not collected.
MAX_DATA = 200_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def node(store, authority) -> Iterator[RunningNode]:
    """A node that listens in all ways."""
    identity = authority.issue("broker")
    options = (("wireFormat.maxDataLength", str(MAX_DATA)),)
    config = BrokerConfig(
        f"transports-{next(_numbers)}",
        connectors=tuple(TransportConnector(each, each, "127.0.0.1", 0, options) for each in SCHEMES),
        tls=TlsStores(KeyStore(str(identity.p12), PASSWORD)),
    )
    running = RunningNode(config, store.url)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def trust(authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.pem)


def port(node: RunningNode, scheme: str) -> int:
    [address] = [each for each in node.node.addresses if each.startswith(f"{scheme}://")]
    return int(address.rpartition(":")[2])


@pytest.fixture
def websocket(node) -> Iterator:
    clients = []

    def make(tls: ssl.SSLContext | None = None, **options) -> WebSocketClient:
        clients.append(WebSocketClient(port(node, "wss" if tls else "ws"), tls, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def clients(node, trust, websocket, raw):
    """A client of each kind, by scheme."""
    secure = RawClient(port(node, "stomp+ssl"), tls=trust)
    yield {"stomp": raw(), "stomp+ssl": secure, "ws": websocket(), "wss": websocket(trust)}
    secure.close()


@pytest.mark.scenario("SC-15")
def test_what_comes_in_by_one_way_goes_out_by_all_others(clients, name):
    for scheme, client in clients.items():
        client.tell("SUBSCRIBE", {"destination": f"/topic/{name}", "id": "1", "receipt": scheme})
        assert client.hear().headers["receipt-id"] == scheme
    for scheme, sender in clients.items():
        body = f"from {scheme}, ☃\n\n".encode() + b"\0 and on"
        sender.tell("SEND", {"destination": f"/topic/{name}", "content-length": str(len(body)), "a:b": "c\nd"}, body)
        for client in clients.values():
            message = client.hear()
            assert (message.command, message.body, message.headers["a:b"]) == ("MESSAGE", body, "c\nd")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_large_bodies_go_through_every_way(clients, name, scheme):
    client, body = clients[scheme], bytes(range(256)) * 300
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    for number in range(20):
        sent = {"destination": f"/queue/{name}", "content-length": str(len(body)), "number": str(number)}
        client.tell("SEND", sent, body)
    messages = [client.hear() for _ in range(20)]
    assert [each.headers["number"] for each in messages] == list(map(str, range(20)))
    assert {each.body for each in messages} == {body}


def test_the_node_says_where_it_listens(node):
    assert [each.rpartition(":")[0] for each in node.node.addresses] == [f"{each}://127.0.0.1" for each in SCHEMES]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_breaks_the_protocol_is_said_before_the_end_on_every_way(clients, scheme):
    client = clients[scheme]
    client.tell("DANCE")
    assert "'DANCE' is not a command" in client.hear().headers["message"]
    assert client.is_closed()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_disconnect_is_answered_on_every_way(clients, scheme):
    client = clients[scheme]
    client.tell("DISCONNECT", {"receipt": "bye"})
    assert client.hear().headers["receipt-id"] == "bye"
    assert client.is_closed()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_message_held_by_a_client_that_is_cut_off_goes_back(clients, connect, name, scheme):
    client = clients[scheme]
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "ack": "client"})
    client.tell("SEND", {"destination": f"/queue/{name}"}, b"a")
    assert client.hear().body == b"a"
    client.socket.shutdown(socket.SHUT_RDWR)
    other = connect()
    other.subscribe(f"/queue/{name}")
    [message] = other.take()
    assert message.headers["redelivered"] == "true"


def test_a_client_that_does_not_trust_the_certificate_does_not_get_in_and_others_still_do(node, trust):
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        RawClient(port(node, "stomp+ssl"), tls=ssl.create_default_context())
    RawClient(port(node, "stomp+ssl"), tls=trust).close()


def test_whoever_speaks_plain_to_a_tls_port_is_let_go(node):
    with socket.create_connection(("127.0.0.1", port(node, "stomp+ssl")), timeout=PATIENCE) as plain:
        plain.sendall(b"CONNECT\naccept-version:1.2\n\n\0")
        while plain.recv(4096):  # an alert of TLS, at most
            pass


# -- WebSocket: the handshake


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["v12.stomp"], "v12.stomp"),
        (["v10.stomp", "v11.stomp", "v12.stomp"], "v12.stomp"),
        (["mqtt", "v11.stomp"], "v11.stomp"),
        (None, None),
    ],
)
def test_the_best_subprotocol_offered_is_chosen(websocket, offered, chosen):
    assert websocket(subprotocols=offered).subprotocol == chosen


def test_a_client_that_speaks_something_else_is_refused(websocket):
    assert websocket(subprotocols=["mqtt"], connect=False).status == 400


def test_a_page_from_elsewhere_is_refused_where_nobody_logs_in(websocket):
    assert websocket(origin="https://elsewhere.example", connect=False).status == 403
    assert websocket(origin="http://localhost:3000").status == 101


def test_whoever_is_no_websocket_gets_an_answer_in_http(node):
    with socket.create_connection(("127.0.0.1", port(node, "ws")), timeout=PATIENCE) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = b""
        while data := plain.recv(4096):
            answer += data
    assert answer.startswith(b"HTTP/1.1 426 ")


# -- WebSocket: messages and fragments


def test_text_and_binary_messages_are_the_same_to_stomp(websocket, name):
    client = websocket()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    for text in (True, False):
        client.send(encode("SEND", {"destination": f"/queue/{name}"}, b"hello"), text=text)
        assert client.hear().body == b"hello"


def test_a_frame_may_come_in_many_messages_and_many_fragments_and_many_frames_in_one(websocket, name):
    client = websocket()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    frame = encode("SEND", {"destination": f"/queue/{name}", "content-length": "9"}, b"in\0pieces")
    for piece in (frame[:10], frame[10:40], frame[40:]):
        client.send(piece)
    client.send(frame[:10], frame[10:11], frame[11:])  # one message, three fragments
    client.send(frame * 3 + b"\n")
    assert [client.hear().body for _ in range(5)] == [b"in\0pieces"] * 5


def test_what_goes_out_is_one_frame_a_message_text_unless_the_body_is_none(websocket, raw, name):
    client, sender = websocket(), raw()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "ack": "client", "receipt": "r"})
    client.hear()
    bodies = [b"plain", "☃".encode(), b"\xff\xfe\0", b""]
    for body in bodies:
        sender.tell("SEND", {"destination": f"/queue/{name}", "content-length": str(len(body))}, body)
    received = [client.message() for _ in bodies]
    assert [type(each) for each in received] == [str, str, bytes, str]
    for message, body in zip(received, bodies, strict=True):
        [frame] = FrameParser().feed(message.encode() if isinstance(message, str) else message)
        assert frame.body == body


def test_pings_are_answered(websocket):
    client = websocket()
    client.ping()
    client.tell("BEGIN", {"transaction": "t", "receipt": "r"})
    client.hear()
    assert client.pongs == 1


def test_heart_beats_go_through_a_websocket(websocket):
    client = websocket(connect=False)
    client.tell("CONNECT", {"accept-version": "1.2", "heart-beat": "1000,100"})
    assert client.hear().headers["heart-beat"] == "100,1000"
    assert [client.message() for _ in range(3)] == ["\n"] * 3
    assert client.is_closed()  # it promised some of its own


def test_a_message_larger_than_a_frame_may_be_gets_an_error_and_the_end(websocket, name):
    client = websocket()
    body = b"x" * MAX_DATA
    client.tell("SEND", {"destination": f"/queue/{name}", "receipt": "just fits"}, body)
    assert client.hear().headers["receipt-id"] == "just fits"
    client.tell("SEND", {"destination": f"/queue/{name}"}, body + b"y")
    assert "exceeds the limit" in client.hear().headers["message"]
    assert client.is_closed()
    another = websocket()
    another.send(b"SEND\n\n" + b"x" * (10 * MAX_DATA))  # not even collected
    assert "exceeds" in another.hear().headers["message"]
    assert another.is_closed()
    assert another.close_code == 1009


def test_before_connect_little_is_collected(websocket):
    client = websocket(connect=False)
    client.send(b"CONNECT\n\n" + b"x" * MAX_DATA * 3)
    assert "exceeds" in client.hear().headers["message"]


@pytest.mark.parametrize("secure", [False, True])
def test_a_client_that_does_not_read_gets_no_more_than_it_can_hold_and_all_of_it_later(
    node, websocket, trust, raw, name, secure
):
    """Back-pressure reaches from the WebSocket to the delivery, and what is held back comes when the client reads."""
    count, body = 400, b"x" * 50_000
    slow, sender = websocket(trust if secure else None), raw()
    slow.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    for number in range(count):
        headers = {"destination": f"/queue/{name}", "receipt": str(number), "content-length": str(len(body))}
        sender.tell("SEND", headers, body)
        assert sender.hear().headers["receipt-id"] == str(number)
    blocked = lambda: [c for c in node.node.broker.clients.values() if c.is_socket_full]  # noqa: E731
    wait_until(lambda: node.look(blocked), "the client is held back")
    assert node.depth(name) > 0
    for _ in range(count):
        assert slow.hear().body == body
    wait_until(lambda: node.depth(name) == 0, "all delivered")


def test_a_node_that_stops_says_good_bye_to_websockets(store, websocket):
    config = BrokerConfig("transports-stopping", connectors=(TransportConnector("ws", "ws", "127.0.0.1", 0),))
    running = RunningNode(config, store.url)
    client = WebSocketClient(port(running, "ws"))
    started = time.monotonic()
    running.stop()
    assert client.is_closed()
    assert client.close_code == 1000
    assert time.monotonic() - started < PATIENCE


@pytest.mark.parametrize("scheme", SHARED)
def test_openwire_and_stomp_are_spoken_at_one_tls_port(store, authority, trust, scheme):
    config = BrokerConfig(
        f"transports-{next(_numbers)}",
        connectors=(TransportConnector("both", scheme, "127.0.0.1", 0),),
        tls=TlsStores(KeyStore(str(authority.issue("broker").p12), PASSWORD)),
    )
    running = RunningNode(config, store.url)
    try:
        [address] = running.node.addresses
        where = int(address.rpartition(":")[2])
        with OpenWireSocket(where, trust) as jms:
            jms.agree(WireFormatOptions(tight_encoding_enabled=True, cache_enabled=True, cache_size=1024))
            assert type(jms.connect()) is Response
        client = RawClient(where, tls=trust)
        client.tell("SEND", {"destination": "/queue/a", "receipt": "1"}, b"body")
        assert client.hear().headers["receipt-id"] == "1"
        client.close()
    finally:
        running.stop()
