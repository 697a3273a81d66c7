"""Test that browsers hear of changes again after the store's primary froze and a replica was promoted."""

from __future__ import annotations

import asyncio
import contextlib

import redis
from channels_redis.pubsub import RedisPubSubChannelLayer

from brokerapp.store.client.pools import channel_layer_host
from tests.faults.servers import Server

#: Seconds until a frozen primary is left: a second between checks, one for its missing answer, one to subscribe again.
PATIENCE = 20.0


def test_the_channel_layer_leaves_a_frozen_primary(tmp_path):
    one, two = Server(tmp_path / "one"), Server(tmp_path / "two")
    host = channel_layer_host(f"redis://127.0.0.1:{one.port},127.0.0.1:{two.port}/0", "console")

    async def exchange() -> None:
        receiver, sender = (RedisPubSubChannelLayer(hosts=[host], prefix="test") for _ in range(2))
        channel = await receiver.new_channel()
        await receiver.group_add("all", channel)
        received = asyncio.create_task(receiver.receive(channel))
        await sender.group_send("all", {"type": "first"})
        assert (await received)["type"] == "first"
        one.freeze()
        two.promote()
        received = asyncio.create_task(receiver.receive(channel))
        async with asyncio.timeout(PATIENCE):
            while not received.done():
                with contextlib.suppress(redis.RedisError):
                    await sender.group_send("all", {"type": "second"})
                await asyncio.wait({received}, timeout=0.2)
        assert (await received)["type"] == "second"
        for layer in (receiver, sender):
            await layer.flush()

    try:
        two.replicate(one.port)
        asyncio.run(exchange())
    finally:
        one.thaw()
        for each in (one, two):
            each.end()
