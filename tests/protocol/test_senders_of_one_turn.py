"""Test what several clients send in one turn of the event loop: each is confirmed, refused and limited by itself."""

import time

import pytest

from brokerapp.stomp.frames import encode

#: Seconds that the node's event loop stands still, in which all clients send.
PAUSE = 0.3


def in_one_turn(node, *sends):
    """Let these bytes of clients arrive while the node does something else, so that it reads them together."""
    node._loop.call_soon_threadsafe(time.sleep, PAUSE)
    time.sleep(PAUSE / 3)
    for client, data in sends:
        client.write(data)


def send_frame(destination, receipt, **headers):
    """A SEND that wants a receipt."""
    return encode("SEND", {"destination": destination, "receipt": receipt, **headers}, receipt.encode())


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_each_gets_its_own_receipts_where_only_some_messages_are_stored(kind, node, connect, raw, name):
    listener = connect()
    listener.subscribe(f"/{kind}/{name}.other")
    first, second, third = raw(), raw(), raw()
    in_one_turn(
        node,
        (first, send_frame(f"/queue/{name}", "one", persistent="true")),
        (second, send_frame(f"/{kind}/{name}.other", "two")),
        (third, send_frame(f"/queue/{name}", "three", persistent="true")),
    )
    for client, receipt in ((first, "one"), (second, "two"), (third, "three")):
        assert client.hear().headers["receipt-id"] == receipt
    assert listener.bodies(1) == ["two"]
