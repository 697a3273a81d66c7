"""Test that snapshots of several stores belong together: transactions over them are restored whole or not at all."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager

import pytest

from brokerapp.backup import store_snapshots
from brokerapp.backup.server_snapshot import ServerSnapshot
from tests.backup.restored_broker import backup, content_of, restore
from tests.faults.servers import Server
from tests.ports import free_port
from tests.runbroker import Run
from tests.shards.sharded_broker import CONFIG, queue_in, sharded_broker
from tests.shards.transactions import Transactions
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SHARDS = 3


@contextmanager
def transactions_under_way(transactions: Transactions, port: int, clients: int = 4):
    """Send transactions until the end of the context."""
    ending = threading.Event()

    async def run() -> None:
        tasks = [asyncio.create_task(transactions.run(port, f"client.{number}", number)) for number in range(clients)]
        await asyncio.to_thread(ending.wait)
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(60)


def url_of(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}/0"


@pytest.mark.parametrize("backups", [2, pytest.param(15, marks=pytest.mark.long)])
def test_transactions_over_stores_are_restored_whole_or_not_at_all(tmp_path, backups, capsys, monkeypatch):
    _slow_down_requests(monkeypatch)
    queues = [queue_in(number % SHARDS, f"backed.up.{number}", SHARDS) for number in range(2 * SHARDS)]
    transactions, restored = Transactions(queues), []
    confirmed: list[set[str]] = []
    with sharded_broker(tmp_path, shards=SHARDS) as original:
        with transactions_under_way(transactions, original["a"].port):
            for number in range(backups):
                least = len(transactions.confirmed) + 60
                wait_until(lambda least=least: len(transactions.confirmed) >= least, "transactions are under way")
                confirmed.append(set(transactions.confirmed))
                assert backup(tmp_path / f"file-{number}", "--redis", original.url, "--name", "sharded") == 0
            assert "writes to the stores were held for" in capsys.readouterr().out
        assert original["a"].run.is_alive
    for number in range(backups):
        restored.append(_restored_content(tmp_path, number, queues))
        transactions.check(restored[-1], confirmed[number])


def _slow_down_requests(monkeypatch) -> None:
    """Let each server fork much later than the one before: without a pause their snapshots would not fit."""
    request = ServerSnapshot.request

    def late(snapshot: ServerSnapshot) -> None:
        time.sleep(0.1)
        request(snapshot)

    monkeypatch.setattr(ServerSnapshot, "request", late)


def _restored_content(folder, number, queues) -> dict[str, list[str]]:
    """Restore into new stores, let a node finish what was under way, and return what the queues hold then."""
    stores = [Server(folder / f"restored-{number}-{shard}") for shard in range(SHARDS)]
    try:
        others = [word for shard in (1, 2) for word in ("--shard", f"{shard}={url_of(stores[shard])}")]
        arguments = ("--data", folder / f"data-{number}", "--redis", url_of(stores[0]), *others, "--replace")
        assert restore(folder / f"file-{number}", *arguments) == 0
        config = folder / f"restored-{number}.xml"
        config.write_text(CONFIG.format(port=free_port(), more=""))
        log = folder / f"restored-{number}.log"
        run = Run("--config", config, "--data", folder / "node", "--redis", url_of(stores[0]), "--no-trace", log=log)
        run.ready()
        found = content_of(url_of(stores[0]), "sharded", queues)
        assert run.stop() == 0
        return found
    finally:
        for each in stores:
            each.end()


def test_each_shard_needs_an_empty_store(tmp_path, capsys):
    with sharded_broker(tmp_path, shards=2) as original:
        assert backup(tmp_path / "file", "--redis", original.url, "--name", "sharded") == 0
        assert restore(tmp_path / "file", "--data", tmp_path / "data") == 1
        assert "broker sharded has 2 shards: name an empty store for each: --shard 1=URL" in capsys.readouterr().err
        used = original.url.replace(str(original.shards[0].port), str(original.shards[1].port))
        assert restore(tmp_path / "file", "--data", tmp_path / "data", "--shard", f"1={used}") == 1
        assert "holds broker sharded already" in capsys.readouterr().err
        assert not (tmp_path / "data").exists()
        assert original["a"].run.is_alive


def test_shards_in_different_databases_of_one_server_are_refused_and_named(tmp_path, capsys):
    server = Server(tmp_path / "server")
    try:
        url = f"redis://127.0.0.1:{server.port}"
        server.ask("HSET", "{orders}:state", "seq", 1)
        server.ask("HSET", "{orders}:shards", "1", json.dumps({"url": f"{url}/1", "state": "serving"}))
        assert backup(tmp_path / "file", "--redis", f"{url}/0", "--name", "orders") == 1
        assert "shards 0 and 1 are in different databases of one server" in capsys.readouterr().err
        assert not (tmp_path / "file").exists()
    finally:
        server.end()


def test_a_store_that_writes_a_file_in_the_background_is_waited_for(tmp_path, capsys):
    with sharded_broker(tmp_path, shards=2) as original:
        original.shards[1].ask("CONFIG", "SET", "rdb-key-save-delay", "2000000")
        original.shards[1].ask("BGSAVE")
        assert original.shards[1].info("persistence", "rdb_bgsave_in_progress") == 1

        def end_of_file() -> None:
            original.shards[1].ask("CONFIG", "SET", "rdb-key-save-delay", "0")
            original.shards[1].ask("BGSAVE", "CANCEL")

        threading.Timer(0.5, end_of_file).start()
        assert backup(tmp_path / "file", "--redis", original.url, "--name", "sharded") == 0
        assert "store of shard 1" in capsys.readouterr().out


def test_writes_go_on_when_a_store_takes_no_snapshot_in_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(store_snapshots, "FORK_SECONDS", 0.0)
    monkeypatch.setattr(store_snapshots, "ATTEMPTS", 2)
    with sharded_broker(tmp_path, shards=2) as original:
        assert backup(tmp_path / "file", "--redis", original.url, "--name", "sharded") == 1
        assert "not all stores took a snapshot within 0 s: try again" in capsys.readouterr().err
        assert not (tmp_path / "file").exists()
        for store in original.shards:
            assert store.ask("SET", "written", "at once")
