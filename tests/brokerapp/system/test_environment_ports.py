"""Test environment variables of ports and numbers."""

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import Environment


def test_there_is_no_other_way_than_stomp_unless_it_has_a_port():
    assert Environment.read({}).extra_ports == {}
    assert Environment.read({"SLUICE_WS_PORT": ""}).extra_ports == {}


def test_each_way_has_a_variable_of_its_own():
    ports = {"SLUICE_STOMP_SSL_PORT": "1", "SLUICE_WS_PORT": "2", "SLUICE_WSS_PORT": "3"}
    environment = Environment.read({**ports, "SLUICE_TLS_CERTIFICATE": "b.p12", "SLUICE_TLS_PASSWORD": "p"})
    assert environment.extra_ports == {"stomp+ssl": 1, "ws": 2, "wss": 3}
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
    assert Environment.read({name: "61612", "SLUICE_TLS_CERTIFICATE": "b.pem"}).extra_ports


@pytest.mark.parametrize("url", ["foo", "ftp://host", "https://", "http://host:many"])
def test_an_address_of_the_console_that_is_no_page_s_is_refused(url):
    with pytest.raises(ConfigurationRefused, match=f"^SLUICE_URL={url} must be an address such as https://HOST"):
        Environment.read({"SLUICE_URL": url})


def test_openwire_is_served_at_its_usual_port_unless_told_otherwise():
    assert Environment.read({}).openwire_port == 61616
    assert Environment.read({"SLUICE_OPENWIRE_PORT": "4711"}).openwire_port == 4711
    assert Environment.read({"SLUICE_OPENWIRE_PORT": ""}).openwire_port is None
