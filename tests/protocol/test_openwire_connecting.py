"""How OpenWire clients connect: which connectors serve them, what is agreed upon, and who is refused why."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from brokerapp.openwire.commands import (
    BrokerInfo,
    ConnectionError,
    ExceptionResponse,
    FlushCommand,
    KeepAliveInfo,
    ProducerId,
    ProducerInfo,
    Response,
    SessionId,
    SessionInfo,
    ShutdownInfo,
    WireFormatInfo,
)
from brokerapp.openwire.transport.negotiation import MAX_LOGIN_FRAME_SIZE
from brokerapp.openwire.wire_format_options import WireFormatOptions
from brokerapp.runtime import protocol_switch
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.openwire_client import QUIET, OpenWireClient, OpenWireSocket, queue
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

_numbers = itertools.count(1)
#: What a client says that wants all that ActiveMQ's own client wants.
ALL = WireFormatOptions(
    tight_encoding_enabled=True, cache_enabled=True, cache_size=1024, stack_trace_enabled=True,
    tcp_no_delay_enabled=True, max_inactivity_duration=30_000, max_inactivity_duration_initial_delay=10_000,
)  # fmt: skip
USERS = """
  <plugins>
    <simpleAuthenticationPlugin><users><authenticationUser username="a" password="p" groups="g"/></users>
    </simpleAuthenticationPlugin>
    <authorizationPlugin><map><authorizationMap><authorizationEntries>
      <authorizationEntry queue="OPEN.>" read="g" write="g" admin="g"/>
      <authorizationEntry topic="ActiveMQ.Advisory.>" read="g" write="g" admin="g"/>
    </authorizationEntries></authorizationMap></map></authorizationPlugin>
  </plugins>"""


def xml(uri: str, more: str = "") -> str:
    """A broker with one connector."""
    name = f"openwire-connecting-{next(_numbers)}"
    connector = f'<transportConnector name="openwire" uri="{uri}"/>'
    return f'<broker brokerName="{name}">{more}<transportConnectors>{connector}</transportConnectors></broker>'


@pytest.fixture
def serving(store) -> Iterator[Callable[..., RunningNode]]:
    """Makes nodes with a connector of this uri; they end with the test."""
    with ExitStack() as stack:
        yield lambda uri, more="": stack.enter_context(node_of(xml(uri, more), store))


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(xml("tcp://127.0.0.1:0"), store) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(store) -> Iterator[RunningNode]:
    with node_of(xml("nio://127.0.0.1:0", USERS), store) as running:
        yield running


# -- which protocol


@pytest.mark.parametrize("scheme", ["tcp", "nio", "auto", "auto+nio"])
def test_openwire_and_stomp_are_spoken_at_one_port(serving, scheme):
    node = serving(f"{scheme}://127.0.0.1:0")
    with OpenWireClient(node.port) as jms:
        jms.send(queue("a"), "hello")
    stomp = StompClient(node.port)
    stomp.subscribe("/queue/a")
    assert stomp.messages.get(timeout=20).body == "hello"


@pytest.mark.parametrize("scheme", ["tcp", "nio", "auto"])
def test_a_client_that_says_nothing_for_a_while_is_told_nothing_and_may_speak_either_protocol(serving, scheme):
    node = serving(f"{scheme}://127.0.0.1:0")
    stomp = RawClient(node.port, version=None)
    with OpenWireSocket(node.port) as jms:
        assert jms.next(WireFormatInfo, seconds=1.0 + QUIET) is None
        jms.agree(ALL)
        assert type(jms.connect()) is Response
    stomp.tell("CONNECT", {"accept-version": "1.2", "host": "here"})
    assert stomp.hear().command == "CONNECTED"


def test_a_client_that_says_nothing_for_long_is_greeted_in_openwire_and_may_speak_either_protocol(serving, monkeypatch):
    monkeypatch.setattr(protocol_switch, "GREETING_DELAY_SECONDS", 0.2)
    node = serving("tcp://127.0.0.1:0")
    stomp = RawClient(node.port, version=None)
    with OpenWireSocket(node.port) as jms:
        offered = jms.next(WireFormatInfo)
        assert WireFormatOptions.of(offered).provider_name == "ActiveMQ"
        jms.received.append(offered)
        jms.agree(ALL)
        assert type(jms.connect()) is Response
        assert jms.next(WireFormatInfo, seconds=QUIET) is None
    stomp.tell("CONNECT", {"accept-version": "1.2", "host": "here"})
    said = b""
    while b"CONNECTED" not in said:
        said += stomp.socket.recv(65536)


def test_a_client_of_another_protocol_is_told_of_in_the_log_with_those_that_are_served(node, caplog):
    client = RawClient(node.port, version=None)
    client.write(b"AMQP\x00\x01\x00\x00")
    assert client.is_closed()
    [said] = [each.getMessage() for each in caplog.records if "speaks AMQP" in each.getMessage()]
    assert said.endswith("only STOMP and OpenWire is served here")


# -- what is agreed upon


def test_the_broker_introduces_itself_before_the_client_does(node):
    with OpenWireSocket(node.port) as client:
        client.agree(ALL)
        info = client.next(BrokerInfo)
        assert (info.broker_name, info.broker_id.value) == (node.name, node.name)
        assert info.broker_url == f"tcp://127.0.0.1:{node.port}"


@pytest.mark.parametrize("tight", [False, True])
def test_a_client_of_any_version_connects_with_and_without_the_tight_encoding(serving, tight):
    node = serving(f"tcp://127.0.0.1:0?wireFormat.tightEncodingEnabled={str(tight).lower()}")
    for version in range(1, 13):
        with OpenWireSocket(node.port) as client:
            assert client.agree(replace(ALL, version=version)).tight_encoding_enabled is tight
            assert type(client.connect(client_id=f"v{version}")) is Response
            assert type(client.ask(SessionInfo(session_id=SessionId("c", 1)))) is Response


def test_the_tight_encoding_and_the_cache_are_offered_as_activemq_offers_them(node):
    with OpenWireSocket(node.port) as client:
        offered = client.agree(ALL)
        assert (offered.tight_encoding_enabled, offered.cache_enabled) == (True, True)


def test_a_connector_offers_what_its_options_say(serving):
    options = {
        "wireFormat.tightEncodingEnabled": "false", "wireFormat.cacheEnabled": "false", "wireFormat.version": "9",
        "wireFormat.maxInactivityDuration": "5000", "wireFormat.maxInactivityDurationInitalDelay": "400",
        "wireFormat.maxFrameSize": "77777",
    }  # fmt: skip
    node = serving("tcp://127.0.0.1:0?" + "&amp;".join(f"{name}={value}" for name, value in options.items()))
    with OpenWireSocket(node.port) as client:
        offered = client.agree(ALL)
        assert (offered.tight_encoding_enabled, offered.cache_enabled, offered.version) == (False, False, 9)
        assert (offered.max_inactivity_duration, offered.max_inactivity_duration_initial_delay) == (5000, 400)
        assert offered.max_frame_size == 77777
        assert type(client.connect()) is Response


def test_a_second_wire_format_ends_the_connection(node):
    with OpenWireSocket(node.port) as client:
        client.agree(ALL)
        client.write(ALL.to_info())
        assert "already" in client.next(ConnectionError).exception.message
        assert client.is_closed()


# -- inactivity


def test_a_client_gets_keep_alives_and_is_dropped_when_it_sends_none(node):
    with OpenWireSocket(node.port) as client:
        client.agree(WireFormatOptions(max_inactivity_duration=600, max_inactivity_duration_initial_delay=600))
        assert type(client.connect()) is Response
        assert client.is_closed()
        assert len([each for each in client.received if isinstance(each, KeepAliveInfo)]) >= 2


def test_a_keep_alive_that_asks_for_an_answer_is_answered_by_another(node):
    with OpenWireSocket(node.port) as client:
        client.agree(WireFormatOptions())
        client.write(KeepAliveInfo(command_id=5, response_required=True))
        assert not client.next(KeepAliveInfo).response_required
        assert client.next(Response, seconds=QUIET) is None


def test_a_client_that_asks_for_a_flush_gets_an_answer(node):
    with OpenWireClient(node.port) as client:
        assert type(client.ask(FlushCommand())) is Response


# -- refusals


@pytest.mark.parametrize("login", [{}, {"user_name": "a"}, {"user_name": "a", "password": "x"}, {"user_name": "A"}])
def test_a_wrong_login_is_a_security_exception_and_ends_the_connection(guarded, login):
    with OpenWireSocket(guarded.port) as client:
        client.agree(ALL)
        answer = client.connect(**login)
        assert isinstance(answer, ExceptionResponse)
        assert answer.exception.class_name == "java.lang.SecurityException"
        assert client.is_closed()


def test_a_missing_right_is_a_security_exception_and_the_connection_goes_on(guarded):
    with OpenWireSocket(guarded.port) as client:
        client.agree(ALL)
        assert type(client.connect(user_name="a", password="p")) is Response
        client.ask(SessionInfo(session_id=SessionId("c", 1)))
        answer = client.ask(ProducerInfo(producer_id=ProducerId("c", 1, 1), destination=queue("CLOSED.a")))
        assert answer.exception.class_name == "java.lang.SecurityException"
        answer = client.ask(ProducerInfo(producer_id=ProducerId("c", 2, 1), destination=queue("OPEN.a")))
        assert type(answer) is Response


def test_a_client_id_that_is_taken_is_an_invalid_client_id(node):
    with OpenWireClient(node.port, client_id="mine"), OpenWireSocket(node.port) as second:
        second.agree(ALL)
        answer = second.connect(client_id="mine")
        assert answer.exception.class_name == "javax.jms.InvalidClientIDException"
        assert second.is_closed()


def test_a_client_id_is_taken_over_where_links_may_be_stolen(serving):
    node = serving("tcp://127.0.0.1:0?allowLinkStealing=true")
    with OpenWireClient(node.port, client_id="mine") as first, OpenWireSocket(node.port) as second:
        second.agree(ALL)
        assert type(second.connect(client_id="mine")) is Response
        assert first.is_closed()


def test_a_connection_too_many_is_told_so_and_one_that_said_nothing_counts(serving):
    node = serving("auto://127.0.0.1:0?maximumConnections=1")
    with OpenWireSocket(node.port) as first:
        wait_until(lambda: node.node._parts.listeners.stats()[0].connections == 1, "the silent client counts")
        with OpenWireSocket(node.port) as second:
            second.write(ALL.to_info())
            assert "at most 1 connections" in second.next(ConnectionError).exception.message
            assert second.is_closed()
        first.agree(ALL)
        assert type(first.connect()) is Response
        assert node.node._parts.listeners.stats()[0].connections == 1
    wait_until(lambda: node.node._parts.listeners.stats()[0].connections == 0, "it is gone")
    with OpenWireClient(node.port):
        pass


def test_a_client_that_never_says_anything_is_closed_in_time(serving):
    node = serving("auto://127.0.0.1:0?transport.connectAttemptTimeout=300")
    with OpenWireSocket(node.port) as silent:
        assert silent.is_closed()


def test_a_connection_has_at_most_as_many_producers_as_its_connector_says(serving):
    node = serving('tcp://127.0.0.1:0" maximumProducersAllowedPerConnection="1')
    with OpenWireClient(node.port) as client:
        client.producer(1)
        answer = client.ask(ProducerInfo(producer_id=ProducerId(client.connection_id, 2, 1)))
        assert "at most 1 producers" in answer.exception.message
        client.send(queue("a"), "still there")


# -- bytes


def ends_with(client: OpenWireSocket, sentence: str, caplog) -> None:
    """The connection ends, and client and log are told why, once."""
    assert sentence in client.next(ConnectionError).exception.message
    assert client.is_closed()
    assert len([each for each in caplog.records if sentence in each.getMessage()]) == 1
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_a_frame_beyond_the_limit_ends_the_connection_with_a_sentence(serving, caplog):
    node = serving("tcp://127.0.0.1:0?wireFormat.maxFrameSize=100000")
    with OpenWireClient(node.port) as client:
        client.tell(client.message(queue("a"), "x" * 100_000))
        ends_with(client, "exceeds the limit of 100000 bytes", caplog)


def test_who_has_not_logged_in_cannot_send_long_frames(node, caplog):
    with OpenWireSocket(node.port) as client:
        client.agree(ALL)
        client.write_bytes((MAX_LOGIN_FRAME_SIZE + 1).to_bytes(4, "big"))
        ends_with(client, f"exceeds the limit of {MAX_LOGIN_FRAME_SIZE} bytes", caplog)


@pytest.mark.parametrize(
    ("beginning", "sentence"),
    [
        (b"\0\0\0\x0e\x01WrongMag\0\0\0\x0c\0", "the magic is"),
        (b"\0\0\0\x01\xee", "238"),
        (b"\0\0\0\0", "a frame is empty"),
        (b"\0\0\0\x02\x03\0", "ends too early"),
    ],
)
def test_bytes_that_are_no_openwire_end_the_connection_with_a_sentence(node, caplog, beginning, sentence):
    with OpenWireSocket(node.port) as client:
        client.write_bytes(beginning)
        ends_with(client, sentence, caplog)


def test_a_client_may_leave_before_it_has_introduced_itself(node, caplog):
    with OpenWireSocket(node.port) as client:
        client.agree(ALL)
        client.tell(ShutdownInfo())
        assert client.is_closed()
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
