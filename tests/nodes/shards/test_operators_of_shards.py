"""Test what operators do with shards, on a real node with two databases of a real Valkey."""

import json
from argparse import ArgumentParser

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from brokerapp.admin import BrokerAdmin
from brokerapp.engine.sharding.placement import combined_load
from brokerapp.errors import ConfigurationRefused, RequestRefused, StoreUnavailable
from brokerapp.management.verbs.shard_verbs import add_shard_verbs, object_of
from brokerapp.store.redis import RedisStore
from tests.shards.sharded_broker import queue_in
from tests.waiting import wait_until

QUEUES = [f"queue://orders.{number}" for number in range(8)]


def second(url):
    """Return the URL of another database of the same server."""
    return f"{url}{'&' if '?' in url else '?'}db=1" if url.startswith("unix:") else f"{url.rstrip('/')}/1"


def brokerctl(broker, capsys, *arguments):
    call_command("brokerctl", "--redis", broker.redis_url, "--name", broker.name, "--json", *arguments)
    return json.loads(capsys.readouterr().out)


def test_an_operator_adds_a_shard_moves_a_family_drains_the_shard_and_removes_it(running_broker, capsys):
    [only] = brokerctl(running_broker, capsys, "shards")
    assert (only["number"], only["state"], only["answers"]) == (0, "serving", True)
    brokerctl(running_broker, capsys, "create", QUEUES[0])
    assert brokerctl(running_broker, capsys, "shards", "add", second(running_broker.redis_url)) == {
        "number": 1, "serving": True,
    }  # fmt: skip
    with pytest.raises(CommandError, match="is shard 1 of broker 'test_operators_of_shards' already"):
        brokerctl(running_broker, capsys, "shards", "add", second(running_broker.redis_url))
    for queue in QUEUES[1:]:
        brokerctl(running_broker, capsys, "create", queue)
    brokerctl(running_broker, capsys, "send", QUEUES[0], "--body", "hello")
    counts = [each["destinations"] for each in brokerctl(running_broker, capsys, "shards")]
    assert sum(counts) == len(QUEUES)
    moved = brokerctl(running_broker, capsys, "shards", "move", QUEUES[0], "1")
    assert (moved["source"], moved["target"], moved["messages"]) == (0, 1, 1)
    [family] = [
        each for each in brokerctl(running_broker, capsys, "shards", "families", "1") if each["family"] == QUEUES[0]
    ]
    assert (family["shard"], family["messages"]) == (1, 1)
    assert family["used"] > 0
    assert "moves" in brokerctl(running_broker, capsys, "shards", "rebalance", "--dry-run")
    with pytest.raises(CommandError, match="shard 1 is serving: drain it first"):
        brokerctl(running_broker, capsys, "shards", "remove", "1")
    brokerctl(running_broker, capsys, "shards", "drain", "1")
    for _ in range(60):
        if not brokerctl(running_broker, capsys, "shards")[1]["destinations"]:
            break
        running_broker.run(_pause())
    brokerctl(running_broker, capsys, "shards", "remove", "1")
    [left] = brokerctl(running_broker, capsys, "shards")
    assert (left["destinations"], left["messages"]) == (len(QUEUES), 1)
    running_broker.run(_pause())  # until the node has left it
    assert brokerctl(running_broker, capsys, "shards", "add", second(running_broker.redis_url)) == {
        "number": 2, "serving": True,
    }, "what the shard left in its store when it was removed is no obstacle"  # fmt: skip
    brokerctl(running_broker, capsys, "shards", "drain", "2")
    brokerctl(running_broker, capsys, "shards", "remove", "2")


def test_where_a_queue_was_is_forgotten_with_it_and_it_is_placed_anew(running_broker, capsys, monkeypatch):
    monkeypatch.setattr("brokerapp.runtime.shards.vanished_places.FORGET_SECONDS", 0.5)
    monkeypatch.setattr("brokerapp.runtime.shards.node_shards.LOOK_SECONDS", 0.1)
    number = brokerctl(running_broker, capsys, "shards", "add", f"{second(running_broker.redis_url)[:-1]}4")["number"]
    queue = f"queue://{queue_in(0, 'anew', (0, number))}"
    record = running_broker.node._store.shard_record

    def places():
        known = running_broker.run(record.known_shards_of([queue]))[queue]
        return known, running_broker.run(record.read()).families.get(queue)

    brokerctl(running_broker, capsys, "create", queue)
    brokerctl(running_broker, capsys, "shards", "move", queue, str(number))
    assert places() == (number, number)
    brokerctl(running_broker, capsys, "delete", queue)
    wait_until(lambda: places() == (None, None), "its place is forgotten")
    brokerctl(running_broker, capsys, "create", queue)
    assert places() == (0, 0)
    brokerctl(running_broker, capsys, "send", queue, "--body", "hello")
    assert running_broker.run(running_broker.node._store.main.logs.depths([queue])) == {queue: 1}
    running_broker.run(_pause())
    assert places() == (0, 0), "one that is there is not forgotten"


