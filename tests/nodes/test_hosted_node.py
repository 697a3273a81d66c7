"""Test a node in the console's process that is expelled or whose store is rolled back: it restarts."""

import asyncio
import socket
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.errors import StoreUnavailable
from brokerapp.runtime.bootstrap import node_config
from brokerapp.runtime.hosted_node import HostedNode
from brokerapp.runtime.node import Node
from brokerapp.store.redis import RedisStore
from tests.nodes.conftest import TIMEOUT_MS


async def test_a_hosted_node_starts_again_when_it_is_no_member_any_more(redis_url):
    wanted = replace(node_config(default_config("hosted", 0), redis_url), node_timeout_ms=TIMEOUT_MS)
    hosted = HostedNode(lambda: Node(wanted))
    await hosted.start()
    first = hosted.node
    store = RedisStore(redis_url, "hosted")
    await store.nodes.leave(first.session)
    async with asyncio.timeout(30):
        while hosted.node is first or not hosted.node.addresses:
            await asyncio.sleep(0.05)
    assert hosted.node.session in {each["session"] for each in (await store.nodes.members())[1].values()}
    await store.close()
    await hosted.stop()


async def test_a_hosted_node_that_cannot_start_again_says_why(redis_url, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((0, taken.getsockname()[1]))

        def make():
            config = default_config("hosted", next(ports))
            return Node(replace(node_config(config, redis_url), node_timeout_ms=TIMEOUT_MS))

        hosted = HostedNode(make)
        await hosted.start()
        store = RedisStore(redis_url, "hosted")
        await store.nodes.leave(hosted.node.session)
        await store.close()
        async with asyncio.timeout(30):
            while "the broker node does not start again" not in caplog.text:
                await asyncio.sleep(0.05)
        assert "address already in use" in caplog.text
        await hosted.stop()


async def test_a_hosted_node_that_cannot_start_says_so_at_once():
    hosted = HostedNode(lambda: Node(node_config(default_config("hosted", 0), "redis://127.0.0.1:1")))
    with pytest.raises(StoreUnavailable):
        await hosted.start()
