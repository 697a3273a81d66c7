"""A node that is told to stop while it starts, in which it may wait long for others."""

import asyncio
import os
import signal
from io import StringIO

import pytest

from brokerapp.config import read_config
from brokerapp.management.commands.runbroker import Command
from brokerapp.store.redis import RedisStore

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


async def test_a_node_that_waits_for_one_that_stands_still_leaves_as_soon_as_it_is_told_to(store, redis_url, tmp_path):
    await store.claim("session", "still", {"link": "127.0.0.1:1"}, timeout_ms=60_000)
    config = tmp_path / "activemq.xml"
    config.write_text(CONFIG)
    options = {
        "data": tmp_path / "data", "redis": redis_url, "name": None, "node": "late", "node_timeout": 60.0,
        "link": "127.0.0.1", "config": config, "no_trace": True,
    }  # fmt: skip
    said = StringIO()
    running = asyncio.create_task(Command(stdout=said)._run(read_config(config, {}), options, {}))
    async with asyncio.timeout(20):
        while "late" not in (await store.members())[1]:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)  # it waits
        assert not running.done()
        os.kill(os.getpid(), signal.SIGTERM)
        await running
    assert set((await store.members())[1]) == {"still"}
    assert not said.getvalue()
