"""Test what checks say of real servers with settings that lose messages, and of servers that do not answer."""

from __future__ import annotations

import asyncio

import pytest

from brokerapp.checks import store, versions
from brokerapp.checks.results import Level
from brokerapp.checks.store import StoreReading, measure_store
from brokerapp.store.client.continuity import FORMATS
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.probe import ServerFacts
from brokerapp.store.redis import RedisStore
from brokerapp.version import VERSION
from tests.faults.servers import Server

BROKER = "checked"


@pytest.fixture
def server(tmp_path):
    started = []

    def start(**options):
        started.append(Server(tmp_path / str(len(started)), **options))
        return started[-1]

    yield start
    for each in started:
        each.end()


def url_of(server) -> str:
    return f"redis://127.0.0.1:{server.port}"


def read(server, replicas=0) -> StoreReading:
    return measure_store(url_of(server), BROKER, replicas)


def found(judge, reading) -> tuple[Level, str]:
    [finding] = judge(reading)
    return finding.level, finding.text


def test_a_server_with_the_settings_of_the_documentation_is_in_order(server):
    reading = read(server(**{"maxmemory-policy": "noeviction"}))
    judges = (store.judge_reachable, store.judge_format, store.judge_durability, store.judge_eviction,
              store.judge_memory, store.judge_replicas, store.judge_latency, store.judge_clock)  # fmt: skip
    assert {judge: found(judge, reading)[0] for judge in judges} == dict.fromkeys(judges, Level.OK)
    assert "is Valkey 9." in found(store.judge_reachable, reading)[1]


