"""Test which addresses pages, the banner and the demo name for programs."""

import pytest

from brokerapp.system.environment import Environment
from console.ops.client_addresses import STOMP_SCHEMES, local_addresses, public_addresses

TLS = {"SLUICE_TLS_CERTIFICATE": "b.pem", "SLUICE_STOMP_SSL_PORT": "61612", "SLUICE_OPENWIRE_SSL_PORT": "61617"}
PUBLIC = {"SLUICE_BIND": "0.0.0.0", "SLUICE_URL": "https://broker.example.com:8000"}


@pytest.mark.parametrize(
    ("variables", "stomp", "openwire"),
    [
        ({}, "127.0.0.1:61613", "tcp://127.0.0.1:61616"),
        (TLS, "127.0.0.1:61613", "tcp://127.0.0.1:61616"),
        ({"SLUICE_STOMP_PORT": ""}, "127.0.0.1:61616", "tcp://127.0.0.1:61616"),
        ({"SLUICE_OPENWIRE_PORT": ""}, "127.0.0.1:61613", None),
        (PUBLIC, "broker.example.com:61613", "tcp://broker.example.com:61616"),
        (
            PUBLIC | TLS | {"SLUICE_PLAIN_BIND": "127.0.0.1"},
            "stomp+ssl://broker.example.com:61612",
            "ssl://broker.example.com:61617",
        ),
        ({"SLUICE_STOMP_PORT": "", "SLUICE_OPENWIRE_PORT": "", "SLUICE_WS_PORT": "1"}, "ws://127.0.0.1:1", None),
    ],
)
def test_pages_name_an_address_that_their_readers_reach(variables, stomp, openwire):
    addresses = public_addresses(Environment.read(variables))
    assert addresses.stomp.stomp_text == stomp
    assert (addresses.openwire and addresses.openwire.uri) == openwire


def test_programs_of_this_machine_get_ports_without_tls_first_and_an_address_that_can_be_called():
    environment = Environment.read(TLS | PUBLIC | {"SLUICE_PLAIN_BIND": "::1", "SLUICE_STOMP_PORT": ""})
    assert [each.uri for each in local_addresses(environment, STOMP_SCHEMES)] == [
        "tcp://[::1]:61616", "stomp+ssl://127.0.0.1:61612", "ssl://127.0.0.1:61617",
    ]  # fmt: skip
