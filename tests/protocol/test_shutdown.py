"""Test a node that stops while its clients are busy."""

import asyncio
import contextlib
import json
import threading
import time

import pytest

from brokerapp.config import default_config
from brokerapp.engine.clients.client import Client
from brokerapp.model.destination import Destination
from brokerapp.runtime.node import DRAIN_SECONDS
from brokerapp.store.redis import RedisStore
from brokerapp.store.stats_snapshots import StatisticsStore
from tests.protocol.clients import RawClient
from tests.protocol.running_node import RunningNode
from tests.waiting import PATIENCE, wait_until

SEND = b"SEND\ndestination:/queue/flood\npersistent:true\n\nx\0" * 500
#: Bytes that a client may have on its way to the store: little, so that what was heard is soon stored on any machine.
LITTLE = 1 << 18


def marks(store, broker):
    """The marks of the logs in the store."""

    async def read():
        opened = RedisStore(store.url, broker)
        try:
            return {state.name: state.mark for state in await opened.logs.recover()}
        finally:
            await opened.close()

    return asyncio.run(read())


def flood(client):
    """Send until the node hears no more, and closes."""
    with contextlib.suppress(OSError):
        while True:
            client.write(SEND)


@pytest.fixture
def running(store, monkeypatch):
    monkeypatch.setattr("brokerapp.engine.clients.quotas.WRITE_BYTES", (LITTLE, LITTLE))
    return RunningNode(default_config("stopping", 0), store.url)


def test_producers_that_do_not_pause_keep_no_queue_from_being_closed_and_who_is_not_logged_in_goes(running, store):
    clients = [RawClient(running.port) for _ in range(3)]
    consumer, stranger = RawClient(running.port), RawClient(running.port, version=None)
    consumer.tell("SUBSCRIBE", {"id": "s", "destination": "/queue/kept", "ack": "client", "receipt": "r"})
    consumer.hear()
    threads = [threading.Thread(target=flood, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    node = running.node
    wait_until(
        lambda: running.look(lambda: any(each.is_over_quota for each in node.broker.clients.values())), "one is on hold"
    )
    started = time.monotonic()
    running.stop()
    assert time.monotonic() - started < DRAIN_SECONDS, "it hears no more of them"
    assert marks(store, "stopping")["queue://kept"] == "0"
    assert stranger.is_closed()
    assert not node.broker.commits.busy, "all that was heard is stored"
    for client in (*clients, consumer, stranger):
        client.close()


@pytest.mark.parametrize("stopping", [False, True])
def test_a_client_on_hold_is_read_on_when_its_units_are_done_unless_the_node_stops(stopping):
    held = []

    class FakeSink:
        def pause_reading(self, now):
            held.append(now)

    client = Client("c", FakeSink(), is_stopping=stopping)
    for _ in range(client.quota.write_count):
        client.on_write_started()
    for _ in range(client.quota.write_count):
        client.on_write_done()
    assert held == [True, stopping]


def test_the_numbers_that_are_being_told_when_a_node_stops_are_told(store, monkeypatch):
    telling = RunningNode(default_config("telling", 0), store.url)
    begun, write = threading.Event(), StatisticsStore.write

    async def slowly(self, rows, *gone):
        if any("told" in name for name in rows):
            begun.set()
            await asyncio.sleep(0.3)  # as long as a busy server may take
        return await write(self, rows, *gone)

    monkeypatch.setattr(StatisticsStore, "write", slowly)
    telling.ask(lambda admin: admin.create(Destination.queue("told")))
    assert begun.wait(PATIENCE)
    telling.stop()

    async def stored():
        opened = RedisStore(store.url, "telling")
        try:
            return [json.loads(row) for row in (await opened.stats.changes_since(0))[1]]
        finally:
            await opened.close()

    assert "queue://told" in [row["destination"] for row in asyncio.run(stored())]
