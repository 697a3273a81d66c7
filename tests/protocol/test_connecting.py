"""Test CONNECT, versions, heart-beats, ERROR frames, and the limits of bodies and headers."""

import os
import socket
import struct
import time

import pytest

from brokerapp.version import PRODUCT
from tests.protocol.clients import StompClient
from tests.protocol.conftest import paused_store
from tests.waiting import wait_until

# -- connecting


@pytest.mark.parametrize(
    ("offered", "agreed"), [(None, "1.0"), ("1.0", "1.0"), ("1.1", "1.1"), ("1.0,1.1,1.2", "1.2"), ("1.1, 3.0", "1.1")]
)
@pytest.mark.scenario("S1-01")
def test_the_best_common_version_is_agreed_on(raw, offered, agreed):
    client = raw(version=None)
    client.tell("CONNECT", {"accept-version": offered} if offered else {})
    connected = client.hear()
    assert (connected.command, connected.headers["version"]) == ("CONNECTED", agreed)
    assert connected.headers["session"]
    assert connected.headers["server"] == PRODUCT


@pytest.mark.scenario("ST-01")
def test_stomp_is_another_word_for_connect_and_request_ids_are_answered(raw):
    client = raw(version=None)
    client.tell("STOMP", {"accept-version": "1.2", "request-id": "7", "client-id": "myself"})
    connected = client.hear()
    assert connected.headers["response-id"] == "7"
    assert connected.headers["session"] == "myself"


#: What ends a connection: bytes, connected before or not, what the ERROR says.
FATAL = [
    (b"SEND\ndestination:/queue/a\n\nx\0", None, "the first frame must be CONNECT"),
    (b"CONNECT\naccept-version:9.9\n\n\0", None, "no common version"),
    (b"CONNECT\naccept-version:1.2\nheart-beat:1\n\n\0", None, "heart-beat"),
    (b"CONNECT\naccept-version:1.2\nheart-beat:a,b\n\n\0", None, "heart-beat"),
    (b"CONNECT\naccept-version:1.2\nheart-beat:1,-1\n\n\0", None, "heart-beat"),
    (b"CONNECT\naccept-version:1.2\nheart-beat:" + b"9" * 5000 + b",0\n\n\0", None, "heart-beat"),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n\0", None, "must be CONNECT"),
    (b"CONNECT\naccept-version:1.2\n\n\0", "1.2", "connected already"),
    (b"STOMP\naccept-version:1.2\n\n\0", "1.2", "connected already"),
    (b"MESSAGE\ndestination:/queue/a\n\nx\0", "1.2", "'MESSAGE' is not a command of a client"),
    (b"DANCE\n\n\0", "1.2", "'DANCE' is not a command of a client"),
    (b"SEND\n:no name here\n\n\0", "1.2", "no name"),
    (b"SEND\ndestination:/queue/a\ncontent-length:-1\n\nx\0", "1.2", "content-length"),
    (b"SEND\ndestination:/queue/a\ncontent-length:x\n\nx\0", "1.2", "content-length"),
    (b"SEND\ndestination:/queue/a\ncontent-length:2\n\nxyz\0", "1.2", "no NUL"),
    (b"SEND\ndestination:/queue/a\ncontent-length:999999999999\n\nx\0", "1.2", "exceeds the limit"),
    (b"SEND\ndestination:/queue/a\ncontent-length:" + b"9" * 5000 + b"\n\nx\0", "1.2", "content-length"),
    (b"SEND\ndestination:/queue/\xff\n\nx\0", "1.2", "UTF-8"),
    (b"SEND\ndestination:/queue/a\nx:" + b"y" * 11_000 + b"\n\nx\0", "1.2", "exceeds 10240 bytes"),
    (b"S" * 2000 + b"\n\n\0", "1.2", "exceeds 1024 bytes"),
    (b"SEND\n" + b"".join(b"h%d:x\n" % n for n in range(1001)) + b"\n\0", "1.2", "at most 1000"),
    (b"SEND\0\n", "1.2", "NUL inside the headers"),
    (b"SEND\0destination:/queue/a\n\nx\0", "1.2", "NUL inside the headers"),
]


@pytest.mark.parametrize(("data", "version", "says"), FATAL, ids=[str(number) for number in range(len(FATAL))])
@pytest.mark.scenario("ST-09", "ST-44", "S1-05")
def test_what_breaks_the_protocol_gets_an_error_and_the_connection_ends(raw, data, version, says):
    client = raw(version=version)
    client.write(data)
    error = client.hear()
    assert error.command == "ERROR"
    assert says in error.headers["message"]
    assert says in error.body.decode()
    assert "Traceback" not in error.body.decode()
    assert client.is_closed()


