"""Test what becomes of the sockets of links that are being made."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from brokerapp.engine.clients.broker_ids import BrokerIds
from brokerapp.network.links.broker_link import BridgeConnectionLost, BridgeLogin
from brokerapp.network.links.remote_links import RemoteLinks
from brokerapp.network.options.address import address_of
from tests.waiting import PATIENCE


async def test_a_link_that_is_given_up_while_nothing_was_said_leaves_no_socket_behind():
    accepted: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()
    server = await asyncio.start_server(lambda reader, _writer: accepted.put(reader), "127.0.0.1", 0)
    address = address_of(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    links = RemoteLinks("bridge", ssl.create_default_context, None, BrokerIds())
    connecting = asyncio.create_task(links.connect(address, BridgeLogin("here", "bridge_here_outbound", "way")))
    heard = await accepted.get()
    await asyncio.sleep(0.02)  # it waits for a greeting now
    connecting.cancel()
    async with asyncio.timeout(PATIENCE):
        assert await heard.read() == b""
    server.close()


async def test_a_connection_that_is_closed_before_the_login_is_lost():
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    address = address_of(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    links = RemoteLinks("bridge", ssl.create_default_context, None, BrokerIds())
    with pytest.raises(BridgeConnectionLost, match="closed before the login"):
        await links.connect(address, BridgeLogin("here", "bridge_here_outbound", "way"))
    server.close()


async def test_a_host_whose_name_is_not_known_is_named():
    links = RemoteLinks("bridge", ssl.create_default_context, None, BrokerIds())
    with pytest.raises(BridgeConnectionLost, match=r"^nowhere\.invalid: (name not known|the name could not be)"):
        await links.connect(address_of("tcp://nowhere.invalid:61616"), BridgeLogin("here", "id", "way"))
