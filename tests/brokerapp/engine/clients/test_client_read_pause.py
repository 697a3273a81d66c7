"""Test when a client is not read because its sends are blocked."""

from types import SimpleNamespace

import pytest

from brokerapp.engine.clients.client import MAX_BRIDGE_BLOCKED_BYTES, Client

FULL = MAX_BRIDGE_BLOCKED_BYTES


class Reader:
    """What the broker tells a connection: whether to read on."""

    held = False

    def pause_reading(self, held):
        self.held = held


@pytest.mark.parametrize(
    ("bridge", "acks", "waiting", "held"),
    [
        ("", (), 0, False),
        ("", (), 1, True),
        ("", ("auto",), FULL, False),
        ("far", ("auto",), 1, False),
        ("far", ("auto",), FULL, True),
        ("far", ("auto", "client-individual"), FULL, False),
    ],
)
def test_who_is_held_back_is_one_whose_acknowledgements_cannot_make_room(bridge, acks, waiting, held):
    client = Client("1", Reader(), bridge=bridge, blocked_sends=bool(waiting), blocked_bytes=waiting)
    client.subscriptions = {str(number): SimpleNamespace(ack_mode=each) for number, each in enumerate(acks)}
    client.update_reading()
    assert client.sink.held is held
