"""Make of a message of the broker what an OpenWire consumer gets. Pure.

A message of a JMS client is what it was when it was sent; one of a STOMP client is a text message, or a bytes message
where it has a content-length, with strings as properties (ActiveMQ's rule).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    ORIGIN,
    ORIGINAL_DELIVERY_MODE,
    ORIGINAL_EXPIRATION,
    SENT_BY,
    SIGNATURE,
    broker_headers,
)
from brokerapp.errors import OpenWireError
from brokerapp.model.destination import DestinationKind
from brokerapp.model.jms.form import TRANSACTION_HEADER, JmsForm, JmsKind, jms_form_of
from brokerapp.model.jms.transformations import ERROR_HEADER, HEADER, read_document
from brokerapp.model.message import Message
from brokerapp.openwire.commands import BrokerId, MessageCommand, MessageDispatch, MessageId
from brokerapp.openwire.map_documents import map_values
from brokerapp.openwire.marshalled_values import Long, encode_map
from brokerapp.openwire.message_content import content_of
from brokerapp.openwire.session.advisory_messages import ADVISORY_FORM, advisory_of
from brokerapp.openwire.session.consumers import OpenWireConsumer
from brokerapp.openwire.session.destinations import destination_of_log, named_destination, openwire_destination
from brokerapp.openwire.session.incoming_messages import FROM_BODY, KINDS, NOT_SAID
from brokerapp.openwire.session.jms_values import properties_of, stomp_properties_of, transaction_of

_DATA_TYPES = {kind: type for type, kind in KINDS.items()}
_FROM_STOMP_TEXT, _FROM_STOMP_BYTES, _FROM_STOMP_MAP = map(JmsForm, (JmsKind.TEXT, JmsKind.BYTES, JmsKind.MAP))
#: How the names of logs begin whose messages come to several consumers.
_SHARED = (f"{DestinationKind.TOPIC}://", f"{DestinationKind.SUBSCRIPTION}://", f"{DestinationKind.TEMP_TOPIC}://")
#: The longest body that is kept as OpenWire has it, beside its stored form, while the message is in memory.
MAX_KEPT_BYTES = 16 * 1024
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
_fields_of = attrgetter(*(each.name for each in fields(MessageCommand)))
#: Type of what the broker itself writes.
ADVISORY_TYPE = "Advisory"
#: Headers written by the broker that JMS clients get as properties: those that ActiveMQ writes, too, and the operator
#: who sent the message.
_JMS_NAMES = {CAUSE, ORIGINAL_EXPIRATION, ORIGINAL_DELIVERY_MODE, SENT_BY}


def message_dispatch(consumer: OpenWireConsumer, entry: LogEntry, number: int) -> MessageDispatch:
    """Return what hands a message to a consumer; `number` is that of the delivery on the connection.

    To be encoded at once: parts of it are those of other deliveries of the message, too.
    """
    message = _command_for(entry)
    shown = entry.shown_destination
    destination = openwire_destination(shown) if shown else destination_of_log(entry.log)
    message.destination = destination
    if entry.original_destination:
        message.original_destination = openwire_destination(entry.original_destination)
    assert message.message_id is not None
    message.message_id.broker_sequence_id = number
    message.redelivery_counter = entry.redelivery_count
    message.jmsx_group_first_for_consumer = entry.first_of_group
    return MessageDispatch(
        consumer_id=consumer.id, destination=destination, message=message, redelivery_counter=entry.redelivery_count
    )


def _command_for(entry: LogEntry) -> MessageCommand:
    """Return the message of an entry in OpenWire: as its client sent it, or converted, for all who get it."""
    message = entry.message
    kept: MessageCommand | None = message.converted
    if kept is None:
        made = message_command(message)
        if made.original_destination is None and entry.log.startswith(_SHARED) and message.size <= MAX_KEPT_BYTES:
            message.converted = made
        return made
    if kept.arrival == NOT_SAID:
        _say_as_broker(kept, message)
    if kept.content == FROM_BODY:
        if message.size > MAX_KEPT_BYTES:
            kept = MessageCommand(*_fields_of(kept))
        kept.content = content_of(kept.data_type, message.body)
    kept.original_destination = None  # that of another place it was delivered from
    return kept


def message_command(message: Message) -> MessageCommand:
    """Return a message of the broker in OpenWire, but for what depends on where it is delivered."""
    headers = message.headers
    get = headers.get
    form = jms_form_of(message)
    advisory = advisory_of(message) if form is None and HEADER in headers else None
    if advisory is not None:
        form, content = ADVISORY_FORM, None
        properties = properties_of(headers, ADVISORY_FORM)
        del properties[HEADER]
    elif form is None:
        form, content, properties = _of_stomp(message)
    else:
        content, properties = _content(message, form), properties_of(headers, form)
    if SIGNATURE in headers or ORIGIN in headers:
        _say_as_activemq(headers, properties)
    id = MessageId.parse(message.id)
    transaction, sequence = get(TRANSACTION_HEADER), get("JMSXGroupSeq", "0")
    made = MessageCommand(
        producer_id=id.producer_id,
        message_id=id,
        original_destination=named_destination(get(ORIGIN)),
        original_transaction_id=None if transaction is None else transaction_of(transaction),
        group_id=get("JMSXGroupID"),
        group_sequence=_whole(sequence, _INT_MAX),
        correlation_id=get("correlation-id"),
        reply_to=named_destination(get("reply-to")),
        type=get("type"),
        content=content,
        marshalled_properties=_encoded(properties) if properties else None,
        data_structure=advisory.data if advisory is not None else None,
        user_id=get("JMSXUserID"),
        data_type=_DATA_TYPES[form.kind],
    )
    _say_as_broker(made, message)
    return made


def _say_as_broker(command: MessageCommand, message: Message) -> None:
    """Let a message say what the broker says of it, wherever it is delivered."""
    command.command_id, command.response_required = 0, False
    command.persistent, command.priority = message.persistent, message.priority
    command.expiration = min(message.expires, _LONG_MAX)
    command.timestamp = _whole(message.header("timestamp") or "0", _LONG_MAX)
    command.broker_path = tuple(map(BrokerId, message.path)) or None
    command.arrival = command.broker_in_time = message.born_us // 1000


def _whole(text: str, most: int) -> int:
    """Return the number that a header holds; 0 for what is none, or out of range, which STOMP clients may send."""
    try:
        number = int(text)
    except ValueError:
        return 0
    return number if -most <= number <= most else 0


def _encoded(properties: dict[str, Any]) -> bytes:
    """Return properties as OpenWire has them; a value that is not of its type as text."""
    try:
        return encode_map(properties)
    except OpenWireError:
        return encode_map({name: each if _fits(each) else str(each) for name, each in properties.items()})


def _fits(value: Any) -> bool:
    try:
        return bool(encode_map({"": value}))
    except OpenWireError:
        return False


def _of_stomp(message: Message) -> tuple[JmsForm, bytes | None, dict[str, Any]]:
    """Return what a message of a STOMP client is for JMS clients, its content and its properties."""
    headers = message.headers
    properties = stomp_properties_of(headers)
    if headers.get("type") == ADVISORY_TYPE:  # the broker's own: only STOMP clients need to be told how it is written
        properties.pop(HEADER, None)
    if "reply-to" in headers and named_destination(headers["reply-to"]) is None:
        properties["reply-to"] = headers["reply-to"]
    if "content-length" in headers and headers.get("amq-msg-type", "").lower() != "text":
        return _FROM_STOMP_BYTES, message.body, properties
    if HEADER in headers and ERROR_HEADER not in headers:
        try:
            document = read_document(headers[HEADER], message.body)
            if document is not None:
                return _FROM_STOMP_MAP, encode_map(map_values(document)), properties
        except (ValueError, OpenWireError) as error:
            properties[ERROR_HEADER] = str(error)
    return _FROM_STOMP_TEXT, _content(message, _FROM_STOMP_TEXT), properties


def _say_as_activemq(headers: Mapping[str, str], properties: dict[str, Any]) -> None:
    """Let the properties say of a failure what ActiveMQ says of it, no more and with its types, and keep `sentBy`."""
    written = broker_headers(headers)
    for name in written.keys() - _JMS_NAMES:
        properties.pop(name, None)
    if CAUSE not in written:
        return
    expired = written.get(ORIGINAL_EXPIRATION, "0")
    if ORIGINAL_EXPIRATION in written or headers.get("expires", "0") == "0":
        properties[ORIGINAL_EXPIRATION] = Long(expired) if expired.isdecimal() else expired


def _content(message: Message, form: JmsForm) -> bytes | None:
    return content_of(_DATA_TYPES[form.kind], message.body) if form.has_body else None