#: What is refused and leaves the connection open: command, headers, what the ERROR says.
REFUSED = [
    ("SEND", {}, "without a destination"),
    ("SEND", {"destination": "/queue/"}, "is not a destination"),
    ("SEND", {"destination": " , "}, "is not a destination"),
    ("SEND", {"destination": "/queue/" + "x" * 2000}, "at most 1024 characters"),
    ("SEND", {"destination": "/queue/a", "amq-msg-type": "map"}, "neither text nor bytes"),
    ("SEND", {"destination": "/queue/a", "expires": "soon"}, "not a whole number"),
    ("SUBSCRIBE", {"id": "1"}, "without a destination"),
    ("SUBSCRIBE", {"destination": "/queue/a"}, "without an id"),
    ("SUBSCRIBE", {"destination": "/queue/a", "id": "1", "selector": "a ="}, "is wrong at position"),
    ("SUBSCRIBE", {"destination": "/queue/a", "id": "1", "activemq.prefetchSize": "many"}, "not a whole number"),
    ("UNSUBSCRIBE", {"id": "none"}, "no subscription matched"),
    ("UNSUBSCRIBE", {}, "without an id"),
    ("ACK", {"id": "none"}, "Unexpected ACK"),
    ("ACK", {}, "without the header id"),
    ("NACK", {"id": "none"}, "Unexpected ACK"),
]


@pytest.mark.parametrize(("command", "headers", "says"), REFUSED, ids=[f"{c}-{n}" for n, (c, *_) in enumerate(REFUSED)])
@pytest.mark.scenario("S1-06", "S1-07", "S2-02", "SC-04", "SE-24")
def test_what_is_refused_gets_an_error_and_the_connection_goes_on(raw, command, headers, says):
    client = raw()
    client.tell(command, {**headers, "receipt": "asked"})
    error = client.hear()
    assert (error.command, error.headers["receipt-id"]) == ("ERROR", "asked")
    assert says in error.headers["message"]
    client.tell("BEGIN", {"transaction": "t", "receipt": "still here"})
    answer = client.hear()
    assert (answer.command, answer.headers["receipt-id"]) == ("RECEIPT", "still here")


def test_nack_is_unknown_in_1_0_and_browsing_and_durable_subscriptions_say_that_they_are_missing(raw):
    client = raw(version="1.0")
    client.tell("NACK", {"message-id": "x"})
    assert "NACK is not a command of STOMP 1.0" in client.hear().headers["message"]


@pytest.mark.scenario("SC-07")
def test_a_client_id_in_use_is_refused_to_the_newcomer_until_the_first_leaves(connect, raw):
    first = connect(**{"client-id": "only-one"})
    newcomer = raw(version=None)
    newcomer.tell("CONNECT", {"accept-version": "1.2", "client-id": "only-one"})
    assert "connected already" in newcomer.hear().headers["message"]
    assert newcomer.is_closed()
    first.leave()
    connect(**{"client-id": "only-one"})


@pytest.mark.scenario("ST-10")
def test_disconnect_is_answered_after_everything_before_it_and_then_the_broker_closes(raw, node, name):
    client = raw()
    for number in range(100):
        client.tell("SEND", {"destination": f"/queue/{name}"}, str(number).encode())
    client.tell("DISCONNECT", {"receipt": "bye"})
    assert client.hear().headers["receipt-id"] == "bye"
    assert node.depth(name) == 100
    assert client.is_closed()


# -- heart-beats


@pytest.mark.scenario("S1-03")
def test_heart_beats_keep_both_sides_content(connect):
    client = connect(heartbeats=(200, 200))
    assert client.heard["heart-beat"] == "200,200"
    wait_until(lambda: client.heart_beats >= 3, "heart-beats of the broker")
    assert client.connection.is_connected()
    client.round_trip()


@pytest.mark.scenario("S1-04", "S17")
def test_a_client_that_promised_heart_beats_and_is_silent_is_closed_and_what_it_held_goes_back(raw, connect, name):
    silent = raw(**{"heart-beat": "100,0"})
    silent.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1", "ack": "client"})
    other = connect()
    other.send(f"/queue/{name}", "a")
    other.subscribe(f"/queue/{name}")
    [message] = other.take()
    assert message.headers["redelivered"] == "true"
    assert silent.is_closed()


def test_newlines_between_frames_count_as_heart_beats(raw):
    client = raw(**{"heart-beat": "200,0"})
    for _ in range(8):
        time.sleep(0.1)  # this is the client's own pace
        client.write(b"\n")
    client.tell("BEGIN", {"transaction": "t", "receipt": "r"})
    assert client.hear().command == "RECEIPT"


def test_a_client_the_store_keeps_waiting_is_not_taken_for_dead(raw, store, name, monkeypatch):
    """Its socket is not read meanwhile, so its heart-beats are not seen."""
    monkeypatch.setattr("brokerapp.engine.clients.quotas.WRITE_COUNTS", (10, 10))
    client = raw(**{"heart-beat": "100,0"})
    with paused_store(store):
        for number in range(50):
            client.tell("SEND", {"destination": f"/queue/{name}", "receipt": str(number)}, b"x")
        for _ in range(8):
            time.sleep(0.1)  # the client's own pace
            client.write(b"\n")
    for number in range(50):
        assert client.hear().headers["receipt-id"] == str(number)
        client.write(b"\n")


