"""Test when a client is not read because its sends are blocked."""

from types import SimpleNamespace

import pytest

from brokerapp.engine.clients.client import MAX_BLOCKED_BYTES, Client

FULL = MAX_BLOCKED_BYTES


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


@pytest.mark.parametrize(
    ("held", "waiting", "paused"),
    [
        ((), 0, False),
        ((), 1, True),
        (((), ("advisory",)), 1, True),
        ((("queue",), ()), 1, True),
        ((("queue",), ("m",)), 1, False),
        ((("queue",), ("m",)), FULL, True),
    ],
)
def test_a_client_of_openwire_is_read_while_it_holds_messages_of_queues(held, waiting, paused):
    client = Client("1", Reader(), is_openwire=True, blocked_sends=bool(waiting), blocked_bytes=waiting)
    if held:
        client.subscriptions = {"s": SimpleNamespace(ack_mode="client-individual", logs=held[0], unacked=held[1])}
    client.update_reading()
    assert client.sink.held is paused


@pytest.mark.parametrize(
    ("is_duplex", "waiting", "paused"), [(False, 1, False), (False, FULL, True), (True, FULL, False)]
)
def test_a_bridge_of_openwire_is_read_unless_it_only_sends_and_too_much_waits(is_duplex, waiting, paused):
    client = Client(
        "1", Reader(), bridge="far", is_openwire=True, is_duplex=is_duplex, blocked_sends=1, blocked_bytes=waiting
    )
    client.subscriptions = {"advisories": SimpleNamespace(ack_mode="client-individual")}
    client.update_reading()
    assert client.sink.held is paused
