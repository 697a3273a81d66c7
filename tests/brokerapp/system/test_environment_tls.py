"""Test when the console serves TLS, and what browsers are told then."""

import pytest

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import HSTS_SECONDS, Environment

CERTIFICATE = {"SLUICE_TLS_CERTIFICATE": "console.pem"}
PROXY = {"SLUICE_PROXIES": "10.0.0.1"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        (CERTIFICATE, True),
        (CERTIFICATE | PROXY, False),  # the proxy has TLS, and speaks HTTP to the console
        (CERTIFICATE | PROXY | {"SLUICE_CONSOLE_TLS": "1"}, True),
        (CERTIFICATE | {"SLUICE_CONSOLE_TLS": "0"}, False),
        (CERTIFICATE | {"SLUICE_CONSOLE_TLS": ""}, True),
    ],
)
def test_a_certificate_is_the_console_s_too_unless_a_proxy_is_named(variables, expected):
    assert Environment.read(variables).console_tls is expected


@pytest.mark.parametrize(
    ("variables", "rule"),
    [
        ({"SLUICE_CONSOLE_TLS": "1"}, "needs a certificate: set SLUICE_TLS_CERTIFICATE"),
        (CERTIFICATE | {"SLUICE_CONSOLE_TLS": "on"}, "must be 0 or 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(variables, rule):
    with pytest.raises(ConfigurationRefused, match=rule):
        Environment.read(variables)


@pytest.mark.parametrize(
    ("variables", "url", "port"),
    [
        ({}, "http://localhost:8000", 8000),
        (CERTIFICATE, "https://localhost:8000", 8000),
        (CERTIFICATE | {"SLUICE_PORT": "8443"}, "https://localhost:8443", 8443),
        (CERTIFICATE | {"SLUICE_URL": "https://console.example"}, "https://console.example", 443),
        ({"SLUICE_URL": "http://console.example"}, "http://console.example", 80),
    ],
)
def test_links_lead_to_where_the_console_is_served(variables, url, port):
    environment = Environment.read(variables)
    assert (environment.console_url, environment.public_port) == (url, port)


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"SLUICE_URL": "https://console.example"}, 0),  # for who has the certificate
        (CERTIFICATE, 0),  # localhost is more than the console
        (CERTIFICATE | {"SLUICE_URL": "https://console.example"}, HSTS_SECONDS),
        (CERTIFICATE | {"SLUICE_URL": "https://console.example", "SLUICE_HSTS_SECONDS": "60"}, 60),
        (CERTIFICATE | {"SLUICE_URL": "https://console.example", "SLUICE_HSTS_SECONDS": "0"}, 0),
        (CERTIFICATE | PROXY | {"SLUICE_URL": "https://console.example"}, 0),
    ],
)
def test_browsers_are_told_to_come_by_tls_only_where_a_public_host_has_it(variables, seconds):
    assert Environment.read(variables).sent_hsts_seconds == seconds
