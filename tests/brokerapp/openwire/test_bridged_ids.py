"""Test under which ids messages cross bridges to an ActiveMQ."""

import pytest

from brokerapp.openwire.bridged_ids import bridged_id, text_of_bridged_id
from brokerapp.openwire.commands import MessageId, ProducerId


@pytest.mark.parametrize(
    ("text", "crosses_as"),
    [
        ("ID:here_%-7a95c950:2", "ID:here_%-7a95c950:-1:0:2"),
        ("ID:host-40123-1-5:1:2:3:7", "ID:host-40123-1-5:1:2:3:7"),
        ("ID:host-40123-1-5:-1:1:7", "ID:host-40123-1-5:-1:1:7"),
        ("of another product", "ID:of another product"),
    ],
)
def test_an_id_can_be_read_from_its_text_at_an_activemq_and_is_the_same_when_it_comes_back(text, crosses_as):
    crossed = bridged_id(text)
    assert str(crossed) == crosses_as
    assert text_of_bridged_id(crossed).removeprefix("ID:") == text.removeprefix("ID:")


def test_two_messages_of_sluice_are_two_of_one_producer():
    first, second = bridged_id("ID:here-1:1"), bridged_id("ID:here-1:2")
    assert (first.producer_id, first.producer_sequence_id) == (ProducerId("ID:here-1", 0, -1), 1)
    assert first != second
    assert second == MessageId(None, ProducerId("ID:here-1", 0, -1), 2)
