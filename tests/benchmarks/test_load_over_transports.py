"""The load generator over TLS and WebSocket: it counts what it counts over plain TCP."""

import pytest

from benchmarks.brokers.sluice import OverTls, OverWebSocket
from benchmarks.comparison.rounds import measure
from benchmarks.protocol.transports import _messages
from benchmarks.scenarios.rows import QUEUE_SCENARIO

pytestmark = pytest.mark.slow


def test_every_receipt_and_delivery_comes_over_tls_and_over_websocket():
    results = measure(QUEUE_SCENARIO, [OverTls(), OverWebSocket()], 1, 0.02, lambda peer: None)
    assert {name: result.failure for name, result in results.items()} == {"tls": None, "websocket": None}
    assert [len(result.rounds) for result in results.values()] == [1, 1]
    assert {each.outcome.deliveries for result in results.values() for each in result.rounds} == {1000}


def test_each_frame_is_a_message_of_its_own():
    short, long = b"ACK\nid:1\n\n\0", b"SEND\n\n" + b"x" * 200 + b"\0"
    assert _messages(short + long) == (
        b"\x81" + bytes([128 + len(short)]) + b"\0" * 4 + short + b"\x81\xfe\x00\xcf" + b"\0" * 4 + long
    )
