"""Test restores that are killed, and two of them at once: the next restore begins again, or all is complete."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from brokerapp.backup import data_folder, target_store
from brokerapp.backup.data_folder import HARMLESS, WORK_FOLDER, RestoreOwner, check_restored, restoring
from brokerapp.backup.staged_store import StagedStore
from brokerapp.backup.target_store import TargetStore
from brokerapp.errors import BackupRefused
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system import atomic_files
from brokerapp.system.process_lock import lock_directory
from tests.backup.restored_broker import BrokerInFolder, content_of, restore
from tests.faults.servers import Server
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

KEYS = StoreKeys("orders")
BODIES = [f"order {number}" for number in range(50)]


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "server")
    yield server
    server.end()


def url_of(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}/0"


def killed_at(step: int, *arguments) -> bool:
    """Restore in a process that is killed before this step; return whether it had so many."""
    child = os.fork()
    if child == 0:
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                os.kill(os.getpid(), 9)

        for owner, name in (
            (Path, "rename"), (TargetStore, "claim"), (TargetStore, "fill"), (TargetStore, "complete"),
            (TargetStore, "release"), (StagedStore, "keep_only"),
        ):  # fmt: skip
            _count_calls(owner, name, count)
        os._exit(restore(*arguments))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _count_calls(owner: type, name: str, count) -> None:
    real = getattr(owner, name)

    def counted(*arguments):
        count()
        return real(*arguments)

    setattr(owner, name, counted)


@pytest.mark.parametrize(
    ("is_embedded", "role", "every"),
    [
        (False, "--replace", 5),
        (True, "--as-copy", 6),
        pytest.param(False, "--replace", 1, marks=pytest.mark.long),
        pytest.param(True, "--as-copy", 1, marks=pytest.mark.long),
    ],
)
def test_a_restore_that_was_killed_anywhere_is_begun_again_or_complete(
    plain, server, tmp_path, capsys, is_embedded, role, every
):
    step, outcomes = 1, set()
    while True:
        data = tmp_path / f"data-{step}"
        arguments = [plain, "--data", data, *([] if is_embedded else ["--redis", url_of(server)])]
        server.ask("FLUSHALL")
        if not killed_at(step, *arguments, role):
            break
        if restore("--data", data, role) == 0:
            outcomes.add("complete")
        else:
            assert restore(*arguments, role) == 0, (step, capsys.readouterr().err)
            outcomes.add("again")
        assert not (data / WORK_FOLDER).exists()
        assert (data / "restored.json").exists() == (role == "--as-copy")
        if is_embedded:
            with EmbeddedStore(data / "store") as store:
                assert content_of(store.url, "orders", ["orders"]) == {"orders": BODIES}
        else:
            assert content_of(url_of(server), "orders", ["orders"]) == {"orders": BODIES}
            assert server.ask("EXISTS", KEYS.restored) == 0
        step += every
    assert step > 6
    assert "again" in outcomes
    assert every > 1 or outcomes == {"again", "complete"}


def test_nothing_starts_in_the_folder_of_a_restore_that_was_killed(plain, tmp_path):
    broker = BrokerInFolder(tmp_path, "data")
    assert killed_at(6, plain, "--data", broker.data)
    assert "was not completely restored from the backup of 20" in broker.refusal()
    assert not (broker.data / "store").exists()


def test_two_restores_into_one_store_are_told_apart_from_their_beginning(plain, server, tmp_path, capsys, monkeypatch):
    """The second one is told before it has copied anything, and changes nothing."""
    prepare = StagedStore.prepare
    seconds: list[int] = []

    def restore_beside(*arguments):
        if not seconds:
            seconds.append(0)
            for data in ("second", "first"):
                assert restore(plain, "--data", tmp_path / data, "--redis", url_of(server)) == 1
        return prepare(*arguments)

    monkeypatch.setattr(StagedStore, "prepare", restore_beside)
    assert restore(plain, "--data", tmp_path / "first", "--redis", url_of(server), "--replace") == 0
    into_store, into_folder = capsys.readouterr().err.splitlines()
    assert f"error: another restore writes to the store {url_of(server)} (process {os.getpid()} on " in into_store
    assert "if it was killed, try again in 30 seconds" in into_store
    assert into_folder == (
        f"error: another restore into {tmp_path / 'first'} is under way (process {os.getpid()}): wait for its end"
    )
    assert not (tmp_path / "second").exists()
    assert content_of(url_of(server), "orders", ["orders"]) == {"orders": BODIES}


def test_a_store_that_a_killed_restore_filled_is_free_when_its_lease_has_expired(
    plain, server, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(target_store, "LEASE_SECONDS", 2)
    arguments = ["--redis", url_of(server), "--replace"]
    assert killed_at(5, plain, "--data", tmp_path / "first", *arguments)
    assert restore(plain, "--data", tmp_path / "second", *arguments) == 1
    assert "try again in 2 seconds" in capsys.readouterr().err
    wait_until(lambda: not server.ask("EXISTS", KEYS.restoring), "the lease expires")
    assert restore(plain, "--data", tmp_path / "second", *arguments) == 0
    assert content_of(url_of(server), "orders", ["orders"]) == {"orders": BODIES}


def test_a_restore_whose_store_another_one_took_over_ends_and_removes_nothing(
    plain, server, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(target_store, "RENEW_SECONDS", 0.05)
    fill = TargetStore.fill

    def lose(store, source):
        server.ask("SET", KEYS.restoring, "of another one")
        server.ask("SET", KEYS.restored, "of another one")
        wait_until(lambda: store._is_lost, "it finds out")
        server.ask("SET", "{others}:state", "there")
        monkeypatch.setattr(TargetStore, "fill", fill)
        store.fill(source)

    monkeypatch.setattr(TargetStore, "fill", lose)
    assert restore(plain, "--data", tmp_path / "data", "--redis", url_of(server)) == 1
    assert "another restore took over the store" in capsys.readouterr().err
    assert sorted(server.ask("KEYS", "*")) == sorted(
        [KEYS.restoring.encode(), KEYS.restored.encode(), b"{others}:state"]
    )
    assert not (tmp_path / "data").exists()


# -- the data folder alone

OWNER = RestoreOwner("first", RestoredMark(RestoredRole.UNDECIDED, "orders", "mars", "2026-11-28T10:00:00.000+00:00"))
PREPARED = ("store", "restored.json", "a", "b")


def restored_into(data: Path, owner: RestoreOwner) -> RestoreOwner | None:
    """Restore some files into a data folder; return the restore that was killed in it before."""
    with restoring(data, owner, HARMLESS) as folder:
        for name in PREPARED:
            (folder.prepared / name).touch()
        folder.move_up()
        return folder.former


def killed_at_call(step: int, data: Path, *functions: tuple[object, str]) -> bool:
    """Restore files in a process that is killed before this call of these functions; return whether it was."""
    child = os.fork()
    if child == 0:
        try:
            calls = itertools.count(1)

            def count() -> None:
                if next(calls) == step:
                    os.kill(os.getpid(), 9)

            for owner, name in functions:
                _count_calls(owner, name, count)
            restored_into(data, replace(OWNER, id="killed"))
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("first", [3, 7, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 2, 4, 5, 6))])
def test_a_restore_that_is_killed_while_it_removes_what_another_one_left_is_not_taken_for_complete(tmp_path, first):
    for second in itertools.count(1):
        data = tmp_path / f"data-{second}"
        assert killed_at_call(first, data, (Path, "rename"))
        if not killed_at_call(second, data, (data_folder, "_remove"), (Path, "rename")):
            break
        with suppress(BackupRefused):
            check_restored(data)
            assert sorted(each.name for each in data.iterdir()) == sorted(PREPARED), (first, second)
            continue
        restored_into(data, OWNER)
        assert sorted(each.name for each in data.iterdir()) == sorted(PREPARED)
    assert second > 4


def test_what_was_prepared_is_on_disk_before_any_of_it_is_moved(tmp_path, monkeypatch):
    synced: list[list[str]] = []
    sync = atomic_files.sync_file_system

    def sync_and_look(path):
        sync(path)
        synced.append(sorted(each.name for each in path.iterdir()))

    monkeypatch.setattr(atomic_files, "sync_file_system", sync_and_look)
    restored_into(tmp_path / "data", OWNER)
    assert synced == [sorted(PREPARED)]


def test_what_a_killed_restore_left_is_known_until_its_server_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(data_folder, "LEFTOVER_SECONDS", 0.1)
    assert killed_at_call(4, tmp_path / "data", (Path, "rename"))
    server = tmp_path / "data" / WORK_FOLDER / "prepared" / "server"
    server.mkdir()
    (server / "store.url").touch()
    lock = lock_directory(server)
    with pytest.raises(BackupRefused, match="a restore that was killed left a server"):
        restored_into(tmp_path / "data", OWNER)
    lock.release()
    assert restored_into(tmp_path / "data", OWNER).id == "killed"
