"""Test options of transport connectors and of the sslContext, and how others are reported."""

import pytest

from brokerapp.config import ImportOutcome, TransportConnector, export_xml
from brokerapp.config.elements.connector_options import limits_of, tls_options_of
from brokerapp.config.reader import parse_config, read_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.definitions import Definitions
from brokerapp.model.transport_connector import ClientAuth, ConnectionLimits, KeyStore, TlsOptions, TlsStores


def with_option(name, value, scheme="stomp"):
    return TransportConnector("c", scheme, "127.0.0.1", 0, ((name, value),))


@pytest.mark.parametrize(
    ("option", "value", "field", "expected"),
    [
        ("maximumConnections", "7", "max_connections", 7),
        ("maximumConnections", "2147483647", "max_connections", None),
        ("wireFormat.maxFrameSize", "104857600", "max_frame", 104857600),
        ("transport.maxFrameSize", "5", "max_frame", 5),
        ("wireFormat.maxDataLength", "1024", "max_body", 1024),
        ("transport.maxDataLength", "1024", "max_body", 1024),
        ("transport.connectAttemptTimeout", "1200", "connect_ms", 1200),
        ("wireFormat.connectionAttemptTimeout", "0", "connect_ms", 0),
        ("transport.connectAttemptTimeout", "-1", "connect_ms", 0),
        ("transport.defaultHeartBeat", "5000,0", "default_heart_beat", "5000,0"),
        ("transport.hbGracePeriodMultiplier", "1.5", "heart_beat_grace", 1.5),
        ("transport.heartBeatFloor", "1000", "heart_beat_floor_ms", 1000),
        ("transport.heartBeatCeiling", "60000", "heart_beat_ceiling_ms", 60000),
        ("allowLinkStealing", "true", "allow_link_stealing", True),
        ("websocket.allowedOrigins", "https://a.example, https://b.example", "origins",
         frozenset({"https://a.example", "https://b.example"})),
        ("backlog", "9", "backlog", 9),
    ],
)  # fmt: skip
def test_options_become_limits(option, value, field, expected):
    assert getattr(limits_of(with_option(option, value)), field) == expected


def test_attributes_of_the_element_count_as_well():
    attributes = (("maximumConsumersAllowedPerConnection", "3"), ("allowLinkStealing", "true"))
    limits = limits_of(TransportConnector("c", "stomp", "h", 0, attributes=attributes))
    assert (limits.max_consumers, limits.allow_link_stealing) == (3, True)


def test_without_options_all_is_as_in_activemq():
    assert limits_of(TransportConnector("c", "stomp", "h", 0)) == ConnectionLimits()
    limits = ConnectionLimits()
    assert (limits.max_connections, limits.max_frame, limits.max_body) == (None, None, 100 * 1024 * 1024)
    assert (limits.connect_ms, limits.default_heart_beat, limits.heart_beat_grace) == (30_000, "0,0", 1.0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), TlsOptions()),
        ((("needClientAuth", "true"),), TlsOptions(ClientAuth.NEEDED)),
        ((("transport.needClientAuth", "true"), ("wantClientAuth", "true")), TlsOptions(ClientAuth.NEEDED)),
        ((("wantClientAuth", "true"),), TlsOptions(ClientAuth.WANTED)),
        ((("needClientAuth", "false"),), TlsOptions()),
        ((("transport.enabledProtocols", "TLSv1.1,TLSv1.2"),), TlsOptions(protocols=("TLSv1.2",))),
    ],
)
def test_options_of_tls(options, expected):
    assert tls_options_of(TransportConnector("c", "stomp+ssl", "h", 0, options)) == expected


def read(uri, attributes="", more=""):
    return parse_config(
        f'<broker>{more}<transportConnectors>\n<transportConnector name="c" uri="{uri}" {attributes}/>\n'
        "</transportConnectors></broker>",
        {},
    )


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("maximumConnections=many", "maximumConnections=many is not a whole number"),
        ("wireFormat.maxFrameSize=-1", "is not a whole number"),
        ("transport.defaultHeartBeat=5000", "two numbers of milliseconds"),
        ("transport.hbGracePeriodMultiplier=0", "a number above 0"),
        ("needClientAuth=perhaps", "true or false"),
        ("transport.enabledProtocols=SSLv3", "supported protocols are TLSv1.2, TLSv1.3"),
    ],
)
def test_a_value_that_means_nothing_is_refused_with_the_line(option, says):
    with pytest.raises(ConfigurationRefused) as caught:
        read(f"stomp://h:1?{option}")
    assert str(caught.value).startswith("line 2: transportConnector: ")
    assert says in str(caught.value)


def findings(config):
    return {finding.element: (finding.what, finding.why) for finding in config.report}


def test_what_has_no_effect_is_reported_with_the_reason_and_what_nobody_knows_as_unknown():
    found = findings(
        read(
            "stomp+nio://h:1?transport.closeAsync=false&amp;maximumConnections=5&amp;x.y=1",
            'updateClusterClients="true"',
        )
    )
    assert found["transportConnector@uri?transport.closeAsync"][0] is ImportOutcome.IGNORED
    assert "Java" in found["transportConnector@uri?transport.closeAsync"][1]
    assert found["transportConnector@uri?x.y"][0] is ImportOutcome.UNKNOWN
    assert found["transportConnector@updateClusterClients"][0] is ImportOutcome.IGNORED
    assert not any("maximumConnections" in element for element in found)


def test_connectors_come_back_from_an_export():
    config = read("stomp://h:1?maximumConnections=5", 'allowLinkStealing="true"')
    again = parse_config(export_xml(Definitions(), "b", config.connectors), {})
    assert again.connectors == config.connectors


SSL = """<sslContext><sslContext keyStore="file:${activemq.conf}/broker.ks" keyStorePassword="password"
  keyStoreKeyPassword="other" trustStore="trust.pem" trustStorePassword="p" keyStoreType="jks" crlPath="x"/>
</sslContext>"""


def test_an_ssl_context_names_the_stores():
    config = read("stomp+ssl://h:1", more=SSL)
    assert config.tls.key_store == KeyStore("${activemq.conf}/broker.ks", "password", "other")
    assert config.tls.trust_store == KeyStore("trust.pem", "p")
    assert "'password'" not in repr(config.tls)
    found = findings(config)
    assert found["sslContext@keyStoreType"][0] is ImportOutcome.IGNORED
    assert found["sslContext@crlPath"] == (ImportOutcome.IGNORED, "certificate revocation is not supported")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("file:/etc/broker.p12", "/etc/broker.p12"),
        ("file:///etc/broker.p12", "/etc/broker.p12"),
        ("classpath:broker.p12", "{folder}/broker.p12"),
        ("broker.p12", "{folder}/broker.p12"),
        ("file:${activemq.conf}/broker.p12", "{folder}/broker.p12"),
    ],
)
def test_stores_are_looked_for_beside_the_configuration(written, path, tmp_path):
    file = tmp_path / "activemq.xml"
    file.write_text(f'<broker><sslContext><sslContext keyStore="{written}"/></sslContext></broker>')
    expected = path.format(folder=tmp_path)
    assert read_config(file).tls == TlsStores(KeyStore(expected))
