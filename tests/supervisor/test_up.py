"""`manage.py up` as a new user meets it: all real processes, in a data folder and on ports of their own."""

import re
import signal
import socket
import stat
import subprocess

import psutil
import pytest
import stomp

from tests.conftest import until
from tests.e2e.installation import STOP_SECONDS, Installation

QUEUE = "/queue/first.order"
PARTS = 8


def client(installation: Installation, password: str) -> stomp.StompConnection12:
    """A STOMP client logged in as the first admin."""
    made = stomp.StompConnection12([("127.0.0.1", installation.stomp)])
    made.connect("admin", password, wait=True)
    return made


def stop(installation: Installation) -> list[int]:
    """Stop it as Ctrl-C does; which of its processes are still there."""
    family = psutil.Process(installation.process.pid).children(recursive=True)
    assert len(family) >= PARTS
    installation.process.send_signal(signal.SIGINT)
    assert installation.process.wait(STOP_SECONDS) == 0, installation.output.read_text()
    return [child.pid for child in family if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
@pytest.mark.spark
def test_one_command_starts_everything_and_the_next_start_finds_it_all_again(tmp_path):
    kept = tmp_path / "data" / "admin-password"
    with Installation(tmp_path / "data") as first:
        said = first.output.read_text()
        password = re.search(r"user admin, password (\S+) \(kept in", said).group(1)
        assert kept.read_text().strip() == password
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert f"http://127.0.0.1:{first.console}/" in said
        shop = client(first, password)
        stored = stomp.listener.WaitingListener("stored")
        shop.set_listener("stored", stored)
        shop.send(QUEUE, "one lamp", headers={"persistent": "true"}, receipt="stored")
        stored.wait_on_receipt()
        shop.disconnect()
        assert stop(first) == []

    with Installation(tmp_path / "data") as second:
        said = second.output.read_text()
        assert password not in said
        assert str(kept) in said
        buyer = client(second, password)
        received = stomp.listener.TestListener(print_to_log=False)
        buyer.set_listener("received", received)
        buyer.subscribe(QUEUE, id="1")
        until(lambda: received.message_list, "the message that was stored before")
        assert [body for _, body in received.message_list] == ["one lamp"]
        buyer.disconnect()


def test_a_taken_port_stops_the_start_and_is_named(tmp_path):
    here = Installation(tmp_path / "data")
    with socket.create_server(("127.0.0.1", here.stomp)):
        done = subprocess.run(here.manage("up"), env=here.environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"port {here.stomp} on 127.0.0.1, meant for STOMP, is taken" in done.stderr
    assert "set SLUICE_STOMP_PORT to another one" in done.stderr
