"""Test two versions of Sluice on one store, the former one with the library and store in `former`."""

import asyncio
import json
import os
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from brokerapp.config import default_config
from brokerapp.errors import ConfigurationRefused
from brokerapp.store.client import continuity
from brokerapp.store.client.keys import LIBRARIES
from brokerapp.store.client.library import NAME
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.record import ShardRecordStore
from brokerapp.system.checkout import command
from tests.brokerapp.store.commit_helpers import CommittingSession, bodies, entries
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode

FORMER = Path(__file__).parent / "former"


@pytest.fixture
async def former(tmp_path, redis_url):
    """Asks a process of the former version, with a broker of the name `beside`."""
    with tarfile.open(FORMER / "version.tar.xz") as code:
        code.extractall(tmp_path, filter="data")
    running = await asyncio.create_subprocess_exec(
        sys.executable, FORMER / "calls.py", redis_url, "beside", env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip

    async def ask(*question):
        running.stdin.write(json.dumps(question).encode() + b"\n")
        answer = await running.stdout.readline()
        assert answer, "the former version ended"
        return json.loads(answer)

    yield ask
    running.stdin.close()
    await running.wait()


@pytest.fixture
async def store(redis_url):
    opened = RedisStore(redis_url, "beside")
    yield opened
    await opened.close()


async def libraries(store):
    return {each[1].decode() for each in await store.client.execute("FUNCTION", "LIST")}


async def test_the_former_version_and_this_one_work_on_one_store_at_once(store, former):
    await former("open")
    await former("claim")
    assert await former("append", "queue://a", "theirs") == 1
    await store.open()
    await store.nodes.join("ours", "other")
    ours = CommittingSession(store, "ours")
    assert await ours.append("queue://a", body=b"ours") == 2
    assert await former("append", "queue://a", "theirs again") == 3
    assert await former("read", "queue://a") == [[1, "theirs"], [2, "ours"], [3, "theirs again"]]
    assert await bodies(store, "queue://a") == [b"theirs", b"ours", b"theirs again"]
    await former("settle", "queue://a", 2)
    await former("beat")
    await ours.settle(*(await entries(store, "queue://a"))[:1])
    assert await former("read", "queue://a") == [[3, "theirs again"]]
    await former("open")
    assert await ours.append("queue://a", body=b"more") == 4
    assert {"sluice_v1", NAME} <= await libraries(store)


def test_a_store_of_the_former_version_opens_with_all_that_it_holds(tmp_path):
    with tarfile.open(FORMER / "store.tar.xz") as kept:
        kept.extractall(tmp_path / "store", filter="data")
    with EmbeddedStore(tmp_path / "store") as store:
        node = RunningNode(default_config("former", 0), store.url)
        client = StompClient(node.port)
        for queue, expected in {
            "orders": ["order 0", "order 1", "order 2"],
            "Consumer.A.VirtualTopic.T": ["copy 0", "copy 1"],
            "Consumer.B.VirtualTopic.T": ["copy 0", "copy 1"],
            "expiring": ["expiring"],
        }.items():
            client.subscribe(f"/queue/{queue}", id=queue)
            taken = client.take(len(expected))
            assert [message.body for message in taken] == expected
            assert [message.headers.get("redelivered") for message in taken] == (
                ["true", None] if queue.startswith("Consumer") else [None] * len(expected)
            )
            client.unsubscribe(queue)
        assert node.ask(lambda admin: admin.subscriptions())
        client.connection.disconnect()
        node.stop()


@pytest.mark.parametrize(
    ("format", "oldest", "sentence"), [(3, 1, "use the newer version"), (1, 2, f"run `{command('upgrade')}`")]
)
async def test_a_store_of_another_format_is_refused_with_one_sentence(store, format, oldest, sentence):
    await store.open()
    await store.nodes.join("ours", "other")
    await store.client.execute("HSET", store.keys.state, "format", format)
    other = RedisStore(store.url, "beside", formats=replace(continuity.FORMATS, oldest=oldest))
    try:
        with pytest.raises(ConfigurationRefused, match=f"the store has format {format}, .*{sentence}"):
            await other.open()
    finally:
        await other.close()
        await store.client.execute("HSET", store.keys.state, "format", continuity.FORMAT_OF_ONE_STORE)


async def test_libraries_that_no_node_used_for_long_are_removed(store):
    old, recent, unknown = (f"sluice_{digit * 16}" for digit in "012")
    for name in (old, recent, unknown):
        code = f"#!lua name={name}\nredis.register_function('{name}_f', function() return 1 end)"
        await store.client.execute("FUNCTION", "LOAD", "REPLACE", code)
    now = int((await store.client.execute("TIME"))[0])
    await store.client.execute("ZADD", LIBRARIES, now - 8 * 24 * 3600, old, now - 24 * 3600, recent)
    await store.libraries.remove_unused()
    left = await libraries(store)
    assert {recent, unknown, NAME} <= left
    assert old not in left
    for name in (recent, unknown):
        await store.client.execute("FUNCTION", "DELETE", name)


async def test_a_library_that_was_removed_is_loaded_again_by_who_needs_it(store):
    await store.open()
    await store.nodes.join("ours", "other")
    ours = CommittingSession(store, "ours")
    await ours.append("queue://b")
    await store.client.execute("FUNCTION", "DELETE", NAME)
    await ours.append("queue://b")
    await store.client.execute("FUNCTION", "DELETE", NAME)
    assert len(await bodies(store, "queue://b")) == 2


async def test_a_broker_with_several_shards_is_refused_by_versions_that_know_of_one_store(store):
    await store.open()
    await store.nodes.join("ours", "other")
    assert int(await store.client.execute("HGET", store.keys.state, "format")) == continuity.FORMAT_OF_ONE_STORE
    record = ShardRecordStore(store.client)
    number = await record.add("redis://127.0.0.1:1", "joining")
    known = replace(continuity.FORMATS, newest=continuity.FORMAT_OF_ONE_STORE)
    earlier = RedisStore(store.url, "beside", formats=known)
    try:
        with pytest.raises(ConfigurationRefused, match="use the newer version"):
            await earlier.open()
    finally:
        await earlier.close()
        await record.remove(number, ())
        await store.client.execute("HSET", store.keys.state, "format", continuity.FORMAT_OF_ONE_STORE)
