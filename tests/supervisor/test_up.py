"""`manage.py up` where it cannot start; that it does is part of tests/e2e."""

import os
import socket
import subprocess
import sys

import pytest
from django.core.management.base import CommandError

from brokerapp.errors import CONFIGURATION_EXIT_CODE
from brokerapp.system.environment import PROJECT, Environment
from console.management.commands import up
from tests.certificates import Authority
from tests.e2e.installation import Installation
from tests.ports import free_port


def test_a_taken_port_stops_the_start_and_is_named(tmp_path):
    here = Installation(tmp_path / "data")
    with socket.create_server(("127.0.0.1", here.stomp)):
        done = subprocess.run(here.manage("up"), env=here.environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"port {here.stomp} on 127.0.0.1, configured for STOMP, is taken" in done.stderr
    assert "set SLUICE_STOMP_PORT to another port" in done.stderr
    assert not here.folder.exists(), "a start that is refused leaves nothing"


@pytest.mark.parametrize(
    "command", [["manage.py", "up"], ["-c", "from brokerapp.management.sluice import main; main()", "up"]]
)
def test_a_variable_that_cannot_be_used_ends_with_the_exit_code_for_services(tmp_path, command):
    variables = os.environ | {"SLUICE_DATA": str(tmp_path / "data"), "SLUICE_PORT": "abc"}
    done = subprocess.run([sys.executable, *command], cwd=PROJECT, env=variables, capture_output=True, text=True)
    assert done.returncode == CONFIGURATION_EXIT_CODE
    assert done.stderr == "error: SLUICE_PORT=abc must be a whole number of 0 or more\n"


def environment(tmp_path, **variables: str) -> Environment:
    names = ("PORT", "STOMP_PORT", "OPENWIRE_PORT", "MONITOR_PORT", "SPARK_PORT")
    ports = {f"SLUICE_{name}": str(free_port()) for name in names}
    return Environment.read({"SLUICE_DATA": str(tmp_path / "data"), **ports, **variables})


def test_a_certificate_that_cannot_be_used_stops_the_start_and_is_named(tmp_path):
    identity = Authority(tmp_path).issue("up")
    up.check_start(environment(tmp_path, SLUICE_TLS_CERTIFICATE=str(identity.pem)))
    with pytest.raises(CommandError, match=r"SLUICE_TLS_CERTIFICATE: .*contains no private key: set SLUICE_TLS_KEY$"):
        up.check_start(environment(tmp_path, SLUICE_TLS_CERTIFICATE=str(identity.crt)))


def test_an_address_that_this_machine_does_not_have_is_named_once_by_its_variable(tmp_path):
    with pytest.raises(CommandError, match=r"^SLUICE_BIND=999\.1\.1\.1 cannot be used \(.*\): set it to .*$"):
        up.check_start(environment(tmp_path, SLUICE_BIND="999.1.1.1"))


def test_the_banner_names_the_address_of_sluice_url_and_where_else_it_is_served(tmp_path):
    said = up.welcome(environment(tmp_path, SLUICE_PORT="29000", SLUICE_URL="http://localhost:29000"), None)
    assert "Console   http://localhost:29000/\n" in said
    said = up.welcome(environment(tmp_path, SLUICE_PORT="29000", SLUICE_URL="https://console.example.com"), None)
    assert "Console   https://console.example.com/, served at http://127.0.0.1:29000/\n" in said


def test_the_banner_names_the_ports_that_are_served(tmp_path):
    openwire = environment(tmp_path, SLUICE_STOMP_PORT="")
    said = up.welcome(openwire, None)
    assert "STOMP     at the addresses of OpenWire\n" in said
    assert f"OpenWire  tcp://127.0.0.1:{openwire.client_ports['tcp']}, for JMS applications\n" in said
    stomp = environment(tmp_path, SLUICE_OPENWIRE_PORT="", SLUICE_WS_PORT="15674")
    said = up.welcome(stomp, None)
    assert f"STOMP     127.0.0.1:{stomp.client_ports['stomp']}, ws://127.0.0.1:15674\n" in said
    assert "OpenWire  not served\n" in said


def test_addresses_with_tls_are_named_where_there_is_a_certificate(tmp_path):
    plain = environment(tmp_path)
    assert f"Console   http://127.0.0.1:{plain.console_port}/" in up.welcome(plain, None)
    assert f"Metrics   http://127.0.0.1:{plain.monitor_port}/metrics, /admin/xml/, /api/jolokia/\n" in up.welcome(
        plain, None
    )
    secure = environment(
        tmp_path,
        SLUICE_TLS_CERTIFICATE="console.pem",
        SLUICE_HTTP_PORT="8080",
        SLUICE_OPENWIRE_SSL_PORT=str(free_port()),
    )
    said = up.welcome(secure, None)
    assert f"Console   https://127.0.0.1:{secure.console_port}/, redirected to from http://127.0.0.1:8080/\n" in said
    assert f"Metrics   https://127.0.0.1:{secure.monitor_port}/metrics, " in said
    assert "also by http://\n" in said
    assert f"ssl://127.0.0.1:{secure.client_ports['ssl']}, for JMS applications" in said
