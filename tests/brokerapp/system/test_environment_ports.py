"""Test environment variables of ports and numbers."""

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import Environment


def test_stomp_and_openwire_are_served_and_others_where_they_have_a_port():
    assert Environment.read({}).client_ports == {"stomp": 61613, "tcp": 61616}
    assert Environment.read({"SLUICE_WS_PORT": ""}).client_ports == {"stomp": 61613, "tcp": 61616}


def test_each_way_has_a_variable_of_its_own():
    ports = {"SLUICE_STOMP_SSL_PORT": "1", "SLUICE_WS_PORT": "2", "SLUICE_WSS_PORT": "3"}
    environment = Environment.read({**ports, "SLUICE_TLS_CERTIFICATE": "b.p12", "SLUICE_TLS_PASSWORD": "p"})
    assert environment.client_ports == {"stomp": 61613, "tcp": 61616, "stomp+ssl": 1, "ws": 2, "wss": 3}
    assert (environment.tls_certificate, environment.tls_key, environment.tls_password) == ("b.p12", None, "p")
    assert "'p'" not in repr(environment)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("SLUICE_STOMP_PORT", "abc", "must be a whole number of 0 or more"),
        ("SLUICE_PORT", "-1", "must be a whole number of 0 or more"),
        ("SLUICE_WS_PORT", "70000", "must be a port from 0 to 65535"),
        ("SLUICE_ANALYSES", "1.5", "must be a whole number of 0 or more"),
        ("SLUICE_ARCHIVE_DAYS", "nan", "must be a number of 0 or more"),
        ("SLUICE_ARCHIVE_GB", "many", "must be a number of 0 or more"),
    ],
)
def test_a_variable_that_is_not_a_number_is_refused_by_name(name, text, rule):
    with pytest.raises(ConfigurationRefused, match=f"^{name}={text} {rule}$"):
        Environment.read({name: text})


@pytest.mark.parametrize("name", ["SLUICE_STOMP_SSL_PORT", "SLUICE_WSS_PORT", "SLUICE_OPENWIRE_SSL_PORT"])
def test_a_port_with_tls_is_refused_without_a_certificate(name):
    with pytest.raises(ConfigurationRefused, match=f"^{name} needs SLUICE_TLS_CERTIFICATE$"):
        Environment.read({name: "61612"})
    assert Environment.read({name: "61612", "SLUICE_TLS_CERTIFICATE": "b.pem"}).client_ports


@pytest.mark.parametrize("url", ["foo", "ftp://host", "https://", "http://host:many"])
def test_an_address_of_the_console_that_is_no_page_s_is_refused(url):
    with pytest.raises(ConfigurationRefused, match=f"^SLUICE_URL={url} must be an address such as https://HOST"):
        Environment.read({"SLUICE_URL": url})


@pytest.mark.parametrize(
    ("name", "scheme", "usual"), [("SLUICE_STOMP_PORT", "stomp", 61613), ("SLUICE_OPENWIRE_PORT", "tcp", 61616)]
)
def test_a_port_without_tls_has_its_usual_number_another_one_or_is_switched_off(name, scheme, usual):
    assert Environment.read({}).client_ports[scheme] == usual
    assert Environment.read({name: "4711"}).client_ports[scheme] == 4711
    assert scheme not in Environment.read({name: ""}).client_ports


def test_an_installation_without_a_port_for_clients_is_refused():
    with pytest.raises(ConfigurationRefused, match=r"^no client could connect to the broker: set a port in one of "):
        Environment.read({"SLUICE_STOMP_PORT": "", "SLUICE_OPENWIRE_PORT": ""})


EVERY_PORT = {"SLUICE_STOMP_SSL_PORT": "1", "SLUICE_WS_PORT": "2", "SLUICE_WSS_PORT": "3",
              "SLUICE_OPENWIRE_SSL_PORT": "4", "SLUICE_TLS_CERTIFICATE": "b.pem", "SLUICE_BIND": "0.0.0.0"}  # fmt: skip


@pytest.mark.parametrize(
    ("plain_bind", "without_tls"), [({}, "0.0.0.0"), ({"SLUICE_PLAIN_BIND": "127.0.0.1"}, "127.0.0.1")]
)
def test_ports_without_tls_can_stay_on_this_machine_while_those_with_tls_do_not(plain_bind, without_tls):
    environment = Environment.read(EVERY_PORT | plain_bind)
    assert {each.scheme: each.host for each in environment.listeners} == {
        "stomp": without_tls, "tcp": without_tls, "ws": without_tls,
        "stomp+ssl": "0.0.0.0", "wss": "0.0.0.0", "ssl": "0.0.0.0",
    }  # fmt: skip
    assert environment.plain_bind == without_tls
