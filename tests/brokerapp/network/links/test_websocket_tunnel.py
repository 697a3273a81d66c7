"""A link in WebSocket messages."""

from types import SimpleNamespace

import pytest

from brokerapp.network.links.websocket import MAX_MESSAGE_BYTES, WebSocketClientTransport
from brokerapp.network.options.address import BrokerAddress


@pytest.fixture
def lost():
    """Why the link was told that it is lost."""
    return []


@pytest.fixture
async def tunnel(lost):
    return WebSocketClientTransport(
        SimpleNamespace(connection_lost=lost.append), BrokerAddress("far.example", 80, websocket=True)
    )


async def test_a_connection_that_ends_after_its_dialling_was_given_up_tells_nobody(tunnel, lost):
    tunnel.opened.cancel()
    tunnel.connection_lost(None)
    assert lost == []


async def test_no_message_is_read_that_is_larger_than_any_frame(tunnel):
    assert tunnel._protocol.max_message_size == MAX_MESSAGE_BYTES
