"""Let producers send no more than their window at once: ProducerAck tells how much of it is free again. Pure.

A producer with a window does not wait for the answer to each message. The broker confirms these messages, too, by
receipts of their own kind.
"""

from __future__ import annotations

from brokerapp.openwire.commands import MessageCommand, ProducerAck, ProducerId, ProducerInfo

#: How the receipts of such messages begin; those of commands that are answered are numbers.
_PREFIX = "+"
#: Bytes that ActiveMQ, and so its clients, count for each message beside its content and properties.
MESSAGE_BYTES = 1024


def window_receipt(producer: ProducerInfo | None, message: MessageCommand) -> str | None:
    """Return the receipt that frees a part of its producer's window; None where it has none."""
    if producer is None or producer.window_size <= 0:
        return None
    size = MESSAGE_BYTES + len(message.marshalled_properties or b"") + len(message.content or b"")
    return f"{_PREFIX}{size} {producer.producer_id}"


def producer_ack(receipt: str) -> ProducerAck | None:
    """Return what a receipt tells a producer with a window; None for the receipt of another command."""
    if not receipt.startswith(_PREFIX):
        return None
    size, _, producer = receipt[len(_PREFIX) :].partition(" ")
    return ProducerAck(producer_id=ProducerId.parse(producer), size=int(size))
