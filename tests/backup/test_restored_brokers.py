"""Test restored brokers: what they hold, that none acts as the original unasked, and that the original goes on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections import Counter

import pytest
import redis

from analytics.archive.trace_stream import TraceStream
from brokerapp.backup import key_copy
from brokerapp.backup.broker_restore import RestoreTarget, restore_backup
from brokerapp.backup.container import BackupReader
from brokerapp.backup.key_copy import copy_keys
from brokerapp.backup.server_snapshot import ServerSnapshot
from brokerapp.errors import StoreUnavailable
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.server.durability import restore_notice, rollback_notice
from brokerapp.system.checkout import command
from brokerapp.system.environment import PROJECT
from tests.backup.restored_broker import BrokerInFolder, backup, content_of, restore
from tests.faults.load import Account
from tests.faults.servers import Server
from tests.interop.proxy import Proxy
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def broker_in(tmp_path):
    """Make brokers with data folders; they end with the test."""
    made = []

    def broker_in(data: str, *options: str, **more: str) -> BrokerInFolder:
        made.append(BrokerInFolder(tmp_path, data, *options, **more))
        return made[-1]

    yield broker_in
    for each in made:
        each.kill()


@pytest.fixture
def servers(tmp_path):
    """Start stores; they end with the test."""
    made = []

    def start(name: str, **options: str) -> Server:
        made.append(Server(tmp_path / name, **options))
        return made[-1]

    yield start
    for each in made:
        each.end()


def url_of(server: Server, database: int = 0) -> str:
    return f"redis://127.0.0.1:{server.port}/{database}"


class Load:
    """Producers of two queues, of which one is consumed, in a thread."""

    def __init__(self, port: int, messages: int) -> None:
        self.account, self._port, self._messages = Account(), port, messages
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self) -> None:
        consumer = asyncio.create_task(self.account.consume(self._port, "worked"))
        producers = [
            self.account.produce(self._port, f"/queue/{queue}", f"{queue}.{number}", self._messages)
            for queue in ("kept", "worked")
            for number in range(2)
        ]
        await asyncio.gather(*producers)
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def confirmed(self) -> int:
        return sum(map(len, self.account.confirmed.values()))


def test_what_was_confirmed_before_the_backup_began_is_restored_exactly(broker_in, tmp_path):
    original = broker_in("original")
    original.start()
    with Load(original.port, 1_000) as load:
        account = load.account
        wait_until(lambda: load.confirmed > 500 and len(account.acked["worked"]) > 100, "messages under way")
        kept, worked = (set(account.confirmed[f"/queue/{queue}"]) for queue in ("kept", "worked"))
        acked = set(account.acked["worked"])
        assert backup(tmp_path / "file", "--data", original.data) == 0
        sent, delivered = set(account.sent), set(account.delivered["worked"])
        assert len(account.acked["worked"]) > len(acked), "nothing went on meanwhile"
    assert len(account.confirmed["/queue/kept"]) == 2_000, "the original was disturbed"

    assert restore(tmp_path / "file", "--data", tmp_path / "restored", "--as-copy") == 0
    restored = broker_in("restored")
    restored.start()
    found = {queue: restored.bodies(queue) for queue in ("kept", "worked")}
    for bodies in found.values():
        assert [body for body, count in Counter(bodies).items() if count > 1] == []
        assert set(bodies) <= sent
    assert kept - set(found["kept"]) == set(), "confirmed before the backup, and lost"
    assert worked - delivered - set(found["worked"]) == set(), "confirmed before the backup, and lost"
    assert acked & set(found["worked"]) == set(), "acknowledged before the backup, and there again"

    # It goes on with numbers of its own, and what may have been delivered is flagged.
    again = Account()

    async def consume_all() -> None:
        consuming = asyncio.create_task(again.consume(restored.port, "worked"))
        while len(again.acked["worked"]) < len(found["worked"]):
            await asyncio.sleep(0.01)
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)

    asyncio.run(asyncio.wait_for(consume_all(), 30))
    twice = set(again.delivered["worked"]) & delivered
    assert twice - again.flagged["worked"] <= delivered - acked, "delivered before, and not flagged"
    original.end()
    restored.end()


def test_the_original_and_its_clients_do_not_notice_a_backup(broker_in, servers, tmp_path):
    """A snapshot gives the history of a server without replicas a new id, which is no rollback."""
    server = servers("store")
    original = broker_in("original", "--redis", url_of(server), "--node-timeout", "5")
    original.start()
    client = StompClient(original.port)
    client.send("/queue/q", "before", persistent="true")
    for number in range(2):
        assert backup(tmp_path / f"file-{number}", "--data", original.data) == 0
        original.admin(lambda admin: admin.stats())  # connects, and so notes the new life of the server
        for _ in range(20):
            client.send("/queue/q", "after", persistent="true")
        server.ask("CLIENT", "KILL", "TYPE", "NORMAL")  # the node connects again, with what it knows
        client.send("/queue/q", "with new connections", persistent="true")
    assert not client.disconnected.is_set()
    assert "rolled back" not in original.run.errors()
    assert len(original.bodies("q")) == 43
    original.end()


def test_a_restored_broker_starts_when_it_is_said_what_it_is(plain, broker_in, tmp_path, capsys):
    assert restore(plain, "--data", tmp_path / "restored") == 0
    said = capsys.readouterr().out
    assert f"  data folder: {tmp_path / 'restored'}\n  store: embedded, in the data folder\n" in said
    assert f"It does not start before you say what it is:\n  sluice restore --replace --data {tmp_path}" in said
    restored = broker_in("restored")
    refusal = restored.refusal()
    assert "this broker was restored from the backup of 20" in refusal
    assert "of broker orders on " in refusal
    assert f"run `{command('restore')} --replace` if the original no longer runs" in refusal

    assert restore("--data", restored.data, "--replace") == 0
    assert not (restored.data / "restored.json").exists()
    restored.start()
    assert restored.bodies("orders") == [f"order {number}" for number in range(50)]
    restored.end()
    assert restore("--data", restored.data, "--as-copy") == 1
    assert "nothing to decide: broker orders was not restored, or replaced the original" in capsys.readouterr().err


CONNECTOR = """<networkConnectors>
    <networkConnector name="to-east" uri="static:(tcp://127.0.0.1:9)" userName="u" password="secret of the bridge"/>
  </networkConnectors>"""


def test_network_connectors_of_a_copy_are_stopped_until_it_replaces_the_original(plain, broker_in, tmp_path):
    assert restore(plain, "--data", tmp_path / "copy", "--as-copy") == 0
    copy = broker_in("copy", more=CONNECTOR)
    for role, runs in (("--as-copy", False), ("--replace", True)):
        assert restore("--data", copy.data, role) == 0
        copy.start()
        [connector] = copy.admin(lambda admin: admin.networks.stats()).connectors
        assert (connector.name, connector.running) == ("to-east", runs)
        copy.end()


def test_a_node_that_knew_the_original_does_not_go_on_with_the_restored_store(broker_in, servers, tmp_path):
    first, second = servers("first"), servers("second")
    address = Proxy(first.port)
    url = f"redis://127.0.0.1:{address.port}/0"
    original = broker_in("original", "--redis", url, "--node-timeout", "3")
    original.start()
    client = StompClient(original.port)
    client.send("/queue/q", "one", persistent="true")
    assert backup(tmp_path / "file", "--redis", url_of(first), "--name", "orders") == 0
    assert restore(tmp_path / "file", "--data", tmp_path / "data", "--redis", url_of(second)) == 0

    first.kill()
    address.target = second.port
    run = original.run
    wait_until(lambda: not run.is_alive, "the node of the original ends")
    assert "this broker was restored from the backup of" in run.errors().splitlines()[-1]
    assert content_of(url_of(second), "orders", ["q"]) == {"q": ["one"]}
    address.close()


def test_only_keys_of_the_broker_are_restored_and_under_another_name_beside_the_original(broker_in, servers, tmp_path):
    server = servers("store")
    original = broker_in("original", "--redis", url_of(server, 3))
    original.start()
    client = StompClient(original.port)
    for number in range(5):
        client.send("/queue/q", f"{number}", persistent="true", priority=str(number))
    client.send("/topic/VirtualTopic.T", "no subscriber", persistent="true")
    server.ask("SET", "{others}:state", "of another broker")
    assert backup(tmp_path / "file", "--data", original.data) == 0
    arguments = ("--data", tmp_path / "data", "--redis", url_of(server), "--name", "copy", "--as-copy")
    assert restore(tmp_path / "file", *arguments) == 0
    copied = [key.decode() for key in server.ask("KEYS", "*")]  # of database 0
    assert {key.partition(":")[0] for key in copied} == {"{copy}", "{others}"}
    copy = broker_in("copy", "--redis", url_of(server), name="copy")
    copy.start()
    assert copy.bodies("q") == original.bodies("q") == list("01234")
    StompClient(copy.port).send("/queue/q", "of the copy", persistent="true")
    assert original.bodies("q") == list("01234")
    copy.end()
    original.end()


def test_an_incomplete_restore_is_refused_and_restored_again(plain, broker_in, servers, tmp_path):
    server = servers("store")
    mark = {"role": "incomplete", "broker": "orders", "host": "here", "made": "2026-11-28T10:00:00.000+00:00"}
    server.ask("SET", StoreKeys("orders").restored, json.dumps(mark))
    server.ask("SET", "{orders}:half", "done")
    broker = broker_in("node", "--redis", url_of(server))
    assert "was not completely restored from the backup of 2026-11-28 10:00:00 UTC" in broker.refusal()
    assert restore(plain, "--data", tmp_path / "data", "--redis", url_of(server), "--replace") == 0
    assert server.ask("EXISTS", "{orders}:half", StoreKeys("orders").restored) == 0
    broker.start()
    assert len(broker.bodies("orders")) == 50
    broker.end()


def test_a_broker_that_does_not_run_is_backed_up_too(broker_in, tmp_path):
    original = broker_in("original")
    original.start()
    StompClient(original.port).send("/queue/q", "kept", persistent="true")
    original.end()
    assert backup(tmp_path / "file", "--data", original.data) == 0
    original.start()
    assert original.bodies("q") == ["kept"]
    original.end()


def test_a_restore_is_told_as_such_and_not_as_a_rollback(plain, broker_in, tmp_path):
    assert restore(plain, "--data", tmp_path / "restored", "--replace") == 0
    restored = broker_in("restored")
    restored.start()
    [node] = restored.admin(lambda admin: admin.nodes())
    assert rollback_notice(node.store, node.seen_ms) == ""
    with BackupReader(plain) as reader:
        made = reader.manifest.made[:19].replace("T", " ")
    assert restore_notice(node.store, node.seen_ms).endswith(f"UTC from the backup of {made} UTC.")
    assert restore_notice(node.store, node.seen_ms + 24 * 3600 * 1000) == ""
    restored.end()


def test_the_archiver_goes_on_where_its_archive_ends(servers, tmp_path):
    """An archive is read after the snapshot of the store, so it may be ahead of the trace stream there."""
    source, target = servers("source"), servers("target")
    source.ask("HSET", "{orders}:state", "seq", "5")
    for number in range(1, 4):
        source.ask("XADD", "{orders}:trace", f"{number}-0", "b", "events", "n", "1")
    source.ask("XTRIM", "{orders}:trace", "MINID", "2-0")  # what was archived there, and may not be here
    assert backup(tmp_path / "file", "--redis", url_of(source), "--name", "orders") == 0
    for archived, ordinal, left in (("2-0", 2, ["3-0"]), ("9-0", 9, []), ("0-0", 0, ["2-0", "3-0"])):
        target.ask("FLUSHALL")
        with BackupReader(tmp_path / "file") as reader:
            place = RestoreTarget(
                tmp_path / archived, "orders", None, url=url_of(target),
                archived=(archived, ordinal) if ordinal else None, is_of_console=True,
            )  # fmt: skip
            restore_backup(reader, place, print)
        stream = TraceStream(url_of(target), "orders")
        page = stream.read(archived, ordinal)
        assert ([id for id, _ in page.entries], page.missed, page.renewed) == (left, 0, False)
        target.ask("XADD", "{orders}:trace", "10-0", "b", "later", "n", "1")
        page = stream.read(archived, ordinal)
        assert ([id for id, _ in page.entries], page.missed, page.renewed) == ([*left, "10-0"], 0, False)
        stream.close()


def test_keys_of_all_types_are_copied_with_what_they_remember(servers):
    source, target = (redis.Redis(port=servers(name).port) for name in ("source", "target"))
    large = {f"field {number}": "x" * 5_000 for number in range(3_000)}
    source.set("{b}:string", b"\0\xff")
    source.set("{b}:expiring", "soon", px=600_000)
    source.hset("{b}:hash", mapping=large)
    source.rpush("{b}:list", *map(str, range(2_500)))
    source.sadd("{b}:set", *map(str, range(2_500)))
    source.zadd("{b}:zset", {"a": 0.1, "b": 2**53 - 1, "c": -1e300})
    pipe = source.pipeline(transaction=False)
    for number in range(1, 2_502):
        pipe.xadd("{b}:stream", {"m": "x" * 2_000}, id=f"{number}-0")
    pipe.execute()
    source.xdel("{b}:stream", "2501-0", "7-0")
    source.xadd("{b}:empty", {"m": ""}, id="5-0")
    source.xtrim("{b}:empty", 0)
    source.set("{other}:key", "not copied")
    assert copy_keys(source, target, b"{b}:") == 8
    assert not target.exists("{other}:key")
    assert 500_000 < target.pttl("{b}:expiring") <= 600_000
    for read in (
        lambda store: store.get("{b}:string"), lambda store: store.hgetall("{b}:hash"),
        lambda store: store.lrange("{b}:list", 0, -1), lambda store: store.smembers("{b}:set"),
        lambda store: store.zrange("{b}:zset", 0, -1, withscores=True), lambda store: store.xrange("{b}:stream"),
    ):  # fmt: skip
        assert read(source) == read(target)
    for stream in ("{b}:stream", "{b}:empty"):
        names = ("length", "last-generated-id", "entries-added", "max-deleted-entry-id")
        kept = [{name: store.xinfo_stream(stream)[name] for name in names} for store in (source, target)]
        assert kept[0] == kept[1]


ALLOWED = (
    "+psync +replconf +info +client|pause +client|unpause +config|get +config|set +exists +hgetall +hmget +select "
    "+get +set +del"
)


def test_the_user_of_a_store_needs_few_commands(servers, tmp_path, capsys):
    server = servers("store")
    server.ask("HSET", "{orders}:state", "seq", "5")
    server.ask("CONFIG", "SET", "repl-diskless-sync-delay", "30")
    documented = (PROJECT / "docs" / "backup.md").read_text()
    assert f"on >PASSWORD ~* {ALLOWED}\n" in documented
    for name, commands in (
        ("documented", ALLOWED.split()),
        ("no-settings", [each for each in ALLOWED.split() if "config" not in each]),
        ("no-replica", [each for each in ALLOWED.split() if each != "+psync"]),
    ):
        server.ask("ACL", "SETUSER", name, "on", ">secret", "~*", *commands)
        url = f"redis://{name}:secret@127.0.0.1:{server.port}/0"
        failed = backup(tmp_path / name, "--redis", url, "--name", "orders")
        assert failed == (name == "no-replica")
        # Who may not set the delay to 0 has the server write a file first.
        assert (server.folder / "dump.rdb").exists() is (name != "documented")
        assert not server.ask("EXISTS", StoreKeys("orders").sync_delay)
    assert server.ask("CONFIG", "GET", "repl-diskless-sync-delay")[b"repl-diskless-sync-delay"] == b"30"
    assert "gives no snapshot: " in capsys.readouterr().err
    assert restore(tmp_path / "no-settings", "--data", tmp_path / "data") == 0


DELAY = "repl-diskless-sync-delay"
KILLED_WITH_DELAY_AT_0 = """
import os, sys
from brokerapp.backup import command_line
from brokerapp.backup.server_snapshot import ServerSnapshot
ServerSnapshot.request = lambda snapshot: os.kill(os.getpid(), 9)
command_line.backup(sys.argv[1:], "sluice backup")
"""


def test_the_delay_of_replicas_is_set_again_by_the_backup_after_one_that_was_killed(servers, tmp_path):
    server = servers("store")
    server.ask("HSET", "{orders}:state", "seq", "5")
    server.ask("CONFIG", "SET", DELAY, "7")
    file = tmp_path / "file"
    arguments = [str(file), "--redis", url_of(server), "--name", "orders"]
    killed = subprocess.run([sys.executable, "-c", KILLED_WITH_DELAY_AT_0, *arguments], check=False, timeout=60)
    assert killed.returncode == -9
    assert server.ask("CONFIG", "GET", DELAY)[DELAY.encode()] == b"0"
    [left] = tmp_path.glob(".file.*.tmp")
    assert backup(*arguments) == 0
    assert server.ask("CONFIG", "GET", DELAY)[DELAY.encode()] == b"7"
    assert not server.ask("EXISTS", StoreKeys("orders").sync_delay)

    assert left.exists(), "one that may be written to yet was removed"
    os.utime(left, (0, 0))
    assert backup(tmp_path / "another", *arguments[1:]) == 0
    assert not left.exists()


def test_a_backup_fails_when_another_server_became_the_primary(servers, tmp_path, capsys, monkeypatch):
    primary, replica = servers("primary"), servers("replica")
    primary.ask("HSET", "{orders}:state", "seq", "5")
    replica.replicate(primary.port)
    read = ServerSnapshot.read

    def read_and_fail_over(snapshot, write):
        size = read(snapshot, write)
        replica.ask("REPLICAOF", "NO", "ONE")
        primary.ask("REPLICAOF", "127.0.0.1", replica.port)
        return size

    monkeypatch.setattr(ServerSnapshot, "read", read_and_fail_over)
    both = f"redis://127.0.0.1:{primary.port},127.0.0.1:{replica.port}/0"
    assert backup(tmp_path / "file", "--redis", both, "--name", "orders") == 1
    assert "changed during the backup: start it again" in capsys.readouterr().err
    assert list(tmp_path.glob("*file*")) == []


def test_keys_that_the_target_does_not_write_to_disk_in_time_fail_the_restore(servers, monkeypatch):
    monkeypatch.setattr(key_copy, "SYNC_MS", 200)
    source, target = servers("source"), servers("target", appendfsync="no")
    source.ask("SET", "{b}:string", "x")
    target.ask("ACL", "SETUSER", "unknown", "on", ">secret", "~*", "+@all", "-config")
    with redis.Redis(port=source.port) as full:
        with (
            redis.Redis(port=target.port, username="unknown", password="secret") as late,
            pytest.raises(StoreUnavailable, match=r"did not write all keys to its disk within 0\.2 s"),
        ):
            copy_keys(full, late, b"{b}:")
        with redis.Redis(port=target.port) as meant:
            assert copy_keys(full, meant, b"{b}:") == 1, "it is set to leave that to the system"


def test_a_replica_gives_no_backup_as_it_may_lag(servers, tmp_path, capsys):
    primary, replica = servers("primary"), servers("replica")
    primary.ask("HSET", "{orders}:state", "seq", "5")
    replica.replicate(primary.port)
    assert backup(tmp_path / "file", "--redis", url_of(replica), "--name", "orders") == 1
    assert "is a replica: name the primary" in capsys.readouterr().err
    both = f"redis://127.0.0.1:{replica.port},127.0.0.1:{primary.port}/0"
    assert backup(tmp_path / "file", "--redis", both, "--name", "orders") == 0
