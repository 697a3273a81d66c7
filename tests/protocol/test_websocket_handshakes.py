"""Handshakes that are no WebSocket's: each is answered and ends with one line in the log, and none with a traceback."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator

import pytest

from brokerapp.config import BrokerConfig, TransportConnector
from tests.protocol.clients import PATIENCE
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

GET = "GET / HTTP/1.1\r\nHost: x\r\n"
UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
KEY = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
HANDSHAKES = {
    "binary": b"\x00\xff\x16\x03\x01" * 20,
    "binary lines": b"\x80\x81\r\n\r\n" * 10,
    "a STOMP frame": b"CONNECT\naccept-version:1.2\nhost:here\n\n\0",
    "an unfinished request": b"GET /stomp HTTP/1.1\r\nHost: x\r\n",
    "nothing": b"",
    "a method": f"POST /stomp HTTP/1.1\r\nHost: x\r\n{UPGRADE}{KEY}\r\n".encode(),
    "no upgrade": b"GET /stomp HTTP/1.1\r\nHost: x\r\n\r\n",
    "a wrong key": f"{GET}{UPGRADE}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n".encode(),
    "two keys": f"{GET}{UPGRADE}{KEY}{KEY}\r\n".encode(),
    "a wrong version": f"{GET}{UPGRADE}{KEY.replace('13', '7')}\r\n".encode(),
    "an unknown protocol": f"{GET}{UPGRADE}{KEY}Sec-WebSocket-Protocol: mqtt\r\n\r\n".encode(),
    "a protocol of garbage": f"{GET}{UPGRADE}{KEY}Sec-WebSocket-Protocol: ,,;\r\n\r\n".encode(),
    "two origins": f"{GET}{UPGRADE}{KEY}Origin: a\r\nOrigin: b\r\n\r\n".encode(),
    "an upgrade of garbage": f"{GET}Upgrade: ,;\r\nConnection: \x7f;\r\n{KEY}\r\n".encode(),
    "a body": b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "chunks": b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a refusal and more": f"{GET}{UPGRADE}{KEY}Sec-WebSocket-Protocol: mqtt\r\n\r\n\r\n".encode(),
    "bytes after the request": f"{GET}{UPGRADE}{KEY}\r\n".encode() + b"\xff" * 30,
    "a long line": b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n",
    "an endless line": b"x" * 200_000,
}


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    connectors = (TransportConnector("ws", "ws", "127.0.0.1", 0, ()),)
    running = RunningNode(BrokerConfig("handshakes", connectors=connectors), store.url)
    yield running
    running.stop()


@pytest.mark.parametrize("ends", [False, True], ids=["waits", "hangs up"])
@pytest.mark.parametrize("sent", HANDSHAKES.values(), ids=HANDSHAKES)
def test_garbage_in_a_handshake_ends_in_one_line(node, caplog, sent, ends):
    [address] = node.node.addresses
    caplog.set_level(logging.INFO)
    with (
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=PATIENCE) as client,
        contextlib.suppress(OSError),  # it is cut off while it sends, or waits for what is missing
    ):
        client.sendall(sent)
        if ends:
            client.shutdown(socket.SHUT_WR)
        else:
            client.settimeout(0.1)
        while client.recv(65_536):
            pass

    def lines():
        return [each.getMessage() for each in caplog.records if "handshake" in each.getMessage()]

    wait_until(lines, "a line about the handshake")
    told = [each for each in caplog.records if each.exc_info or each.levelno >= logging.ERROR]
    assert [each.getMessage() for each in told] == []
    [line] = lines()
    assert len(line) <= 300
    assert "\n" not in line
