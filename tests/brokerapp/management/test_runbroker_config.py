"""Test what `manage.py runbroker` reports of a file, and when it refuses to start."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

AMQP = '<transportConnector name="amqp" uri="amqp://127.0.0.1:0"/>'
#: TLS without a certificate.
SECURE = '<transportConnector name="secure" uri="stomp+ssl://127.0.0.1:0"/>'
PLAIN = '<transportConnector name="plain" uri="stomp://127.0.0.1:0"/>'


@pytest.fixture
def file(tmp_path):
    """Writes a file with these connectors."""

    def write(*connectors):
        path = tmp_path / "activemq.xml"
        path.write_text(
            '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="b"><transportConnectors>'
            f"{''.join(connectors)}</transportConnectors></broker>"
        )
        return str(path)

    return write


def run(file, data, *options):
    """What it says on standard output and on standard error."""
    out, errors = StringIO(), StringIO()
    try:
        call_command("runbroker", "--config", file, "--data", str(data), *options, stdout=out, stderr=errors)
    except CommandError as error:
        errors.write(f"{error}\n")
    return out.getvalue(), errors.getvalue()


@pytest.mark.parametrize("connectors", [(), (AMQP,), (SECURE,), (AMQP, SECURE)])
def test_a_broker_without_a_connector_that_is_served_does_not_start(file, tmp_path, connectors):
    out, errors = run(file(*connectors), tmp_path / "data")
    assert out == ""
    remedy = "correct what is reported above" if SECURE in connectors else "add one, such as"
    assert f"no transportConnector of b is served, so no client could connect: {remedy}" in errors
    assert not (tmp_path / "data").exists()


def test_each_connector_that_is_not_served_is_reported_once(file, tmp_path):
    errors = run(file(AMQP, SECURE, PLAIN), tmp_path / "data", "--print-config")[1]
    told = [line for line in errors.splitlines() if "is not served" in line]
    assert [("amqp://" in line, "stomp+ssl://" in line) for line in told] == [(True, False), (False, True)]
    assert "no transportConnector" not in errors


def test_a_node_that_runs_alone_loads_nothing_of_the_console(file, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-X", "importtime", "manage.py", "runbroker", "--print-config"]
    run = subprocess.run(
        [*command, "--config", file(PLAIN), "--data", str(tmp_path / "data")],
        env=environment, cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    imported = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
    assert "brokerapp.runtime.node" in imported
    assert not {name for name in imported if name.partition(".")[0] in ("console", "analytics", "ninja", "allauth")}
