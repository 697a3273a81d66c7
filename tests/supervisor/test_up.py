"""`manage.py up` as a new user meets it: all real processes, in a data folder and on ports of their own."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import stomp

from tests.conftest import until

PROJECT = Path(__file__).resolve().parents[2]
START_SECONDS = 60.0
STOP_SECONDS = 40.0
QUEUE = "/queue/first.order"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Installation:
    """A data folder, its ports, and `manage.py up` on them."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        console, self.stomp_port, spark = free_ports(3)
        self.url = f"http://127.0.0.1:{console}/"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")},
            "SLUICE_DATA": str(self.data),
            "SLUICE_PORT": str(console),
            "SLUICE_STOMP_PORT": str(self.stomp_port),
            "SLUICE_SPARK_PORT": str(spark),
        }
        self.said_file = folder / "said"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it and wait until it says that it is ready; what it said."""
        with self.said_file.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                env=self.environment,
                cwd=PROJECT,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        until(lambda: "is ready" in self.said or self.process.poll() is not None, "Sluice is ready", START_SECONDS)
        assert self.process.poll() is None, self.said
        return self.said

    @property
    def said(self) -> str:
        return self.said_file.read_text()

    def stop(self) -> list[int]:
        """Stop it as Ctrl-C does; which of its processes are still there."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(STOP_SECONDS) == 0, self.said
        return [child.pid for child in family if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]

    def client(self, password: str) -> stomp.StompConnection12:
        """A STOMP client logged in as the first admin."""
        client = stomp.StompConnection12([("127.0.0.1", self.stomp_port)])
        client.connect("admin", password, wait=True)
        return client


@pytest.fixture
def installation(tmp_path):
    made = Installation(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.terminate()
        made.process.wait(STOP_SECONDS)


@pytest.mark.slow
@pytest.mark.spark
def test_one_command_starts_everything_and_the_next_start_finds_it_all_again(installation):
    said = installation.start()
    password = re.search(r"user admin, password (\S+) \(kept in", said).group(1)
    kept = installation.data / "admin-password"
    assert kept.read_text().strip() == password
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert installation.url in said
    client = installation.client(password)
    stored = stomp.listener.WaitingListener("stored")
    client.set_listener("stored", stored)
    client.send(QUEUE, "one lamp", headers={"persistent": "true"}, receipt="stored")
    stored.wait_on_receipt()
    client.disconnect()
    assert installation.stop() == []

    said = installation.start()
    assert password not in said
    assert str(kept) in said
    client = installation.client(password)
    received = stomp.listener.TestListener(print_to_log=False)
    client.set_listener("received", received)
    client.subscribe(QUEUE, id="1")
    until(lambda: received.message_list, "the message that was stored before")
    assert [body for _, body in received.message_list] == ["one lamp"]
    client.disconnect()
    assert installation.stop() == []


def test_a_taken_port_stops_the_start_and_is_named(installation):
    with socket.create_server(("127.0.0.1", installation.stomp_port)):
        done = subprocess.run(
            [sys.executable, "manage.py", "up"],
            env=installation.environment,
            cwd=PROJECT,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1
    assert f"port {installation.stomp_port} on 127.0.0.1, meant for STOMP, is taken" in done.stderr
    assert "set SLUICE_STOMP_PORT to another one" in done.stderr
