"""Test when a bridge gives a connection up, and how the connection ends."""

import asyncio
import contextlib

import pytest

from brokerapp.network.links.bridge_link import SILENT_SECONDS, BridgeLink
from brokerapp.network.links.broker_link import BridgeConnectionLost


class Wire:
    """A socket that takes all and says nothing."""

    def is_closing(self):
        return False

    def ignored(self, *_args, **_named):
        pass

    write = pause_reading = resume_reading = abort = close = set_write_buffer_limits = ignored


def silent_for_long(link, *, held):
    """Whether it takes the other end for dead when it heard nothing for long."""
    link.pause_reading(held)
    link._last_read_at -= 2 * SILENT_SECONDS
    link._on_heartbeat()
    return link.lost.done()


def test_who_is_not_read_from_is_not_silent():
    async def judge():
        link = BridgeLink("bridge")
        link.connection_made(Wire())
        held = silent_for_long(link, held=True)
        link.pause_reading(False)
        link._on_heartbeat()
        return held, link.lost.done(), silent_for_long(link, held=False)

    assert asyncio.run(judge()) == (False, False, True)


def test_a_login_that_is_given_up_leaves_no_connection_behind():
    async def give_up():
        link = BridgeLink("bridge")
        link.connection_made(Wire())
        login = asyncio.create_task(link.open({"client-id": "of the bridge"}))
        await asyncio.sleep(0)
        login.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await login
        return link.lost.done()

    assert asyncio.run(give_up())


@pytest.mark.scenario("NB-69")
def test_a_broker_of_another_make_is_none_that_a_bridge_can_end_at_and_it_is_named():
    async def answered():
        link = BridgeLink("bridge")
        link.connection_made(Wire())
        login = asyncio.create_task(link.open({"client-id": "of the bridge"}))
        await asyncio.sleep(0)
        link.data_received(b"CONNECTED\nversion:1.2\nserver:RabbitMQ/3.12.1\n\n\0")
        await login

    with pytest.raises(BridgeConnectionLost, match=r"it is RabbitMQ/3\.12\.1; only Sluice and ActiveMQ"):
        asyncio.run(answered())


def test_a_broker_that_tells_its_limits_wrongly_is_named_with_the_header():
    async def answered():
        link = BridgeLink("bridge")
        link.connection_made(Wire())
        login = asyncio.create_task(link.open({"client-id": "of the bridge"}))
        await asyncio.sleep(0)
        link.data_received(b"CONNECTED\nversion:1.2\nsluice-broker:b\nsluice-limits:many\n\n\0")
        await login

    with pytest.raises(BridgeConnectionLost, match="sluice-limits: 'many' is not two numbers of bytes"):
        asyncio.run(answered())
