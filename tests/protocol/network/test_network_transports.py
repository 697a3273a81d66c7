"""Test bridges over TLS and WebSocket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.config import TransportConnector
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.network.options.definition import NetworkConnector
from tests.certificates import PASSWORD, Authority
from tests.protocol.networking import QUICK, bridged, running, start, wait_for_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

SCHEMES = ("stomp", "stomp+ssl", "ws", "wss")
#: As a connector's uri calls it -> as the other broker's transport connector does.
CALLED = {"ssl": "stomp+ssl", "stomp+ssl": "stomp+ssl", "nio+ssl": "stomp+ssl", "ws": "ws", "wss": "wss"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def b(store, authority) -> Iterator[RunningNode]:
    """A broker that listens in all ways."""
    listening = tuple(TransportConnector(each, each, "127.0.0.1", 0) for each in SCHEMES)
    node = start(store, connectors=listening, tls=TlsStores(KeyStore(str(authority.issue("b").p12), PASSWORD)))
    yield node
    node.stop()


def at(b: RunningNode, scheme: str) -> str:
    [address] = [each for each in b.node.addresses if each.startswith(f"{CALLED[scheme]}://")]
    return f"{scheme}://127.0.0.1:{address.rpartition(':')[2]}"


@pytest.mark.parametrize("scheme", CALLED)
def test_messages_cross_in_both_directions_however_bytes_travel(store, b, authority, connect, name, scheme):
    connector = NetworkConnector("bridge", f"static:({at(b, scheme)}){QUICK}", options=(("duplex", "true"),))
    with running(store, connector, tls=TlsStores(trust_store=KeyStore(str(authority.pem)))) as a:
        wait_until(lambda: bridged(a), "the bridge")
        large = "é" * 300_000
        for here, there in ((a, b), (b, a)):
            consumer = connect(port=there.port)
            consumer.subscribe(f"/queue/{name}.{here.name}")
            wait_for_demand(a, f"queue://{name}.{here.name}")
            sender = connect(port=here.port)
            for body in ("small", large):
                sender.send(f"/queue/{name}.{here.name}", body, persistent="true")
            assert consumer.bodies(2) == ["small", large]


@pytest.mark.parametrize("scheme", ["ssl", "wss"])
def test_a_broker_whose_certificate_is_not_believed_gets_no_bridge(store, b, scheme):
    with running(store, NetworkConnector("bridge", f"static:({at(b, scheme)}){QUICK}")) as a:
        wait_until(
            lambda: "certificate" in a.look(lambda: a.node.network.connections[0].last_error.lower()), "the refusal"
        )
        assert not bridged(a)


@pytest.mark.scenario("NB-68")
def test_a_bridge_is_had_when_the_handshakes_that_failed_succeed_at_last(store, b, authority, tmp_path):
    trusted = tmp_path / "trusted.pem"
    (tmp_path / "other").mkdir()
    trusted.write_bytes(Authority(tmp_path / "other", "another").pem.read_bytes())
    connector = NetworkConnector("bridge", f"static:({at(b, 'ssl')}){QUICK}")
    with running(store, connector, tls=TlsStores(trust_store=KeyStore(str(trusted)))) as a:
        wait_until(lambda: a.look(lambda: a.node.network.connections[0].attempts) > 1, "handshakes that fail")
        assert not bridged(a)
        trusted.write_bytes(authority.pem.read_bytes())  # as an operator mends it
        wait_until(lambda: bridged(a), "the bridge")


def test_a_trust_store_that_cannot_be_read_is_named(store, b):
    connector = NetworkConnector("bridge", f"static:({at(b, 'ssl')}){QUICK}")
    with running(store, connector, tls=TlsStores(trust_store=KeyStore("/nowhere/trust.pem"))) as a:
        wait_until(
            lambda: "/nowhere/trust.pem" in a.look(lambda: a.node.network.connections[0].last_error), "the reason"
        )


@pytest.mark.parametrize("seconds", [0.0, 0.1, 2.0])
def test_bridges_to_a_sluice_speak_stomp_also_where_it_speaks_openwire_too(store, monkeypatch, seconds):
    monkeypatch.setattr("brokerapp.network.links.remote_links.GREETING_SECONDS", seconds)
    with running(store, connectors=(TransportConnector("both", "tcp", "127.0.0.1", 0),)) as other:
        connector = NetworkConnector("bridge", f"static:(tcp://127.0.0.1:{other.port}){QUICK}")
        with running(store, connector) as a:
            wait_until(lambda: bridged(a), "the bridge")
            [way] = a.ask(lambda admin: admin.networks.stats()).connectors[0].ways
            assert (way.protocol, way.remote, way.attempts) == ("STOMP", other.name, 0)


def test_where_no_websocket_is_spoken_the_reason_is_told(store, b, monkeypatch):
    monkeypatch.setattr("brokerapp.network.links.remote_links.CONNECT_SECONDS", 0.3)
    [plain] = [each for each in b.node.addresses if each.startswith("stomp://")]
    wrong = replace(NetworkConnector("bridge", ""), uri=f"static:(ws://{plain.removeprefix('stomp://')}){QUICK}")
    with running(store, wrong) as a:
        wait_until(lambda: a.look(lambda: a.node.network.connections[0].last_error), "a reason")
        assert not bridged(a)
