"""Test bridges over OpenWire with a real ActiveMQ: what messages keep, TLS, logins, and faults on either side."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from brokerapp.config import TransportConnector
from brokerapp.model.destination import Destination
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.links import remote_links
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.store.server.embedded import EmbeddedStore
from tests.certificates import PASSWORD, Authority
from tests.faults.processes import BrokerProcess
from tests.interop.activemq_server import ActiveMQ, needs_activemq
from tests.interop.proxy import Proxy
from tests.jms.java_programs import compile_program, needs_java_client
from tests.ports import own_port
from tests.protocol.clients import StompClient
from tests.protocol.networking import QUICK, bridged, destinations_of, running
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, needs_activemq]
JAVA_SECONDS = 60
OPENWIRE = (TransportConnector("openwire", "tcp", "127.0.0.1", 0),)
#: The longest frame of one of the connectors.
NARROW_BYTES = 10_000
#: Messages that the Java program sends.
JAVA_MESSAGES = 7


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as started:
        yield started


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def activemq(tmp_path_factory, authority) -> Iterator[ActiveMQ]:
    """It speaks STOMP, and OpenWire over TCP and TLS, and knows one user."""
    started = ActiveMQ(tmp_path_factory.mktemp("activemq"))
    started.tls_port, started.narrow_port = own_port(), own_port()
    stores = f"""
    <sslContext><sslContext keyStore="{authority.issue("classic").p12}" keyStoreType="PKCS12"
        keyStorePassword="{PASSWORD}"/></sslContext>
    <plugins><simpleAuthenticationPlugin anonymousAccessAllowed="true"><users>
      <authenticationUser username="bridge" password="secret" groups="g"/>
    </users></simpleAuthenticationPlugin></plugins>"""
    more = f"""<transportConnector name="ssl" uri="ssl://127.0.0.1:{started.tls_port}"/>
      <transportConnector name="narrow"
          uri="tcp://127.0.0.1:{started.narrow_port}?wireFormat.maxFrameSize={NARROW_BYTES}"/>"""
    started.plain("classic", more, stores)
    started.start()
    yield started
    started.stop()


def way_of(node):
    """Return the connection of a broker's only connector, as operators see it."""
    [connector] = node.ask(lambda admin: admin.networks.stats()).connectors
    return connector.ways[0]


@pytest.fixture(scope="module")
def bridged_messages() -> Callable[..., list[str]]:
    """Run the Java program that sends or receives messages of all types; the lines that it prints."""
    command = compile_program("BridgedMessages")

    def run(*arguments: str) -> list[str]:
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=JAVA_SECONDS, check=True)
        return done.stdout.splitlines()

    return run


@needs_java_client
@pytest.mark.parametrize("options", [pytest.param({}, marks=pytest.mark.long), {"useCompression": "true"}])
def test_messages_of_all_types_arrive_as_java_clients_sent_them(store, activemq, bridged_messages, options):
    queues = Destination.queue(f"there.{len(options)}"), Destination.queue(f"here.{len(options)}")
    connector = NetworkConnector(
        "bridge", f"static:({activemq.uri('tcp')}){QUICK}", statically_included=queues,
        options=(("duplex", "true"), ("staticBridge", "true"), *options.items()),
    )  # fmt: skip
    with running(store, connector, connectors=OPENWIRE) as ours:
        wait_until(lambda: bridged(ours), "the bridge")
        addresses = f"tcp://127.0.0.1:{ours.port}", activemq.uri("tcp")
        for queue, sender, receiver in zip(queues, addresses, reversed(addresses), strict=True):
            sent = bridged_messages("send", sender, queue.name)
            assert len(sent) == JAVA_MESSAGES
            received = bridged_messages("receive", receiver, queue.name, str(JAVA_MESSAGES))
            assert sorted(received) == sorted(sent)


