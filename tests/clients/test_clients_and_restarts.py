"""Clients of other makers through a restart of the broker: Ruby's stomp, Perl's Net::Stomp, PHP's stomp, and
JavaScript's stompit and stompjs 2, each with queues, topics, acknowledgements and transactions.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokerapp.config import default_config
from tests.clients.conftest import HERE, STOMPJS, missing
from tests.ports import free_port
from tests.protocol.running_node import RunningNode

pytestmark = pytest.mark.scenario("SC-15")
#: Seconds a client's script may take, with the restart.
PATIENCE = 120
#: Which versions a client speaks.
RUBY, PERL, PHP = ("1.0", "1.1", "1.2"), ("1.0", "1.1"), ("1.0",)


@pytest.fixture(scope="module")
def node(store_url) -> Iterator[RunningNode]:
    """A node that listens at the same port after a restart."""
    running = RunningNode(default_config("restarting", free_port()), store_url)
    yield running
    running.stop()


class Script:
    """A client's script: it is told what to do in JSON, says `restart` when the broker is to, and tells what it saw."""

    def __init__(self, node: RunningNode, log: Path) -> None:
        self._node, self._log = node, log

    def run(self, command: list[str], version: str, name: str) -> dict:
        """Run it to its end."""
        task = json.dumps({"port": self._node.port, "version": version, "name": name})
        with (
            self._log.open("w") as errors,
            subprocess.Popen(
                [*command, task], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            timer = threading.Timer(PATIENCE, process.kill)
            timer.start()
            try:
                said = list(self._heard(process))
            finally:
                timer.cancel()
                process.kill()
        assert said, self._log.read_text()
        return json.loads(said[-1])

    def _heard(self, process: subprocess.Popen) -> Iterator[str]:
        for line in process.stdout:
            if line == "restart\n":
                self._node.restart()
                process.stdin.write("go on\n")
                process.stdin.flush()
            else:
                yield line


@pytest.fixture
def script(node, tmp_path) -> Script:
    return Script(node, tmp_path / "errors.log")


def installed(check: list[str], what: str) -> None:
    """Skip a test whose client is not installed."""
    try:
        subprocess.run(check, check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.CalledProcessError):
        missing(f"there is no {what}")


def seen(version: str, name: str, *, header: str = "plain", nacks: bool = True, large: int = 300_000) -> dict:
    """What a client is to see."""
    told = {
        "version": version,
        "text": "Grüße ☃",
        "header": header,
        "destination": f"/queue/{name}",
        "transaction": "committed",
        "large": large,
        "after unsubscribing": 0,
        "kept": "kept",
        "redelivered": "true",
        "after": "after",
    }
    return {**told, "dead letter": "unwanted"} if nacks else told


@pytest.mark.parametrize("version", RUBY)
def test_ruby_s_stomp(script, version):
    installed(["ruby", "-e", 'require "stomp"'], "ruby-stomp")
    name, is_old = f"ruby.{version}", version == "1.0"
    told = script.run(["ruby", str(HERE / "ruby_client.rb")], version, name)
    assert told == seen(version, name, header="plain" if is_old else "a:b\nc\\d", nacks=not is_old)


@pytest.mark.parametrize("version", PERL)
def test_perl_s_net_stomp(script, version):
    installed(["perl", "-MNet::Stomp", "-MJSON::PP", "-e", "1"], "libnet-stomp-perl")
    name = f"perl.{version}"
    told = script.run(["perl", str(HERE / "perl_client.pl")], version, name)
    assert told == seen(version, name, nacks=version != "1.0")


@pytest.mark.parametrize("version", PHP)
def test_php_s_stomp(script, version):
    installed(["php", "-r", 'exit(extension_loaded("stomp") ? 0 : 1);'], "php-stomp")
    name = f"php.{version}"
    assert script.run(["php", str(HERE / "php_client.php")], version, name) == seen(version, name, nacks=False)


@pytest.mark.parametrize("version", RUBY)
def test_stompit(script, node_js, version):
    name, is_old = f"stompit.{version}", version == "1.0"
    told = script.run([node_js, str(STOMPJS / "stompit.mjs")], version, name)
    assert told == seen(version, name, header="plain" if is_old else "a:b\nc\\d", nacks=not is_old)


def test_stompjs_2(script, node_js):
    """It offers 1.1 and 1.0, escapes no headers, and reads no large messages over TCP."""
    told = script.run([node_js, str(STOMPJS / "stompjs2.mjs")], "1.1", "stompjs2")
    assert told == seen("1.1", "stompjs2", large=10_000)
