"""What a producer with a window is told of the messages that it sent."""

import pytest

from brokerapp.openwire.commands import MessageCommand, ProducerAck, ProducerId, ProducerInfo
from brokerapp.openwire.session.producer_windows import producer_ack, window_receipt

PRODUCER = ProducerId("ID:host-1:1", 2, 3)


@pytest.mark.parametrize(
    ("content", "properties", "size"), [(None, None, 1024), (b"12345", None, 1029), (b"12345", b"67", 1031)]
)
def test_as_much_of_the_window_is_free_again_as_activemq_counts_for_a_message(content, properties, size):
    receipt = window_receipt(
        ProducerInfo(producer_id=PRODUCER, window_size=1),
        MessageCommand(content=content, marshalled_properties=properties),
    )
    assert receipt is not None
    assert producer_ack(receipt) == ProducerAck(producer_id=PRODUCER, size=size)


@pytest.mark.parametrize("producer", [None, ProducerInfo(producer_id=PRODUCER)])
def test_messages_of_producers_without_a_window_have_no_receipt_of_that_kind(producer):
    assert window_receipt(producer, MessageCommand()) is None


def test_the_receipt_of_an_answered_command_is_none_of_a_window():
    assert producer_ack("17") is None