# -- what bodies and headers may hold


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.scenario("ST-13")
def test_a_body_may_hold_nuls_and_any_bytes(raw, version, name):
    client = raw(version=version)
    body = bytes(range(256)) * 3 + b"\0\n\n\0"
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    client.tell("SEND", {"destination": f"/queue/{name}", "content-length": str(len(body))}, body)
    message = client.hear()
    assert message.body == body
    assert message.headers["content-length"] == str(len(body))


def test_without_content_length_the_body_ends_at_the_first_nul(raw, name):
    client = raw()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    client.write(b"SEND\ndestination:/queue/" + name.encode() + b"\n\nhello\0\n")
    message = client.hear()
    assert message.body == b"hello"
    assert "content-length" not in message.headers


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.scenario("ST-03", "S1-10", "ST-43")
def test_header_values_keep_colons_newlines_backslashes_and_any_script(raw, version, name):
    value = "a:b\nc\\d ☃ \U0001f600 "
    client = raw(version=version)
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    client.tell("SEND", {"destination": f"/queue/{name}", "x:y": value})
    assert client.hear().headers["x:y"] == value


@pytest.mark.scenario("ST-40", "S1-13")
def test_values_are_trimmed_in_1_0_only(raw, name):
    for version, expected in (("1.0", "v"), ("1.1", " v "), ("1.2", " v ")):
        client = raw(version=version)
        client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
        client.write(b"SEND\ndestination:/queue/%b\nx: v \n\n\0" % name.encode())
        assert client.hear().headers["x"] == expected
        client.close()


@pytest.mark.scenario("S1-11")
def test_of_a_repeated_header_the_first_counts(raw, name):
    client = raw()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    client.write(b"SEND\ndestination:/queue/%b\nx:first\nx:second\n\n\0" % name.encode())
    assert client.hear().headers["x"] == "first"


@pytest.mark.scenario("ST-31")
def test_what_the_broker_writes_itself_a_client_cannot_set(raw, name):
    client = raw()
    client.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    forged = {"message-id": "mine", "redelivered": "true", "subscription": "9", "JMSXUserID": "root", "ack": "1"}
    client.tell("SEND", {"destination": f"/queue/{name}", **forged})
    headers = client.hear().headers
    assert headers["message-id"] != "mine"
    assert headers["subscription"] == "1"
    assert not {"redelivered", "JMSXUserID", "ack"} & set(headers)


@pytest.mark.scenario("ST-41")
def test_a_body_of_5_mb_arrives_whole_in_whatever_pieces_it_comes(raw, name):
    producer, consumer = raw(), raw()
    consumer.tell("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "1"})
    body = os.urandom(5_000_000)
    producer.write(f"SEND\ndestination:/queue/{name}\ncontent-length:{len(body)}\nreceipt:r\n\n".encode())
    for start in range(0, len(body), 333_333):
        producer.write(body[start : start + 333_333])
    producer.write(b"\0")
    assert producer.hear().headers["receipt-id"] == "r"
    assert consumer.hear().body == body


def test_a_producer_cut_in_the_middle_of_a_frame_leaves_nothing_of_it(raw, connect, node, name):
    client = raw()
    client.tell("SEND", {"destination": f"/queue/{name}", "receipt": "r"}, b"whole")
    client.hear()  # a reset takes away what was not read yet
    client.write(f"SEND\ndestination:/queue/{name}\ncontent-length:1000\n\nhalf of".encode())
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no farewell
    client.close()
    wait_until(lambda: node.look(lambda: not node.node.broker.clients), "the producer is gone")
    assert node.bodies(name) == ["whole"]


def test_many_subscriptions_on_one_connection_each_get_their_own(raw, name):
    client = raw()
    count = 2000
    for number in range(count):
        client.tell("SUBSCRIBE", {"destination": f"/queue/{name}.{number}", "id": str(number)})
    for number in range(0, count, 100):
        client.tell("SEND", {"destination": f"/queue/{name}.{number}"}, str(number).encode())
    found = [client.hear() for _ in range(0, count, 100)]
    assert {each.headers["subscription"].encode() for each in found} == {each.body for each in found}
    assert {int(each.body) for each in found} == set(range(0, count, 100))


@pytest.mark.scenario("ST-19", "SC-07")
def test_many_connections_come_and_go(node, name):
    clients = [StompClient(node.port) for _ in range(50)]
    for client in clients:
        client.subscribe(f"/topic/{name}")
    clients[0].send(f"/topic/{name}", "all")
    assert [client.bodies() for client in clients] == [["all"]] * 50
    for client in clients:
        client.leave()
    wait_until(
        lambda: node.look(lambda: not any(c.subscriptions for c in node.node.broker.clients.values())), "all gone"
    )
