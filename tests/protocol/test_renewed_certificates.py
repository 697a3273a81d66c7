"""Test that a node shows renewed certificates to new clients, while those that are connected stay."""

from __future__ import annotations

import itertools
import shutil
import ssl

import pytest

from brokerapp.config import BrokerConfig, TransportConnector
from brokerapp.connections import tls_renewal
from brokerapp.connections.key_stores import read_certificate
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.openwire.commands import Response
from brokerapp.openwire.wire_format_options import WireFormatOptions
from tests.certificates import PASSWORD, Authority
from tests.protocol.clients import RawClient
from tests.protocol.openwire_client import OpenWireSocket
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

_numbers = itertools.count(1)
SCHEMES = ("stomp+ssl", "wss", "ssl", "nio+ssl", "auto+ssl")


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def node(store, authority, monkeypatch, tmp_path):
    """A node whose certificate is in `broker.p12`, which it looks at often."""
    monkeypatch.setattr(tls_renewal, "CHECK_SECONDS", 0.05)
    shutil.copy(authority.issue("first").p12, tmp_path / "broker.p12")
    config = BrokerConfig(
        f"renewed-{next(_numbers)}",
        connectors=tuple(TransportConnector(each, each, "127.0.0.1", 0) for each in SCHEMES),
        tls=TlsStores(KeyStore(str(tmp_path / "broker.p12"), PASSWORD)),
    )
    running = RunningNode(config, store.url)
    yield running
    running.stop()


def shown(port: int) -> bytes:
    """The certificate that a new client is shown."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))


def test_a_renewed_certificate_is_shown_at_every_listener_and_open_connections_stay(node, authority, tmp_path):
    trust = ssl.create_default_context(cafile=authority.pem)
    ports = dict(zip(SCHEMES, node.ports, strict=True))
    stomp = RawClient(ports["stomp+ssl"], tls=trust)
    openwire = OpenWireSocket(ports["ssl"], trust)
    openwire.agree(WireFormatOptions())
    stomp.tell("SUBSCRIBE", {"destination": "/queue/renewed", "id": "1"})

    renewed = authority.issue("second", days=40)
    shutil.copy(renewed.p12, tmp_path / "broker.p12")
    for port in node.ports:
        wait_until(lambda port=port: shown(port) == renewed.der, f"the new certificate at port {port}")
    reported = {each.connector: each.certificate_until for each in node.node._parts.listeners.stats()}
    assert reported == dict.fromkeys(SCHEMES, int(read_certificate(KeyStore(str(renewed.pem))).valid_until.timestamp()))

    assert isinstance(openwire.connect(), Response), "a connection that was open before is used on"
    stomp.tell("SEND", {"destination": "/queue/renewed"}, b"still here")
    assert stomp.hear().body == b"still here"
    later = RawClient(ports["stomp+ssl"], tls=trust)
    later.tell("SEND", {"destination": "/queue/renewed"}, b"from a new one")
    assert stomp.hear().body == b"from a new one"
    for each in (stomp, later, openwire):
        each.close()


def test_a_client_that_does_not_trust_the_certificate_is_reported_by_the_connector(node, caplog):
    for scheme, port in zip(SCHEMES, node.ports, strict=True):
        with pytest.raises(ssl.SSLCertVerificationError):
            RawClient(port, tls=ssl.create_default_context())
        wait_until(lambda scheme=scheme: f"connector {scheme}: TLS handshake with 127.0.0.1:" in caplog.text, scheme)
    assert caplog.text.count("the client does not trust the authority that signed the certificate") == len(SCHEMES)
