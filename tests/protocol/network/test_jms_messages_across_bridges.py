"""Test that what JMS clients may send crosses the bridges between brokers, which speak STOMP to their own one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.openwire.commands import Response
from brokerapp.openwire.marshalled_values import decode_map, encode_map
from tests.protocol.networking import duplex_pair, wait_for_demand
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.protocol.running_node import RunningNode


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    both_protocols = TransportConnector("openwire", "tcp", "127.0.0.1", 0)
    with duplex_pair(store, connectors=(both_protocols,)) as both:
        yield both


PROPERTIES = {
    "a long text": {"text": "x" * 20_000},
    "many": {f"p{number}": number for number in range(2_000)},
    "more than a head may have": {f"p{number}": "x" * 9_000 for number in range(200)},
}


@pytest.mark.parametrize("source", [0, 1], ids=["out", "in"])
@pytest.mark.parametrize("properties", PROPERTIES.values(), ids=PROPERTIES)
def test_a_message_with_large_properties_crosses(pair, name, source, properties):
    with OpenWireClient(pair[source].port) as sender, OpenWireClient(pair[1 - source].port) as consumer:
        consumer.consumer(1, queue(name))
        wait_for_demand(pair[0], f"queue://{name}")
        message = sender.message(queue(name), "m", marshalled_properties=encode_map(properties))
        assert type(sender.ask(message)) is Response
        sender.send(queue(name), "next")
        large, following = consumer.dispatches(2)
        assert decode_map(large.message.marshalled_properties) == properties
        assert not following.message.marshalled_properties
