"""Test a store that loses confirmed data under running nodes: a lagging replica is promoted, a backup restored.

The clients keep a ledger. What was confirmed after the fall has to be there, whatever was known before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
from pathlib import Path

import pytest
import stomp

from brokerapp.store.redis import RedisStore
from tests.faults.nodes_on_store import QUEUE, NodeProcess, connected, send_confirmed
from tests.faults.servers import Pair, Server
from tests.interop.proxy import Proxy
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

#: Messages confirmed before the fall and lost with it; as many are confirmed after it.
LOST = 136
ROLLED_BACK = "the store was rolled back"


@pytest.fixture
def nodes(tmp_path):
    """Starts nodes, and ends them."""
    started: list[NodeProcess] = []

    def start(url: str, names: str) -> list[NodeProcess]:
        started.extend(NodeProcess(tmp_path, url, name) for name in names)
        return started

    yield start
    for each in started:
        each.run.kill()


@pytest.fixture
def pair(tmp_path):
    made = Pair(tmp_path)
    yield made
    made.end()


def promoted_replica(folder):
    """A replica that lags is promoted."""
    pair = Pair(folder)
    try:
        yield pair.url
        pair.lag()
        yield None
        pair.fail_over()
        yield None
    finally:
        pair.end()


def restored_backup(folder):
    """The folder of the store is put back as it was."""
    server = Server(folder / "one")
    yield from _at(server, server.back_up)


def cut_file(folder):
    """A power failure takes the end of a file that is synced once a second."""
    server = Server(folder / "one", appendfsync="everysec")

    def lengths():
        # What the store has confirmed waits in its memory while a sync takes long.
        wait_until(lambda: server.info("persistence", "aof_buffer_length") == 0, "all is in the file")
        return {path: path.stat().st_size for path in (server.folder / "appendonlydir").iterdir()}

    yield from _at(server, lengths)


def _at(server, back_up):
    address = Proxy(server.port)
    try:
        yield f"redis://127.0.0.1:{address.port}"
        saved = back_up()
        yield None
        server.kill()
        if isinstance(saved, Path):
            server.restore(saved)
        else:
            for path, length in saved.items():
                os.truncate(path, length)
        server.start()
        yield None
    finally:
        address.close()
        server.end()


def told_by_nodes(url: str) -> list[dict]:
    """What the nodes tell operators of their store."""

    async def ask():
        store = RedisStore(url, "fallen")
        try:
            return [status["store"] for status in (await store.nodes.statuses()).values()]
        finally:
            await store.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("names", "fall"),
    [
        ("a", promoted_replica),
        pytest.param("a", restored_backup, marks=pytest.mark.long),
        ("a", cut_file),
        pytest.param("ab", promoted_replica, marks=pytest.mark.long),
        ("ab", restored_backup),
        pytest.param("ab", cut_file, marks=pytest.mark.long),
    ],
)
def test_what_is_confirmed_after_a_rollback_is_kept(tmp_path, nodes, request, fall, names):
    falling = fall(tmp_path)
    request.addfinalizer(falling.close)
    running = nodes(url := next(falling), names)
    sender, receiver = running[0], running[-1]
    consumer = StompClient(receiver.port)
    consumer.subscribe(QUEUE, ack="client-individual", prefetch=2 * LOST)
    send_confirmed(sender.port, ["kept"])
    [kept] = consumer.take()
    next(falling)
    send_confirmed(sender.port, [f"lost {number}" for number in range(LOST)])
    old = consumer.take(LOST)
    next(falling)

    new = [f"new {number}" for number in range(LOST)]
    send_confirmed(sender.port, new)
    with contextlib.suppress(stomp.exception.StompException, OSError):  # its connection may be closed
        for message in (kept, *old):
            consumer.ack(message, wait=False)
        consumer.frame("SEND", wait=False, destination="/queue/fence")
    wait_until(consumer.disconnected.is_set, "clients are let go of", 60)
    successor = connected(receiver.port)
    successor.subscribe(QUEUE, ack="client-individual", prefetch=2 * LOST)
    got = set()
    with contextlib.suppress(queue.Empty):
        while not got >= {"kept", *new}:
            got.add(successor.take()[0].body)
    assert got >= {"kept", *new}
    assert got <= {"kept", *new, *(message.body for message in old)}
    assert all(ROLLED_BACK in each.said() for each in running)
    wait_until(
        lambda: [each["rollbacks"] for each in told_by_nodes(url)] == [1] * len(names), "all nodes tell of it", 60
    )


def test_a_store_that_lost_nothing_goes_on_with_its_nodes(tmp_path, nodes, pair):
    [node] = nodes(pair.url, "a")
    consumer = StompClient(node.port)
    consumer.subscribe(QUEUE, ack="client-individual")
    send_confirmed(node.port, ["one"])
    [held] = consumer.take()
    wait_until(pair.is_in_step, "the replica is in step")
    pair.fail_over()
    send_confirmed(node.port, ["two"])
    [other] = consumer.take()
    consumer.ack(held)
    consumer.ack(other)
    assert not consumer.disconnected.is_set()
    pair.replica.kill()
    pair.replica.start()
    send_confirmed(node.port, ["three"])
    assert consumer.bodies() == ["three"]
    assert ROLLED_BACK not in node.said()


@pytest.mark.parametrize("names", [pytest.param("a", marks=pytest.mark.long), "ab"])
def test_a_primary_that_becomes_a_replica_is_left_for_the_new_one(nodes, pair, names):
    running = nodes(pair.url, names)
    consumer = StompClient(running[-1].port)
    consumer.subscribe(QUEUE, ack="client-individual")
    send_confirmed(running[0].port, ["one"])
    [held] = consumer.take()
    pair.switch()
    producer = StompClient(running[0].port)
    producer.send(QUEUE, "two", persistent="true")
    [other] = consumer.take()
    consumer.ack(held)
    consumer.ack(other)
    assert not consumer.disconnected.is_set()
    assert not any(ROLLED_BACK in each.said() for each in running)
    wait_until(lambda: not _node_connections(pair.primary), "no connection to the old primary is kept")


def _node_connections(server: Server) -> list[str]:
    """Clients of a server that are not this test, and not the server that it follows."""
    listed = server.ask("CLIENT", "LIST")
    return [each for each in listed if "lib-name=redis-py" in str(each) and "cmd=client" not in str(each)]