def test_a_server_that_deletes_messages_fails_and_one_that_may_lose_some_is_warned_of(server):
    running = server(**{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru", "appendonly": "no"})
    reading = read(running)
    level, text = found(store.judge_eviction, reading)
    assert (level, "maxmemory-policy is allkeys-lru: messages are deleted" in text) == (Level.FAILURE, True)
    level, text = found(store.judge_durability, reading)
    assert (level, "(appendonly no): all confirmed messages are lost" in text) == (Level.FAILURE, True)

    running.ask("CONFIG", "SET", "maxmemory", "0")
    assert found(store.judge_eviction, read(running))[0] is Level.WARNING
    running.ask("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "volatile-ttl")
    running.ask("CONFIG", "SET", "appendonly", "yes", "appendfsync", "everysec")
    reading = read(running)
    assert found(store.judge_eviction, reading)[0] is Level.WARNING
    level, text = found(store.judge_durability, reading)
    assert (level, "(appendfsync everysec)" in text) == (Level.WARNING, True)


def test_a_replica_is_refused_as_a_store_and_missing_replicas_are_counted(server):
    primary, replica = server(), server()
    replica.replicate(primary.port)
    level, text = found(store.judge_reachable, read(replica))
    assert (level, "a replica: it accepts no writes" in text) == (Level.FAILURE, True)
    assert found(store.judge_replicas, read(primary, replicas=1)) == (
        Level.OK, "1 replica online, 1 must confirm each message.",
    )  # fmt: skip
    assert found(store.judge_replicas, read(primary, replicas=2))[0] is Level.FAILURE
    replica.promote()
    assert found(store.judge_replicas, read(replica)) == (Level.OK, "No replicas, and receipts wait for none.")


def test_a_store_that_does_not_answer_fails_once_and_its_password_is_not_shown(server):
    gone = server()
    url = f"redis://:secret@127.0.0.1:{gone.port}"
    gone.end()
    reading = measure_store(url, BROKER, 0)
    [failure] = store.judge_reachable(reading)
    assert failure.level is Level.FAILURE
    assert "does not answer: connection refused" in failure.text
    assert "secret" not in failure.text
    assert found(store.judge_memory, reading) == (Level.SKIPPED, "The store does not answer.")


def test_a_store_of_a_newer_version_is_refused(server):
    running = server()
    running.ask("HSET", StoreKeys(BROKER).state, "format", str(FORMATS.newest + 1))
    level, text = found(store.judge_format, read(running))
    assert (level, f"The store has format {FORMATS.newest + 1}" in text) == (Level.FAILURE, True)


def test_nodes_are_read_from_the_store_and_older_ones_are_named(server):
    running = server()

    async def join(name, **about):
        opened = RedisStore(url_of(running), BROKER)
        await opened.open()
        try:
            await opened.nodes.join(f"session of {name}", name, about)
        finally:
            await opened.close()

    asyncio.run(join("a", version=VERSION))
    assert found(versions.judge_nodes, read(running)) == (Level.OK, f"1 node of Sluice {VERSION}: a.")
    asyncio.run(join("b", version="0.9.2"))
    asyncio.run(join("c", last_word=1))  # of a version from before nodes said theirs
    asyncio.run(join("d", version="99.10.0"))
    older, newer = versions.judge_nodes(read(running))
    assert older.text.startswith(f"Older than Sluice {VERSION}: b (0.9.2), c (an earlier version).")
    assert newer.text == f"Newer than Sluice {VERSION}, which checks them: d (99.10.0)."
    assert {older.level, newer.level} == {Level.WARNING}


def test_a_version_with_more_digits_is_newer_and_a_prerelease_is_older_than_its_release():
    versions_of_nodes = ["1.10.0", "1.0.0", "", "1.9.0", "1.0.0rc1", "0.9.2"]
    assert sorted(versions_of_nodes, key=versions._order) == ["", "0.9.2", "1.0.0rc1", "1.0.0", "1.9.0", "1.10.0"]


def test_nothing_is_written_to_the_store(server):
    running = server()
    before = running.ask("DBSIZE"), running.ask("FUNCTION", "LIST")
    read(running)
    assert (running.ask("DBSIZE"), running.ask("FUNCTION", "LIST")) == before


@pytest.mark.parametrize(
    ("clock_ms", "latency_ms", "level"),
    [
        (300.0, 1.0, Level.OK),
        (-300.0, 1.0, Level.OK),
        (1_500.0, 1.0, Level.WARNING),
        (-1_500.0, 1.0, Level.WARNING),
        (1_500.0, 1_200.0, Level.OK),  # nobody knows when in this time the clock was read
        (61_000.0, 1.0, Level.FAILURE),
        (-3_600_000.0, 1.0, Level.FAILURE),
    ],
)
def test_clocks_are_compared_as_far_as_the_time_of_an_answer_allows(clock_ms, latency_ms, level):
    reading = StoreReading({0: ServerFacts("redis://a", latency_ms=(latency_ms,), clock_ms=clock_ms)})
    assert found(store.judge_clock, reading)[0] is level


@pytest.mark.parametrize(
    ("used", "limit", "level"), [(10, 100, Level.OK), (85, 100, Level.WARNING), (98, 100, Level.FAILURE)]
)
def test_memory_is_judged_by_the_shares_that_nodes_go_by(used, limit, level):
    info = {"used_memory": used, "maxmemory": limit, "total_system_memory": 1000}
    assert found(store.judge_memory, StoreReading({0: ServerFacts("redis://a", info=info)}))[0] is level


@pytest.mark.parametrize(
    ("info", "level"),
    [
        ({"valkey_version": "7.2.5", "redis_version": "7.2.4", "role": "master"}, Level.OK),
        ({"redis_version": "6.2.1", "role": "master"}, Level.FAILURE),
        ({"redis_version": "7.0.1", "role": "master", "loading": 1}, Level.WARNING),
    ],
)
def test_servers_that_are_too_old_or_not_ready_are_named(info, level):
    assert found(store.judge_reachable, StoreReading({0: ServerFacts("redis://a", info=info)}))[0] is level


def test_each_shard_is_named_where_there_are_several():
    info = {"maxmemory_policy": "noeviction"}
    reading = StoreReading({0: ServerFacts("redis://a", info=info), 3: ServerFacts("redis://b", info=info)})
    assert [each.text.partition(":")[0] for each in store.judge_eviction(reading)] == ["Shard 0", "Shard 3"]
