"""What a client names at great length is not kept for others."""

import tracemalloc
from collections.abc import Callable

import pytest

from brokerapp.model.jms.form import JmsForm, type_word
from brokerapp.model.jms.properties import PropertyType
from brokerapp.openwire.commands import MessageId
from brokerapp.openwire.marshalled_values import encode_map
from brokerapp.openwire.session.destinations import broker_text, openwire_destination
from brokerapp.openwire.session.jms_values import header_lines
from tests.protocol.openwire_client import queue


@pytest.mark.parametrize(
    "use",
    [
        lambda name: header_lines({name: 1}),
        lambda name: broker_text(queue(name)),
        lambda name: openwire_destination(f"/queue/a,{name}"),
        lambda name: type_word(name, PropertyType.INT),
        lambda name: JmsForm.parse(f"text {name}=i"),
        lambda name: encode_map({name: 1}),
        lambda name: MessageId.parse(f"{name}:1:1:1"),
    ],
    ids=["property", "destination", "list", "word of a type", "form", "name of a value", "producer"],
)
def test_long_names_are_not_remembered(use: Callable[[str], object]):
    tracemalloc.start()
    try:
        for number in range(100):
            use(f"{number:03}" + "x" * 30_000)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
