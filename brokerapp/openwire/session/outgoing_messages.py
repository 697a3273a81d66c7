"""Make of a message of the broker what an OpenWire consumer gets. Pure.

A message of a JMS client is what it was when it was sent; one of a STOMP client is a text message, or a bytes message
where it has a content-length, with strings as properties (ActiveMQ's rule).
"""

from __future__ import annotations

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsForm, JmsKind, jms_form_of
from brokerapp.model.message import Message
from brokerapp.model.transformations import HEADER
from brokerapp.openwire.commands import MessageCommand, MessageDispatch, MessageId
from brokerapp.openwire.marshalled_values import encode_map
from brokerapp.openwire.message_content import encode_text_content
from brokerapp.openwire.session.advisory_messages import ADVISORY_FORM, advisory_of
from brokerapp.openwire.session.consumers import OpenWireConsumer
from brokerapp.openwire.session.destinations import openwire_destination
from brokerapp.openwire.session.incoming_messages import KINDS
from brokerapp.openwire.session.java_documents import map_of
from brokerapp.openwire.session.jms_values import properties_of

_DATA_TYPES = {kind: type for type, kind in KINDS.items()}
_FROM_STOMP_TEXT, _FROM_STOMP_BYTES = JmsForm(JmsKind.TEXT), JmsForm(JmsKind.BYTES)
_FROM_MAP = JmsForm(JmsKind.MAP)


def message_dispatch(consumer: OpenWireConsumer, entry: LogEntry, number: int) -> MessageDispatch:
    """Return what hands a message to a consumer; `number` is that of the delivery on the connection."""
    message = message_command(entry.message)
    destination = openwire_destination(entry.shown_destination or Destination.parse(entry.log).stomp)
    message.destination = destination
    if entry.original_destination:
        message.original_destination = openwire_destination(entry.original_destination)
    id = MessageId.parse(entry.message.id)
    message.message_id = MessageId(id.text_view, id.producer_id, id.producer_sequence_id, number)
    message.redelivery_counter = entry.redelivery_count
    message.jmsx_group_first_for_consumer = entry.first_of_group
    return MessageDispatch(
        consumer_id=consumer.id, destination=destination, message=message, redelivery_counter=entry.redelivery_count
    )


def message_command(message: Message) -> MessageCommand:
    """Return a message of the broker in OpenWire, but for what depends on where it is delivered."""
    headers = message.headers
    form = jms_form_of(message)
    advisory = values = None
    if form is None:
        form = _FROM_STOMP_BYTES if "content-length" in headers else _FROM_STOMP_TEXT
        if HEADER in headers:
            if (advisory := advisory_of(message)) is not None:
                form = ADVISORY_FORM
            elif (values := map_of(message)) is not None:
                form = _FROM_MAP
    get = headers.get
    properties = properties_of(headers.items(), form if form.types else None)
    id = MessageId.parse(message.id)
    reply_to, sequence = get("reply-to"), get("JMSXGroupSeq", "0")
    return MessageCommand(
        producer_id=id.producer_id,
        message_id=id,
        group_id=get("JMSXGroupID"),
        group_sequence=int(sequence) if sequence.lstrip("-").isdecimal() else 0,
        correlation_id=get("correlation-id"),
        persistent=message.persistent,
        expiration=message.expires,
        priority=message.priority,
        reply_to=openwire_destination(reply_to) if reply_to else None,
        timestamp=int(get("timestamp", "0")),
        type=get("type"),
        content=_content(message, form) if values is None else encode_map(values),
        marshalled_properties=encode_map(properties) if properties else None,
        data_structure=advisory.data if advisory is not None else None,
        arrival=message.born_us // 1000,
        user_id=get("JMSXUserID"),
        data_type=_DATA_TYPES[form.kind],
    )


def _content(message: Message, form: JmsForm) -> bytes | None:
    if not form.has_body:
        return None
    if form.kind is JmsKind.TEXT:
        return encode_text_content(message.body.decode("utf-8", "replace"))
    return message.body