@pytest.mark.parametrize("scheme", ["ssl", "nio+ssl"])
def test_a_bridge_over_tls_logs_in_with_its_password(store, activemq, authority, scheme):
    connector = NetworkConnector(
        "bridge", f"static:({scheme}://127.0.0.1:{activemq.tls_port}){QUICK}",
        statically_included=(Destination.queue(f"tls.{scheme}"),),
        options=(("userName", "bridge"), ("password", "secret")),
    )  # fmt: skip
    with running(store, connector, tls=TlsStores(trust_store=KeyStore(str(authority.pem)))) as ours:
        wait_until(lambda: bridged(ours), "the bridge")
        sender, consumer = StompClient(ours.port), StompClient(activemq.port)
        sender.send(f"/queue/tls.{scheme}", "é" * 200_000, persistent="true")
        consumer.subscribe(f"/queue/tls.{scheme}")
        assert consumer.bodies() == ["é" * 200_000]
        assert way_of(ours).protocol == "OpenWire"
        for each in (sender, consumer):
            each.leave()


def test_what_is_longer_than_the_activemq_takes_is_a_dead_letter_here_while_all_else_crosses(store, activemq):
    queue = Destination.queue("narrow")
    connector = NetworkConnector(
        "bridge", f"static:(tcp://127.0.0.1:{activemq.narrow_port}){QUICK}", statically_included=(queue,)
    )
    with running(store, connector) as ours:
        wait_until(lambda: bridged(ours), "the bridge")
        sender, consumer = StompClient(ours.port), StompClient(activemq.port)
        for body in ("short", "x" * NARROW_BYTES, "last"):
            sender.send(queue.stomp, body, persistent="true")
        consumer.subscribe(queue.stomp)
        assert consumer.bodies(2) == ["short", "last"]
        [dead] = ours.browse("ActiveMQ.DLQ")
        assert "maxFrameSize" in dead.headers["dlqDeliveryFailureCause"]
        assert way_of(ours).connections == 1
        for each in (sender, consumer):
            each.leave()


def test_what_was_consumed_at_the_activemq_is_not_given_again_when_its_receipt_was_lost(store, activemq):
    queue, proxy = Destination.queue("consumed"), Proxy(activemq.openwire_port)
    connector = NetworkConnector(
        "bridge", f"static:(tcp://127.0.0.1:{proxy.port}){QUICK}", statically_included=(queue,)
    )
    consumer = StompClient(activemq.port)
    consumer.subscribe(queue.stomp)
    with running(store, connector) as ours:
        wait_until(lambda: bridged(ours), "the bridge")
        proxy.answers_are_lost = True
        sender = StompClient(ours.port)
        for number in range(10):
            sender.send(queue.stomp, str(number), persistent="true")
        assert consumer.bodies(10) == list(map(str, range(10)))
        assert ours.depth(queue.name) == 10
        proxy.cut()
        wait_until(lambda: ours.depth(queue.name) == 0, "all is acknowledged")
        sender.send(queue.stomp, "last", persistent="true")
        assert consumer.bodies() == ["last"]
        for each in (sender, consumer):
            each.leave()
    proxy.close()


def test_a_wrong_password_is_told_as_the_activemq_says_it(store, activemq):
    connector = NetworkConnector(
        "bridge", f"static:({activemq.uri('nio')}){QUICK}", options=(("userName", "bridge"), ("password", "wrong"))
    )
    with running(store, connector) as ours:
        wait_until(lambda: "invalid" in way_of(ours).last_error, "the reason")
        assert not bridged(ours)


def test_an_activemq_that_greets_late_is_spoken_to_in_openwire_all_the_same(store, activemq, monkeypatch):
    monkeypatch.setattr(remote_links, "GREETING_SECONDS", 0.0)
    with running(
        store, NetworkConnector("bridge", f"masterslave:({activemq.uri('tcp')},tcp://127.0.0.1:9){QUICK}")
    ) as ours:
        wait_until(lambda: bridged(ours), "the bridge")
        assert (way_of(ours).protocol, way_of(ours).remote) == ("OpenWire", "classic")