async def test_a_store_that_holds_destinations_of_a_former_shard_is_refused(store_url):
    admin, url = BrokerAdmin(store_url, "former"), f"{store_url}?db=2"
    former = RedisStore(url, "former", shard=3)
    try:
        await former.client.execute("HSET", former.keys.logs, "queue://orders", "{}")
        with pytest.raises(RequestRefused, match=r"was shard 3 of broker 'former' and still holds 1 destinations"):
            await admin.shards.add(url)
        await former.client.execute("HDEL", former.keys.logs, "queue://orders")
        await former.client.execute("HSET", former.keys.state, "seq", 1)
        await former.client.execute("HSET", former.keys.nodes, "a", "{}")
        await former.client.execute("SET", former.keys.node("a"), "", "PX", 60_000)
        with pytest.raises(RequestRefused, match="was shard 3 until a moment ago"):
            await admin.shards.add(url)
    finally:
        await former.close()
        await admin.close()


async def test_a_change_of_shards_counts_when_as_many_replicas_have_it_as_the_nodes_want(store_url):
    admin, node = BrokerAdmin(store_url, "confirmed"), RedisStore(store_url, "confirmed")
    try:
        await node.open()
        await node.nodes.join("me")
        await node.nodes.send_heartbeat("me", {"store": {"replicas_wanted": 0}}, timeout_ms=60_000)
        number = await admin.shards.add(f"{store_url}?db=3")
        await node.nodes.send_heartbeat("me", {"store": {"replicas_wanted": 1}}, timeout_ms=60_000)
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas confirmed it"):
            await admin.shards.remove(number)
    finally:
        await node.close()
        await admin.close()


@pytest.mark.parametrize("action", [[], ["families"], ["rebalance", "--dry-run"]])
def test_the_options_of_all_verbs_may_follow_an_action_of_shards(running_broker, capsys, action):
    """As they may follow a verb without actions."""
    given = ["--redis", running_broker.redis_url, "--name", running_broker.name, "--json"]
    call_command("brokerctl", "shards", *action, *given)
    assert json.loads(capsys.readouterr().out) is not None


async def _pause():
    import asyncio

    await asyncio.sleep(0.25)


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("redis://127.0.0.1:1", StoreUnavailable, "127.0.0.1:1"),
        ("http://shop", ConfigurationRefused, "http"),
    ],
)
async def test_a_store_that_cannot_be_reached_is_not_added(store_url, url, error, words):
    admin = BrokerAdmin(store_url, "unreached")
    try:
        with pytest.raises(error, match=words):
            await admin.shards.add(url)
        assert len(await admin.shards.all()) == 1
    finally:
        await admin.close()


async def test_shard_0_can_be_neither_drained_nor_removed_and_others_must_exist(store_url):
    admin = BrokerAdmin(store_url, "fixed")
    try:
        for change in (admin.shards.drain, admin.shards.remove):
            with pytest.raises(RequestRefused, match="shard 0 holds the definitions"):
                await change(0)
            with pytest.raises(RequestRefused, match="shard 7 does not exist: there are 0"):
                await change(7)
        with pytest.raises(RequestRefused, match="shard 7 does not exist"):
            await admin.shards.families(7)
    finally:
        await admin.close()


def test_the_audit_log_names_a_store_without_its_password():
    parser = ArgumentParser()
    add_shard_verbs(parser.add_subparsers(dest="verb"))
    assert "secret" not in object_of(parser.parse_args(["shards", "add", "redis://u:secret@h:1/2"]))
    assert object_of(parser.parse_args(["shards", "drain", "2"])) == "shard 2"


def test_kinds_of_load_count_alike_whatever_their_units():
    assert combined_load({"a": (1.0, 3e9), "b": (3.0, 1e9)}) == {"a": 1.0, "b": 1.0}
    assert combined_load({"a": (0.0, 0.0)}) == {"a": 0}
    assert combined_load({}) == {}
