"""Test nodes that fail, also during their start, and what is left of them."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import pytest

from brokerapp.config import default_config
from brokerapp.errors import Fenced
from brokerapp.runtime.bootstrap import node_config
from brokerapp.runtime.dispatch_loop import UNSURE_SECONDS, DispatchLoop
from brokerapp.runtime.node import Node


class Doomed(Node):
    """Somebody takes its place as it starts: its first write after that is refused, or one of its tasks notices."""

    def __init__(self, *args, by_task):
        super().__init__(*args)
        self._by_task = by_task
        if not by_task:
            self._store.stats.version = self._refuse
        self._begins, self._tasks.begin = self._tasks.begin, self._begin

    async def _refuse(self):
        raise Fenced("replaced")

    def _begin(self, name, work, **how):
        self._begins(name, self._refuse if name == "members" and self._by_task else work, **how)


@pytest.mark.parametrize("by_task", [False, True])
async def test_a_node_that_is_replaced_while_it_starts_has_failed_and_listens_no_more(redis_url, name, by_task):
    node = Doomed(node_config(default_config(name, 0), redis_url), by_task=by_task)
    with suppress(Fenced):  # a task may notice just after it listens
        await node.start()
    with pytest.raises(Fenced, match="replaced"):
        await asyncio.wait_for(asyncio.shield(node.failed), 20)
    await node.abandon()
    for address in node.addresses:
        host, port = address.removeprefix("stomp://").rsplit(":", 1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))


async def test_who_has_not_logged_in_yet_is_let_go_of_as_others_are_when_a_node_fails(redis_url, name):
    node = Node(node_config(default_config(name, 0), redis_url))
    await node.start()
    host, port = node.addresses[0].removeprefix("stomp://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    while node._parts.listeners.stats()[0].connections != 1:
        await asyncio.sleep(0.01)
    node._fail(Fenced("replaced"))
    writer.write(b"CONNECT\naccept-version:1.2\nhost:/\nheart-beat:100,100\n\n\0")
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 20) == b""
    writer.close()
    await node.abandon()


async def test_a_node_looks_once_at_a_time_whether_it_may_give_anything_out_and_no_more_when_it_failed(monkeypatch):
    failed = asyncio.get_running_loop().create_future()
    pump = DispatchLoop(failed)
    pump.attach(SimpleNamespace(), SimpleNamespace(is_alone=True), SimpleNamespace(is_confirmed=False))
    pumps, run = [], pump.run
    monkeypatch.setattr(pump, "run", lambda: (pumps.append(1), run()))
    for _ in range(20):
        pump.run()
    pumps.clear()
    await asyncio.sleep(3 * UNSURE_SECONDS)
    assert 1 <= len(pumps) <= 3
    failed.set_result(None)
    await asyncio.sleep(2 * UNSURE_SECONDS)
    pumps.clear()
    await asyncio.sleep(2 * UNSURE_SECONDS)
    assert pumps == []
