"""Test the limits of a connector's options, and the errors at them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from brokerapp.config import Authentication, BrokerConfig, TransportConnector, User
from brokerapp.model.definitions import Definitions, PolicyEntry
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.settings import TimestampSettings
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

_numbers = itertools.count(1)


@pytest.fixture
def listening(store) -> Iterator[Callable[..., RunningNode]]:
    """Makes nodes with a connector of these options; they end with the test."""
    nodes: list[RunningNode] = []

    def start(*options: tuple[str, str], **config) -> RunningNode:
        connector = TransportConnector("stomp", "stomp", "127.0.0.1", 0, options)
        name = f"limits-{next(_numbers)}"
        nodes.append(RunningNode(BrokerConfig(name, connectors=(connector,), **config), store.url))
        return nodes[-1]

    yield start
    for node in nodes:
        node.stop()


# -- sizes


@pytest.mark.scenario("SC-10", "Q06")
@pytest.mark.parametrize("option", ["wireFormat.maxDataLength", "transport.maxDataLength"])
def test_a_body_longer_than_max_data_length_gets_an_error_that_names_it_and_the_end(listening, option):
    node = listening((option, "1000"))
    client = RawClient(node.port)
    client.tell("SEND", {"destination": "/queue/a", "receipt": "fits", "content-length": "1000"}, b"x" * 1000)
    assert client.hear().headers["receipt-id"] == "fits"
    client.tell("SEND", {"destination": "/queue/a", "content-length": "1001"}, b"x" * 1001)
    error = client.hear()
    assert error.headers["message"] == "content-length:1001 exceeds the limit of 1000 bytes (maxDataLength)"
    assert client.is_closed()
    client = RawClient(node.port)
    client.tell("SEND", {"destination": "/queue/a"}, b"x" * 1001)
    assert client.hear().headers["message"] == "the body exceeds the limit of 1000 bytes (maxDataLength)"
    assert node.depth("a") == 1


@pytest.mark.scenario("SC-10")
@pytest.mark.parametrize("option", ["wireFormat.maxFrameSize", "transport.maxFrameSize"])
@pytest.mark.parametrize("counted", [True, False])
def test_a_frame_longer_than_max_frame_size_gets_an_error_that_names_it_and_the_end(listening, option, counted):
    node = listening((option, "1000"))
    for length, fits in ((900, True), (1000, False)):
        client = RawClient(node.port)
        headers = {"destination": "/queue/a", "receipt": "r"}
        client.tell("SEND", {**headers, "content-length": str(length)} if counted else headers, b"x" * length)
        answer = client.hear()
        if fits:
            assert answer.headers["receipt-id"] == "r"
        else:
            assert "a frame of 1000 bytes (maxFrameSize)" in answer.headers["message"]
            assert client.is_closed()
    assert node.depth("a") == 1


@pytest.mark.scenario("SC-10")
def test_a_client_hears_why_even_while_it_is_still_writing(listening):
    """Closing a socket with something unread in it resets it, and a reset takes away what was written last."""
    node = listening(("wireFormat.maxFrameSize", "100000"))
    for _ in range(5):
        client = RawClient(node.port)
        client.write(b"SEND\ndestination:/queue/a\ncontent-length:200000\n\n" + b"x" * 200_000)
        assert "exceeds the limit" in client.hear().headers["message"]
        assert client.is_closed()


# -- numbers


def test_a_connection_too_many_is_told_so_counted_and_leaves_room_for_another(listening):
    node = listening(("maximumConnections", "2"))
    first, _second = RawClient(node.port), RawClient(node.port)
    third = RawClient(node.port, version=None)
    third.tell("CONNECT", {"accept-version": "1.2"})
    assert third.hear().headers["message"] == "stomp takes at most 2 connections (maximumConnections)"
    assert third.is_closed()
    [stats] = node.look(node.node._parts.listeners.stats)
    assert (stats.connections, stats.refused) == (2, 1)
    first.close()
    wait_until(lambda: node.look(node.node._parts.listeners.stats)[0].connections == 1, "the first is gone")
    assert RawClient(node.port)


def test_operators_see_connections_and_refusals(listening):
    node = listening(("maximumConnections", "0"))
    assert RawClient(node.port, version=None).is_closed()

    def refused() -> int:
        [status] = node.ask(lambda admin: admin.nodes())
        [listener] = status.listeners
        assert (listener["connector"], listener["address"]) == ("stomp", status.address[0])
        return listener["refused"]

    wait_until(lambda: refused() == 1, "the refusal in the node's status")


def test_a_connection_has_no_more_consumers_than_it_may(listening):
    client = RawClient(listening(("maximumConsumersAllowedPerConnection", "2")).port)
    for number in range(3):
        client.tell("SUBSCRIBE", {"destination": f"/queue/{number}", "id": str(number), "receipt": str(number)})
        answer = client.hear()
        assert answer.headers["receipt-id"] == str(number)
        assert answer.command == ("RECEIPT" if number < 2 else "ERROR")
    assert "at most 2 consumers" in answer.headers["message"]
    client.tell("UNSUBSCRIBE", {"id": "0"})
    client.tell("SUBSCRIBE", {"destination": "/queue/3", "id": "3", "receipt": "3"})
    assert client.hear().headers["receipt-id"] == "3"


# -- who has a client id


def test_a_newcomer_takes_over_a_client_id_where_links_may_be_stolen(listening):
    node = listening(("allowLinkStealing", "true"))
    first = RawClient(node.port, **{"client-id": "one"})
    first.tell("SUBSCRIBE", {"destination": "/queue/a", "id": "1", "ack": "client"})
    first.tell("SEND", {"destination": "/queue/a"}, b"held")
    assert first.hear().body == b"held"
    second = RawClient(node.port, **{"client-id": "one"})
    assert first.is_closed()
    second.tell("SUBSCRIBE", {"destination": "/queue/a", "id": "1"})
    message = second.hear()
    assert (message.body, message.headers["redelivered"]) == (b"held", "true")


# -- time


@pytest.mark.scenario("SC-06")
@pytest.mark.parametrize("option", ["transport.connectAttemptTimeout", "wireFormat.connectionAttemptTimeout"])
def test_a_socket_that_never_connects_is_closed(listening, option):
    node = listening((option, "100"))
    assert RawClient(node.port, version=None).is_closed()
    assert RawClient(node.port).socket


def test_without_a_time_for_connecting_a_silent_socket_stays(listening):
    node = listening(("transport.connectAttemptTimeout", "0"))
    silent = RawClient(node.port, version=None)
    time.sleep(0.3)  # nothing may happen
    silent.tell("CONNECT", {"accept-version": "1.2"})
    assert silent.hear().command == "CONNECTED"


@pytest.mark.scenario("SC-09")
@pytest.mark.parametrize("version", ["1.0", "1.2"])
def test_the_default_heart_beat_holds_for_clients_that_say_nothing(listening, version):
    node = listening(("transport.defaultHeartBeat", "200,100"))
    client = RawClient(node.port, version=None)
    client.tell("CONNECT", {"accept-version": version})
    assert client.hear().headers["heart-beat"] == "100,200"
    assert client.socket.recv(1) == b"\n"  # ours
    assert client.is_closed()  # for want of its own


def test_the_default_heart_beat_does_not_hold_for_clients_that_say_otherwise(listening):
    node = listening(("transport.defaultHeartBeat", "200,100"))
    client = RawClient(node.port, **{"heart-beat": "0,0"})
    time.sleep(0.6)  # nothing may happen
    client.tell("BEGIN", {"transaction": "t", "receipt": "r"})
    assert client.hear().headers["receipt-id"] == "r"


def test_the_grace_period_gives_clients_more_time(listening):
    strict, patient = (listening(("transport.hbGracePeriodMultiplier", factor)) for factor in ("1", "40"))
    clients = [RawClient(node.port, **{"heart-beat": "100,0"}) for node in (patient, strict)]
    assert clients[1].is_closed()
    clients[0].tell("BEGIN", {"transaction": "t", "receipt": "r"})
    assert clients[0].hear().headers["receipt-id"] == "r"


@pytest.mark.parametrize(
    ("asked", "given"), [("0,10", "500,0"), ("10,0", "0,500"), ("0,9000", "2000,0"), ("0,0", "0,0")]
)
def test_floor_and_ceiling_hold_for_heart_beats(listening, asked, given):
    node = listening(("transport.heartBeatFloor", "500"), ("transport.heartBeatCeiling", "2000"))
    client = RawClient(node.port, version=None)
    client.tell("CONNECT", {"accept-version": "1.2", "heart-beat": asked})
    assert client.hear().headers["heart-beat"] == given


# -- who sent it


def received(node: RunningNode, **connect: str) -> str | None:
    client = StompClient(node.port, **connect)
    client.subscribe("/queue/a")
    client.send("/queue/a", "x", JMSXUserID="root")
    [message] = client.take()
    client.leave()
    return message.headers.get("JMSXUserID")


@pytest.mark.scenario("ST-30")
def test_messages_say_who_sent_them_where_the_broker_populates_it(listening):
    login = {"login": "ada", "passcode": "lovelace"}
    assert received(listening(), **login) is None
    assert received(listening(populate_jmsx_user_id=True), **login) == "ada"
    assert received(listening(populate_jmsx_user_id=True)) is None


def test_messages_say_whom_the_login_made_of_the_sender_where_that_is_asked_for(listening):
    known = Authentication((User("ada", "lovelace"),), anonymous_access_allowed=True, anonymous_user="guest")
    flags = {"populate_jmsx_user_id": True, "authentication": known}
    assert received(listening(**flags)) is None
    assert received(listening(**flags, use_authenticated_principal=True)) == "guest"
    assert received(listening(**flags, use_authenticated_principal=True), login="ada", passcode="lovelace") == "ada"


def test_a_dead_letter_says_who_sent_the_message(listening):
    node = listening(populate_jmsx_user_id=True)
    sender, consumer = StompClient(node.port, login="ada"), StompClient(node.port, login="bob")
    sender.send("/queue/a", "x", persistent="true")
    consumer.subscribe("/queue/a", ack="client-individual")
    consumer.nack(consumer.take()[0])
    consumer.subscribe("/queue/ActiveMQ.DLQ", id="dead")
    assert consumer.take()[0].headers["JMSXUserID"] == "ada"
    sender.leave()
    consumer.leave()


# -- prefetch, as policies say


@pytest.mark.scenario("SC-02")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_policy_s_prefetch_holds_where_the_client_says_nothing(listening, kind):
    policies = (PolicyEntry(Destination(DestinationKind(kind), ">"), queue_prefetch=10, topic_prefetch=10),)
    node = listening(definitions=Definitions(policies=policies))
    for own, expected in (({}, 10), ({"activemq.prefetchSize": "25"}, 25)):
        name = f"/{kind}/prefetch.{expected}"
        client, sender = RawClient(node.port), RawClient(node.port)
        client.tell("SUBSCRIBE", {"destination": name, "id": "1", "ack": "client-individual", **own, "receipt": "s"})
        assert client.hear().headers["receipt-id"] == "s"
        for number in range(50):
            sender.tell("SEND", {"destination": name, "receipt": str(number)}, b"x")
            assert sender.hear().headers["receipt-id"] == str(number)
        messages = [client.hear() for _ in range(expected)]
        client.tell("BEGIN", {"transaction": "t", "receipt": "no more"})
        assert client.hear().headers["receipt-id"] == "no more"
        client.tell("ACK", {"id": messages[0].headers["ack"]})
        assert client.hear().command == "MESSAGE"


@pytest.mark.scenario("SC-11")
def test_the_broker_stamps_messages_where_the_plugin_says_so(listening):
    client = RawClient(listening(time_stamping=TimestampSettings(ttl_ceiling=60_000)).port)
    client.tell("SUBSCRIBE", {"destination": "/queue/a", "id": "1"})
    now = time.time() * 1000
    client.tell("SEND", {"destination": "/queue/a", "timestamp": "1000", "expires": "9999999999999"})
    headers = client.hear().headers
    assert abs(int(headers["timestamp"]) - now) < 30_000
    assert int(headers["expires"]) == int(headers["timestamp"]) + 60_000
