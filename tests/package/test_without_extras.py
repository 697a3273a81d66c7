"""Test what runs where extras are not installed."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from brokerapp.errors import CONFIGURATION_EXIT_CODE
from brokerapp.system import extras
from brokerapp.version import PRODUCT
from tests.package.clients import exchange
from tests.package.without import ANALYTICS, CONSOLE, without
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parents[2]
SLUICE = (sys.executable, "-m", "brokerapp.management.sluice")
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="alone">
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
#: Prints the names of the processes of an installation after everything that its processes import was imported.
CONSOLE_WITHOUT_ANALYTICS = """
import json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
import console.asgi, console.exporters.server.asgi, console.tasks, analytics.tasks, analytics.archive.archiver
from django.conf import settings
from django.urls import get_resolver
from console.ops.preload import load_results_soon
from brokerapp.checks.ports import port_uses
from console.ops.processes import process_specs
get_resolver().url_patterns
load_results_soon().join()
names = [each.name for each in process_specs(settings.SLUICE)]
print(json.dumps([names, [each.use for each in port_uses(settings.SLUICE)]]))
"""


def say(*command, environment, status=0):
    """What a command that ends by itself prints."""
    done = subprocess.run(
        list(map(str, command)), cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


def test_a_broker_alone_serves_clients_and_operators(tmp_path):
    environment = without(tmp_path, *CONSOLE, *ANALYTICS)
    port, config, data = free_port(), tmp_path / "activemq.xml", tmp_path / "data"
    config.write_text(CONFIG.format(port=port))
    assert "No module named 'django'" in say(sys.executable, "-c", "import django", environment=environment, status=1)
    node = subprocess.Popen(
        [*SLUICE, "broker", "--config", config, "--data", data],
        cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert node.stdout.readline() == "ready\n"
        assert exchange(port, "hello") == (PRODUCT, "hello")
        assert say(*SLUICE, "ctl", "--data", data, "create", "queue://new", environment=environment) == (
            "queue://new created\n"
        )
        said = say(*SLUICE, "ctl", "--data", data, "tables", environment=environment, status=1)
        assert said == f"error: {extras.missing('analytics', 'tables needs')}\n"
        node.send_signal(signal.SIGTERM)
        assert node.stdout.read() == "stopped\n"
        assert node.wait(30) == 0
    finally:
        node.kill()
        node.stdout.close()


@pytest.mark.parametrize("verb", ["up", "demo"])
def test_a_verb_whose_extra_is_missing_names_it(tmp_path, verb):
    environment = without(tmp_path, *CONSOLE, *ANALYTICS)
    assert say(*SLUICE, verb, environment=environment, status=1) == (
        f"error: `sluice {verb}` needs the extra 'console', which is not installed. Install it from Sluice's wheel: "
        f"{sys.executable} -m pip install '{extras.WHEEL}[console]'\n"
    )


def test_the_help_of_a_verb_whose_extra_is_missing_says_what_it_does(tmp_path):
    said = say(*SLUICE, "up", "--help", environment=without(tmp_path, *CONSOLE, *ANALYTICS))
    assert said.startswith("sluice up: start broker, console and workers on this machine\n")
    assert "needs the extra 'console'" in said


def test_the_console_loads_without_analytics_and_starts_no_spark(tmp_path):
    environment = {**without(tmp_path, *ANALYTICS), "SLUICE_DATA": str(tmp_path / "data")}
    names, uses = json.loads(say(sys.executable, "-c", CONSOLE_WITHOUT_ANALYTICS, environment=environment))
    assert names == ["store", "web", "monitor", "archiver", "worker-default", "beat"]
    assert "Spark" not in uses


def test_settings_that_need_analytics_are_refused_without_it(tmp_path):
    asked = ("SLUICE_EXPORT_SPANS", "SLUICE_STREAM_TABLES")
    environment = {**without(tmp_path, *ANALYTICS), "SLUICE_DATA": str(tmp_path / "data"), **dict.fromkeys(asked, "1")}
    refused = "\n".join(extras.missing("analytics", f"{name} needs") for name in asked)
    assert say(*SLUICE, "up", environment=environment, status=CONFIGURATION_EXIT_CODE) == f"error: {refused}\n"
