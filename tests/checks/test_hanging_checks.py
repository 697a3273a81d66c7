"""Test checks of what does not answer: they end at a limit, delay nothing else, and do not pile up threads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from brokerapp.checks import certificates, store
from brokerapp.checks.certificates import CertificateUse
from brokerapp.checks.results import Check, Finding, Level
from brokerapp.checks.runner import run_checks
from brokerapp.checks.store import measure_store
from brokerapp.model.transport_connector import KeyStore, TlsStores
from brokerapp.system.environment import PROJECT
from tests.faults.servers import Server
from tests.waiting import wait_until

LIMIT = 0.3


def _certificate(path: str) -> object:
    return certificates.measure_certificates([CertificateUse(TlsStores(KeyStore(path)))])


CERTIFICATE = Check("tls", "TLS", "Certificates", _certificate, certificates.judge_certificates)
OTHER = Check("other", "Other", "Works", lambda path: path, lambda found: [Finding.ok(found)])


@pytest.fixture
def blocking(tmp_path):
    """A file whose opening blocks until somebody writes to it, as one on a network file system without its server."""
    path = tmp_path / "certificate.pem"
    os.mkfifo(path)
    yield path
    if path.exists():
        release(path)


def release(path) -> None:
    """Let all who wait for the file have it, and find nothing in it."""
    while True:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:  # nobody waits
            return
        time.sleep(0.01)


def checking() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == f"check {_certificate.__name__}"]


def test_a_file_that_blocks_fails_at_the_limit_and_is_read_by_one_thread_however_often_it_is_checked(blocking):
    for _ in range(4):
        hanging, other = run_checks([CERTIFICATE, OTHER], str(blocking), limit=LIMIT)
        assert hanging.level is Level.FAILURE
        assert hanging.findings[0].text.startswith("The check did not answer within ")
        assert other.level is Level.OK
    assert len(checking()) == 1
    release(blocking)
    wait_until(lambda: not checking(), "the check ends")
    blocking.unlink()
    [result] = run_checks([CERTIFICATE], str(blocking), limit=LIMIT)
    assert "No such file" in result.findings[0].text, "it is checked again"


def test_a_process_ends_while_a_check_hangs(blocking):
    script = (
        "import sys; from tests.checks.test_hanging_checks import CERTIFICATE, LIMIT; "
        "from brokerapp.checks.runner import run_checks; print(run_checks([CERTIFICATE], sys.argv[1], LIMIT)[0].level)"
    )
    command = [sys.executable, "-c", script, str(blocking)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "failure\n"


@pytest.mark.parametrize("module", ["console.checks.command_line", "brokerapp.checks.command_line"])
def test_a_data_folder_that_does_not_answer_is_reported_before_anything_is_checked(blocking, module):
    data = blocking.parent
    (data / "store").mkdir()
    os.mkfifo(data / "store" / "store.url")
    script = (
        "import importlib, sys; from brokerapp.checks import runner; runner.LIMIT_SECONDS = 0.5; "
        f"sys.exit(importlib.import_module('{module}').check([], 'sluice check'))"
    )
    variables = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, env=variables | {"SLUICE_DATA": str(data)}, capture_output=True,
        text=True, timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"{data} did not answer within 0.5 s: look for a disk that does not answer" in done.stderr


def test_a_frozen_store_does_not_answer_within_a_named_time(tmp_path):
    server = Server(tmp_path / "store")
    try:
        server.freeze()
        began = time.monotonic()
        [finding] = store.judge_reachable(measure_store(f"redis://127.0.0.1:{server.port}", "frozen", 0))
        assert time.monotonic() - began < 10
    finally:
        server.thaw()
        server.end()
    assert finding.level is Level.FAILURE
    assert "does not answer" in finding.text


def test_a_check_whose_judgement_fails_does_not_stop_the_others():
    def broken(_found: object) -> list[Finding]:
        raise KeyError("aof_enabled")

    failed, other = run_checks([Check("a", "S", "A", lambda path: path, broken), OTHER], "fine")
    assert (failed.level, other.level) == (Level.FAILURE, Level.OK)
    assert "could not be carried out: KeyError: 'aof_enabled'" in failed.findings[0].text


def test_a_server_that_accepts_a_connection_and_says_nothing_shows_no_certificate_and_does_not_block():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert certificates._shown_at(*silent.getsockname()) is None
        assert time.monotonic() - began < certificates.HANDSHAKE_SECONDS + 2
