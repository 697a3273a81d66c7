"""Test a node that is stopped while it starts and waits for others."""

import asyncio
import os
import signal
from argparse import Namespace
from io import StringIO

import pytest

from brokerapp.config import read_config
from brokerapp.errors import StoreUnavailable
from brokerapp.management.runbroker import NodeProcess
from brokerapp.runtime.node import Node
from brokerapp.store.redis import RedisStore

#: Where none of the tests' stores is.
NOWHERE = "redis://127.0.0.1:1"
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="told-to-stop">
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>
"""


@pytest.fixture
async def store(redis_url):
    store = RedisStore(redis_url, "told-to-stop")
    await store.open()
    yield store
    await store.close()


def options_of(folder, redis, node):
    """Of the command, for a node of a file."""
    config = folder / "activemq.xml"
    config.write_text(CONFIG)
    return config, Namespace(
        data=folder / "data", redis=redis, name=None, node=node, node_timeout=60.0,
        link="127.0.0.1", config=config, no_trace=True, replicas=0,
    )  # fmt: skip


async def test_a_node_that_waits_for_one_that_stands_still_leaves_as_soon_as_it_is_told_to(store, redis_url, tmp_path):
    await store.nodes.join("session", "still", {"link": "127.0.0.1:1"}, timeout_ms=60_000)
    config, options = options_of(tmp_path, redis_url, "late")
    said = StringIO()
    running = asyncio.create_task(NodeProcess(options, said).run(read_config(config, {}), {}, None))
    async with asyncio.timeout(20):
        while "late" not in (await store.nodes.members())[1]:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)  # it waits
        assert not running.done()
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert set((await store.nodes.members())[1]) == {"still"}
    assert not said.getvalue()


async def test_a_node_that_loses_its_store_as_it_starts_ends_what_it_has_begun_before_its_process_ends(
    tmp_path, monkeypatch
):
    """The end of the event loop asks each task once to end: one that does not hear it is waited for for ever."""
    begun = []

    class Losing(Node):
        async def _start(self):
            async def works():
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:  # meets the end of a read, and is lost
                    await asyncio.Event().wait()

            self._tasks.begin("work", works)
            begun.extend(self._tasks._running)
            await asyncio.sleep(0)
            raise StoreUnavailable("the store died")

    monkeypatch.setattr("brokerapp.management.runbroker.Node", Losing)
    monkeypatch.setattr("brokerapp.system.supervised_tasks.CANCEL_SECONDS", 0.01)
    config, options = options_of(tmp_path, NOWHERE, "losing")
    with pytest.raises(StoreUnavailable, match="the store died"):
        await asyncio.wait_for(NodeProcess(options, StringIO()).run(read_config(config, {}), {}, None), 20)
    assert all(each.done() for each in begun)
