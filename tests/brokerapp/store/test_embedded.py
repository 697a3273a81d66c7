"""Test the embedded store with real servers, real kills and real files."""

import asyncio
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import redis

from brokerapp.errors import StoreUnavailable
from brokerapp.management import runbroker
from brokerapp.store.server import embedded
from brokerapp.store.server.embedded import SOCKET_PATH_LIMIT, EmbeddedStore, answer_to_ping
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.process_lock import lock_directory
from tests.waiting import wait_until

PATIENCE = 30.0
PROJECT = Path(__file__).resolve().parents[3]

OWNER = """
import sys, time
from pathlib import Path
from brokerapp.system.process_lock import lock_directory
from brokerapp.store.server import embedded
from brokerapp.store.server.embedded import EmbeddedStore
store = EmbeddedStore(Path(sys.argv[1]))
store.start()
print(store.pid, flush=True)
time.sleep(60)
"""


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def owner(folder):
    """A process of its own that owns the folder; (process, pid of its server)."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True, cwd=PROJECT
    )
    yield process, int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()


def test_it_fsyncs_every_write_and_listens_on_a_private_socket_only(folder):
    with EmbeddedStore(folder) as store:
        options = client(store.url).config_get("*")
        assert (options["appendonly"], options["appendfsync"], options["save"]) == ("yes", "always", "")
        assert (options["port"], options["maxmemory-policy"]) == ("0", "noeviction")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(store.socket.stat().st_mode) == 0o700
        assert (folder / "store.url").read_text() == store.url == f"unix://{folder}/valkey.sock"
        assert stat.S_IMODE((folder / "store.url").stat().st_mode) == 0o600


def test_what_was_written_is_there_after_stop_and_start(folder):
    with EmbeddedStore(folder) as store:
        client(store.url).set("order", "1")
    assert not store.is_alive
    with EmbeddedStore(folder) as store:
        assert client(store.url).get("order") == "1"


def test_a_killed_server_is_restarted_with_all_it_held(folder):
    with EmbeddedStore(folder) as store:
        client(store.url).set("order", "1")
        assert store.restart_if_dead() is False
        os.kill(store.pid, signal.SIGKILL)
        wait_until(lambda: not store.is_alive, "the server is dead")
        assert store.restart_if_dead() is True
        assert client(store.url).get("order") == "1"


async def test_a_server_that_cannot_be_restarted_is_tried_ever_more_rarely_and_logged_once(folder, caplog, monkeypatch):
    monkeypatch.setattr(runbroker, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(runbroker, "LONGEST_WATCH_SECONDS", 1.0)
    with EmbeddedStore(folder) as store:
        for number in range(3):
            client(store.url).set("order", str(number))
        os.kill(store.pid, signal.SIGKILL)
        wait_until(lambda: not store.is_alive, "the server is dead")
        [file] = folder.glob("appendonlydir/*.incr.aof")
        whole = file.read_bytes()
        file.write_bytes(whole.replace(b"$5\r\norder", b"$9\r\norder", 1))
        restart, attempts = store.restart_if_dead, []
        store.restart_if_dead = lambda: attempts.append(time.monotonic()) or restart()
        keeping = asyncio.create_task(runbroker._keep_alive(store))
        async with asyncio.timeout(PATIENCE):
            while len(attempts) < 4:
                await asyncio.sleep(0.05)
        assert caplog.text.count("the store does not start") == 1
        pauses = [later - sooner for sooner, later in pairwise(attempts)]
        assert all(pause >= runbroker.WATCH_SECONDS * 2 ** (at + 1) for at, pause in enumerate(pauses))
        repaired = folder / "repaired"
        repaired.write_bytes(whole)
        repaired.replace(file)  # an attempt that reads it meanwhile finds one or the other
        async with asyncio.timeout(PATIENCE):
            while "the store terminated and was restarted" not in caplog.text:
                await asyncio.sleep(0.05)
        keeping.cancel()
        assert client(store.url).get("order") == "2"


def test_the_server_ends_when_its_owner_is_killed_and_the_next_owner_finds_everything(folder, owner):
    process, server = owner
    client(f"unix://{folder}/valkey.sock").set("order", "1")
    process.kill()
    process.wait()
    with EmbeddedStore(folder) as store:  # at once: it waits for what is left of the other
        assert gone(server)
        assert client(store.url).get("order") == "1"


def test_not_even_a_stopped_server_outlives_its_owner(folder, owner):
    process, server = owner
    os.kill(server, signal.SIGSTOP)
    wait_until(lambda: psutil.Process(server).status() == psutil.STATUS_STOPPED, "the server is stopped")
    # The kernel wakes a stopped process group that loses its last parent; so the server sees its SIGTERM.
    process.kill()
    process.wait()
    with EmbeddedStore(folder) as store:
        assert gone(server)
        assert answer_to_ping(store.socket) == "+PONG"


def test_a_second_owner_is_refused_and_told_who_the_first_is(folder, owner):
    process, server = owner
    asked = time.monotonic()
    with pytest.raises(StoreUnavailable, match=f"in use by process {process.pid}"):
        EmbeddedStore(folder).start()
    assert time.monotonic() - asked < embedded.LEFTOVER_PATIENCE_SECONDS  # it waits for no owner that lives
    assert not gone(server)
    assert answer_to_ping(folder / "valkey.sock") == "+PONG"


def test_what_a_dead_owner_left_behind_keeps_the_folder_until_it_ends(folder, monkeypatch):
    monkeypatch.setattr(embedded, "LEFTOVER_PATIENCE_SECONDS", 0.1)
    folder.mkdir()
    family = lock_directory(folder)
    child = subprocess.Popen(["sleep", "60"], pass_fds=[family.family])
    family.release()
    with pytest.raises(StoreUnavailable, match=f"in use by processes that process {os.getpid()} left behind"):
        EmbeddedStore(folder).start()
    child.kill()
    child.wait()
    with EmbeddedStore(folder) as store:
        assert client(store.url).ping()


def test_a_server_started_from_a_brief_thread_lives_on(folder):
    store = EmbeddedStore(folder)
    starter = threading.Thread(target=store.start)
    starter.start()
    starter.join()
    try:
        time.sleep(0.1)  # the kernel's death signal would come within microseconds
        assert store.is_alive
        assert client(store.url).ping()
    finally:
        store.stop()


def test_a_path_too_long_for_a_socket_gets_a_short_private_one(tmp_path):
    folder = tmp_path / ("x" * SOCKET_PATH_LIMIT)
    with EmbeddedStore(folder) as store:
        assert len(str(store.socket)) <= SOCKET_PATH_LIMIT
        assert stat.S_IMODE(store.socket.parent.stat().st_mode) == 0o700
        assert (folder / "store.url").read_text() == store.url
        assert client(store.url).ping()
    assert not store.socket.parent.exists()


def test_a_damaged_file_is_reported_with_the_servers_own_words(folder):
    with EmbeddedStore(folder) as store:
        client(store.url).set("order", "1")
    [log] = folder.glob("appendonlydir/*.incr.aof")
    log.write_bytes(b"rubbish\r\n" + log.read_bytes())
    with pytest.raises(StoreUnavailable, match="Bad file format reading the append only file"):
        EmbeddedStore(folder).start()


def test_the_module_becomes_the_server_and_stops_cleanly_on_sigterm(folder):
    command = [sys.executable, "-m", "brokerapp.store.server.embedded", str(folder)]
    process = subprocess.Popen(command, cwd=PROJECT)
    try:
        wait_until(lambda: answer_to_ping(folder / "valkey.sock") == "+PONG", "the server answers")
        client(f"unix://{folder}/valkey.sock").set("order", "1")
        assert psutil.Process(process.pid).name() == "valkey-server"
        process.terminate()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    with EmbeddedStore(folder) as store:
        assert client(store.url).get("order") == "1"


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no byte be written to files meanwhile, as on a full disk."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


def test_a_full_disk_refuses_the_start_and_leaves_nothing_that_refuses_the_next_one(tmp_path):
    store = EmbeddedStore(tmp_path / "store")
    with full_disk(), pytest.raises(StoreUnavailable, match=f"store in {tmp_path}/store cannot start: file too large"):
        store.lock_folder()
    assert DataDirectory(tmp_path).embedded_url() == f"unix://{tmp_path}/store/valkey.sock"
    store.lock_folder()
    store.stop()


def test_an_empty_record_of_the_address_that_a_full_disk_left_is_replaced(tmp_path):
    store = EmbeddedStore(tmp_path / "store")
    store.folder.mkdir()
    (store.folder / "store.url").touch()
    assert DataDirectory(tmp_path).embedded_url() == f"unix://{tmp_path}/store/valkey.sock"
    store.lock_folder()
    assert (store.folder / "store.url").read_text() == store.url
    store.stop()
