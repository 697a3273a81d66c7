"""Translate message ids of Sluice to ids that an ActiveMQ can read, and back, for messages that cross a bridge. Pure.

An ActiveMQ reads the text of an id again when a STOMP client of it acknowledges: CONNECTION:SESSION:PRODUCER:NUMBER.
Ids of Sluice are PREFIX:NUMBER. They cross as the n-th message of a producer that nobody has.
"""

from __future__ import annotations

from brokerapp.openwire.commands import MessageId, ProducerId

#: Session and producer of what was sent by no JMS client. ActiveMQ counts its own from 1.
_SESSION, _PRODUCER = -1, 0


def bridged_id(text: str) -> MessageId:
    """Return the id under which a message with an id of this text crosses a bridge."""
    id = MessageId.parse(text)
    if id.text_view is None or id.producer_id is None or not id.producer_sequence_id:
        return id
    producer = ProducerId(id.producer_id.connection_id, _PRODUCER, _SESSION)
    return MessageId(None, producer, id.producer_sequence_id)


def text_of_bridged_id(id: MessageId) -> str:
    """Return the text of the id of a message that crossed a bridge, as its first broker knows it."""
    producer = id.producer_id
    if producer is not None and (producer.session_id, producer.value) == (_SESSION, _PRODUCER):
        return f"{producer.connection_id}:{id.producer_sequence_id}"
    return str(id)
