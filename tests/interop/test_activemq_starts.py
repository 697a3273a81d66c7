"""Test that ActiveMQ Classic itself reads the files that Sluice writes, where it is installed."""

import shutil
import ssl

import pytest

from benchmarks.brokers.activemq import HOME, JAR
from benchmarks.brokers.process import BrokerProcess
from brokerapp.config import (
    Authentication,
    BrokerConfig,
    ConfiguredGrant,
    Plugin,
    SystemUsage,
    TransportConnector,
    User,
    export_config,
)
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.options.definition import NetworkConnector
from tests.certificates import PASSWORD, Authority
from tests.ports import own_port
from tests.protocol.clients import RawClient, StompClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not JAR.exists() or shutil.which("java") is None, reason="ActiveMQ is not installed"),
]
queue, topic = Destination.queue, Destination.topic
LARGE = "convert_string_expressions:size > 10 AND a <> '<&>'"
TRANSPORT = (("transport.hbGracePeriodMultiplier", "2"),)
EVERYBODY = frozenset({"users", "admins"})
DEFINITIONS = Definitions(
    virtual_destinations=(
        VirtualTopic("VirtualTopic.>", selector_aware=True, drop_on_resource_limit=True),
        VirtualTopic("Own.>", prefix="Q.*.", postfix=".E", local=True),
        CompositeDestination(
            queue("IN"),
            (ForwardTarget(queue("OUT")), ForwardTarget(topic("OUT")), ForwardTarget(queue("BIG"), LARGE)),
            forward_only=False,
        ),
        CompositeDestination(
            topic("NEWS"), (ForwardTarget(queue("ARCHIVE")),), send_when_not_matched=True, copy_message=False
        ),
        MirroredQueue(postfix=".Mirror"),
    ),
    policies=(
        PolicyEntry(
            queue("IN.>"),
            DeadLetterStrategy("individual", queue_prefix="DLQ."),
            queue_prefetch=7,
            memory_limit=1 << 20,
            store_limit=1 << 30,
            queue_cursor="vmQueueCursor",
            advisory_for_consumed=True,
            advisory_for_dispatched=True,
            force_persistency=True,
            send_advisory_if_no_consumers=True,
            options=(("useCache", "false"),),
        ),
        PolicyEntry(topic(">"), DeadLetterStrategy("discarding")),
    ),
)


def configuration(port: int, secure_port: int, key_store: KeyStore) -> BrokerConfig:
    """One of everything."""
    return BrokerConfig(
        name="exported",
        connectors=(
            TransportConnector("secure", "stomp+ssl", "127.0.0.1", secure_port),
            TransportConnector("stomp", "stomp", "127.0.0.1", port, TRANSPORT),
        ),
        tls=TlsStores(key_store),
        populate_jmsx_user_id=True,
        use_authenticated_principal=True,
        definitions=DEFINITIONS,
        destinations=(queue("EARLY"), topic("EARLY")),
        network_connectors=(
            NetworkConnector(
                "bridge", "static:(tcp://127.0.0.1:9)", (queue("a.>"),), (topic("b"),), (queue("c"),), (topic("d"),),
                (("duplex", "true"), ("networkTTL", "3")),
            ),
        ),
        authentication=Authentication(
            (User("root", "secret", frozenset({"admins"})), User("alice", "w&<er", frozenset({"users"}))),
            True, "visitor", "visitors",
        ),
        authorization=(
            ConfiguredGrant(queue(">"), EVERYBODY, EVERYBODY, EVERYBODY),
            ConfiguredGrant(topic(">"), EVERYBODY, EVERYBODY, EVERYBODY),
            ConfiguredGrant(None, EVERYBODY, EVERYBODY, EVERYBODY),
        ),
        plugins=(Plugin("statisticsBrokerPlugin"), Plugin("timeStampingBrokerPlugin", (("ttlCeiling", "60000"),))),
        system_usage=SystemUsage(64 << 20, 256 << 20, 128 << 20, True, 500),
        scheduler_support=True,
        schedule_period_for_destination_purge=1000,
        max_uncommitted_count=500,
    )  # fmt: skip


@pytest.fixture
def start(tmp_path):
    """Starts ActiveMQ with this text as its configuration, listening on this port; it ends with the test."""
    running = []

    def start(text: str, port: int) -> None:
        file = tmp_path / "activemq.xml"
        file.write_text(text)
        folders = {"home": HOME, "base": tmp_path, "conf": tmp_path, "data": tmp_path / "data"}
        command = [
            "java", "-Xmx256M", "-XX:TieredStopAtLevel=1", *(f"-Dactivemq.{name}={at}" for name, at in folders.items()),
            f"-Dorg.apache.activemq.default.directory.prefix={tmp_path}/", f"-Djava.io.tmpdir={tmp_path}",
            "-jar", str(JAR), "start", f"xbean:{file.as_uri()}",
        ]  # fmt: skip
        running.append(BrokerProcess(command, tmp_path / "activemq.log"))
        running[0].wait_until_listening(port)

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def login():
    """Makes clients; they leave at the end."""
    clients = []

    def make(port: int, **headers) -> StompClient:
        clients.append(StompClient(port, **headers))
        return clients[-1]

    yield make
    for client in clients:
        client.connection.disconnect()


def test_activemq_starts_with_a_whole_configuration_and_does_what_it_says(start, login, tmp_path):
    port, secure_port, authority = own_port(), own_port(), Authority(tmp_path)
    key_store = KeyStore(str(authority.issue("broker").p12), PASSWORD)
    start(export_config(configuration(port, secure_port, key_store)), port)
    tls = ssl.create_default_context(cafile=authority.pem)
    secure = RawClient(secure_port, tls=tls, login="alice", passcode="w&<er")
    secure.close()
    alice = login(port, login="alice", passcode="w&<er")
    alice.subscribe("/queue/OUT", id="out")
    alice.subscribe("/queue/BIG", id="big")
    alice.subscribe("/queue/Q.A.Own.x.E", id="own")
    alice.send("/queue/IN", "small", size="5", a="b")
    alice.send("/queue/IN", "large", size="50", a="b")
    alice.send("/topic/Own.x", "fanned out")
    got = {}
    messages = alice.take(4)
    assert {each.headers["JMSXUserID"] for each in messages} == {"alice"}
    for message in messages:
        got.setdefault(message.headers["subscription"], []).append(message.body)
    assert got == {"out": ["small", "large"], "big": ["large"], "own": ["fanned out"]}
    visitor = login(port)
    visitor.send("/queue/IN", "x")
    assert "visitor is not authorized" in visitor.error().headers["message"]
    raw = RawClient(port, version=None)
    raw.tell("CONNECT", {"accept-version": "1.2", "login": "alice", "passcode": "wrong"})
    assert raw.hear().command == "ERROR"
    raw.close()


def test_activemq_starts_with_definitions_alone(start, login):
    port = own_port()
    connectors = (TransportConnector("stomp", "stomp", "127.0.0.1", port),)
    start(export_config(BrokerConfig("alone", connectors, Definitions(virtual_destinations=()))), port)
    client = login(port)
    client.subscribe("/queue/Consumer.A.VirtualTopic.x")
    client.send("/topic/VirtualTopic.x", "nothing is built in")
    client.send("/queue/Consumer.A.VirtualTopic.x", "direct")
    assert client.bodies() == ["direct"]
