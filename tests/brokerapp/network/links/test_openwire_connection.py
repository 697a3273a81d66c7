"""Test the client's side of OpenWire that bridges have: the login, answers, and what is not OpenWire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from brokerapp.network.links.broker_link import BridgeConnectionLost, BridgeLogin, LinkEvents
from brokerapp.network.links.openwire_connection import OpenWireConnection
from brokerapp.network.options.address import OPENWIRE
from brokerapp.openwire.codec import Codec, FrameSplitter
from brokerapp.openwire.commands import (
    BrokerId,
    BrokerInfo,
    ConnectionInfo,
    ExceptionResponse,
    KeepAliveInfo,
    Response,
    ShutdownInfo,
    WireThrowable,
)
from brokerapp.openwire.wire_format_options import WireFormatOptions

LOGIN = BridgeLogin("here", "bridge_here_outbound", "way", user=("u", "p"))


class Peer:
    """A transport whose other end is an ActiveMQ, which answers as it is told."""

    def __init__(self, answer: Callable[[object], list[object]]) -> None:
        self.connection = OpenWireConnection("bridge", OPENWIRE, patience=0.5)
        self.heard: list[object] = []
        self.is_closed = False
        self._codec, self._splitter, self._answer = Codec(), FrameSplitter(), answer
        self.connection.connection_made(self)

    def tell(self, *commands: object) -> None:
        self.connection.data_received(b"".join(map(self._codec.encode, commands)))

    def write(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            command = self._codec.decode(frame)
            self.heard.append(command)
            asyncio.get_running_loop().call_soon(self.tell, *self._answer(command))

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def set_write_buffer_limits(self, high: int) -> None:
        """All is taken at once."""


def welcoming(command: object) -> list[object]:
    """Answer as an ActiveMQ does that lets the bridge in."""
    if isinstance(command, ConnectionInfo):
        return [Response(correlation_id=command.command_id)]
    return []


def greet(peer: Peer) -> None:
    peer.tell(WireFormatOptions(max_inactivity_duration=30_000, max_frame_size=5_000).to_info())
    peer.tell(BrokerInfo(broker_id=BrokerId("ID:vm-1"), broker_name="classic"))


def test_a_bridge_introduces_itself_as_one_and_learns_who_is_there():
    async def log_in():
        peer = Peer(welcoming)
        greet(peer)
        await peer.connection.open(LOGIN)
        return peer

    peer = asyncio.run(log_in())
    connection = peer.connection
    assert (connection.remote, connection.remote_id, connection.max_frame_size) == ("classic", "ID:vm-1", 5_000)
    _, broker, info, *_ = peer.heard
    assert (broker.broker_name, broker.network_connection, broker.duplex_connection) == ("here", True, False)
    assert (info.client_id, info.user_name, info.password) == ("bridge_here_outbound", "u", "p")


def test_a_login_that_is_refused_says_why_and_leaves_no_connection_behind():
    def refuse(command: object) -> list[object]:
        why = WireThrowable("java.lang.SecurityException", "User name [u] or password is invalid.")
        return [ExceptionResponse(correlation_id=command.command_id, exception=why)] if welcoming(command) else []

    async def log_in():
        peer = Peer(refuse)
        greet(peer)
        with pytest.raises(BridgeConnectionLost, match=r"User name \[u\] or password is invalid"):
            await peer.connection.open(LOGIN)
        return peer.is_closed

    assert asyncio.run(log_in())


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "no reply to the login over OpenWire"),
        (b"\0\0\0\4\x63abc", "does not speak OpenWire as expected"),
        (b"\x7f\xff\xff\xff\1ActiveMQ", "exceeds the limit of"),
        (b"\0\0\0\x0e\1ActiveMQ\0\0\0\0\0", "version 0 is not supported"),
    ],
)
def test_a_peer_that_says_nothing_or_nonsense_is_given_up_with_the_reason(said, reason):
    async def log_in():
        peer = Peer(lambda _command: [])
        if said:
            peer.connection.data_received(said)
        with pytest.raises(BridgeConnectionLost, match=reason):
            await peer.connection.open(LOGIN)

    asyncio.run(log_in())


def test_answers_find_what_was_asked_and_a_broker_that_leaves_ends_the_connection():
    receipts, refused = [], []

    async def ask():
        peer = Peer(welcoming)
        greet(peer)
        await peer.connection.open(LOGIN)
        peer.connection.events = LinkEvents(
            receipts.append, lambda id, why: refused.append((id, why)), lambda _free: None
        )
        for id in ("first", "second", None):
            peer.connection.send(KeepAliveInfo(), id)
        await asyncio.sleep(0)
        first, second, silent = [each for each in peer.heard if isinstance(each, KeepAliveInfo)]
        assert [each.response_required for each in (first, second, silent)] == [True, True, False]
        peer.tell(ExceptionResponse(correlation_id=second.command_id), Response(correlation_id=first.command_id))
        peer.tell(Response(correlation_id=first.command_id), Response(correlation_id=999))
        peer.tell(KeepAliveInfo(response_required=True))
        await asyncio.sleep(0)
        assert isinstance(peer.heard[-1], KeepAliveInfo)
        peer.tell(ShutdownInfo())
        return peer.connection.lost.result()

    assert asyncio.run(ask()) == "the other broker is shutting down"
    assert receipts == ["first"]
    assert refused == [("second", "refused without a reason")]