@pytest.mark.parametrize(
    "options",
    [pytest.param("", marks=pytest.mark.long), "wireFormat.tightEncodingEnabled=true&wireFormat.cacheEnabled=true"],
    ids=["loose", "tight"],
)
def test_a_silent_bridge_stays_connected_and_a_dead_one_is_given_up(store, activemq, options):
    quick = f"?wireFormat.maxInactivityDuration=900&wireFormat.maxInactivityDurationInitalDelay=100&{options}"
    proxy = Proxy(activemq.openwire_port)
    with running(store, NetworkConnector("bridge", f"static:(tcp://127.0.0.1:{proxy.port}{quick}){QUICK}")) as ours:
        wait_until(lambda: bridged(ours), "the bridge")
        with pytest.raises(AssertionError, match="not within"):
            wait_until(lambda: way_of(ours).connections > 1, "another connection", seconds=3.0)
        consumer = StompClient(activemq.port)
        consumer.subscribe("/queue/silent")
        wait_until(lambda: destinations_of(ours) == ["queue://silent"], "demand")
        consumer.leave()
        proxy.swallow()
        wait_until(lambda: "nothing received" in way_of(ours).last_error, "the end of the connection")
        proxy.let_through()
        proxy.cut()
    proxy.close()


BRIDGE = """<networkConnectors>
    <networkConnector name="old" duplex="true" staticBridge="true"
        uri="static:(tcp://127.0.0.1:{port})?initialReconnectDelay=100&amp;useExponentialBackOff=false">
      <staticallyIncludedDestinations><queue physicalName="ledger.there"/><queue physicalName="ledger.here"/>
      </staticallyIncludedDestinations></networkConnector>
  </networkConnectors>"""
SENT = [str(number) for number in range(400)]


def send_all(port: int, queue: str, failures: list[str]) -> None:
    """Send the numbers, each when the one before was confirmed, again where a broker was lost meanwhile."""
    for each in SENT:
        while True:
            try:
                client = StompClient(port)
                client.send(queue, each, persistent="true")
                client.leave()
                break
            except Exception:
                failures.append(each)
                threading.Event().wait(0.1)


def send_last(port: int, queue: str) -> None:
    client = StompClient(port)
    client.send(queue, "last", persistent="true")
    client.leave()


def received_until_last(port: int, queue: str) -> list[str]:
    client, got = StompClient(port), []
    client.subscribe(queue)
    while (body := client.bodies()[0]) != "last":
        got.append(body)
    client.leave()
    return got


@pytest.fixture
def killed_activemq(tmp_path) -> Iterator[ActiveMQ]:
    started = ActiveMQ(tmp_path / "activemq")
    started.plain("killed")
    started.start()
    yield started
    started.stop()


@pytest.mark.long
def test_each_message_arrives_once_while_either_broker_is_killed_and_sockets_are_cut(tmp_path, killed_activemq):
    """Consumers of the ActiveMQ come at the end: it knows what it is sent again by what is in its queue."""
    proxy, failures = Proxy(killed_activemq.openwire_port), []
    ours = BrokerProcess(tmp_path, BRIDGE.format(port=proxy.port))
    try:
        ours.start()
        senders = [
            threading.Thread(target=send_all, args=(ours.port, "/queue/ledger.there", failures)),
            threading.Thread(target=send_all, args=(killed_activemq.port, "/queue/ledger.here", failures)),
        ]
        for each in senders:
            each.start()
        for fault in (proxy.cut, ours.kill, proxy.cut, killed_activemq.kill, proxy.cut):
            threading.Event().wait(0.7)
            fault()
            if fault == ours.kill:
                ours.start()
            elif fault == killed_activemq.kill:
                killed_activemq.start()
        for each in senders:
            each.join()
        wait_until(lambda: ours.depths("ledger.there") == {"ledger.there": 0}, "all is at the ActiveMQ")
        send_last(ours.port, "/queue/ledger.there")
        send_last(killed_activemq.port, "/queue/ledger.here")
        there = received_until_last(killed_activemq.port, "/queue/ledger.there")
        wait_until(lambda: ours.depths("ledger.here")["ledger.here"] > len(SENT), "all is here")
        here = received_until_last(ours.port, "/queue/ledger.here")
    finally:
        proxy.close()
        ours.end()
    # what was in doubt when its broker was killed its sender sent again: only that may be there twice
    for bodies in (there, here):
        assert set(bodies) == set(SENT)
        assert {each for each in bodies if bodies.count(each) > 1} <= set(failures)
