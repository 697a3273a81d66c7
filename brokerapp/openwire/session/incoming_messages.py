"""Make of a message of OpenWire what the broker publishes. Pure.

The message is stored as STOMP has it: see brokerapp/model/jms/form.py.
"""

from __future__ import annotations

from typing import Any, Final

from brokerapp.engine.policy.broker_headers import ORIGIN, SIGNATURE, with_broker_headers
from brokerapp.errors import RequestRefused
from brokerapp.model.commands import SendCommand
from brokerapp.model.destination import LIST_SEPARATOR
from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER, JmsKind, form_text
from brokerapp.model.message import escape, unescape
from brokerapp.model.transport_connector import MAX_BODY_BYTES
from brokerapp.openwire.commands import MessageCommand
from brokerapp.openwire.commands import data_types as t
from brokerapp.openwire.marshalled_values import decode_map
from brokerapp.openwire.message_content import inflate, utf8_of_text_content
from brokerapp.openwire.session.destinations import broker_text, list_of, named_destination, text_of_whole
from brokerapp.openwire.session.jms_values import header_lines, plain_header_lines, transaction_text
from brokerapp.openwire.session.transactions import transaction_name

#: Properties of one message, and bytes of them. They are header lines of what is stored, which selectors, consoles and
#: STOMP consumers read as a whole: the body is the place for much data.
MAX_PROPERTIES: Final = 10_000
MAX_PROPERTIES_BYTES: Final = 16 * 1024 * 1024

#: Instead of the content of a message that is kept: it is made of the body, which is kept, too.
FROM_BODY: Final = b""
#: Instead of the time when it arrived: what the broker says of it is not in it yet.
NOT_SAID: Final = -1

KINDS = {
    t.MESSAGE: JmsKind.PLAIN,
    t.TEXT_MESSAGE: JmsKind.TEXT,
    t.BYTES_MESSAGE: JmsKind.BYTES,
    t.MAP_MESSAGE: JmsKind.MAP,
    t.STREAM_MESSAGE: JmsKind.STREAM,
    t.OBJECT_MESSAGE: JmsKind.OBJECT,
    t.BLOB_MESSAGE: JmsKind.BLOB,
}


def send_command(
    message: MessageCommand,
    user_headers: str,
    receipt: str | None,
    max_body: int = MAX_BODY_BYTES,
    *,
    keep: bool = False,
) -> SendCommand:
    """Return the command that publishes a message, which is taken over with `keep`: consumers get it as it came.

    Raises RequestRefused or OpenWireError where it cannot be read.
    """
    if message.message_id is None:
        raise RequestRefused("a message without a message id")
    kind = KINDS[message.data_type]
    body = _body(message, kind, max_body)
    lines = user_headers
    if message.group_id is not None:
        lines += f"JMSXGroupID:{escape(message.group_id)}\nJMSXGroupSeq:{message.group_sequence}\n"
    if message.correlation_id is not None:
        lines += f"correlation-id:{escape(message.correlation_id)}\n"
    if message.reply_to is not None:
        lines += f"reply-to:{escape(text_of_whole(message.reply_to))}\n"
    if message.type is not None:
        lines += f"type:{escape(message.type)}\n"
    if message.transaction_id is not None:
        lines += f"{TRANSACTION_HEADER}:{escape(transaction_text(message.transaction_id))}\n"
    encoded = message.marshalled_properties
    found = plain_header_lines(encoded) if encoded else ("", "")
    properties, types = header_lines(_properties(encoded)) if found is None else found
    if message.original_destination is not None:  # that of a message that its consumer sends on
        lines += _origin_lines(text_of_whole(message.original_destination), properties)
    form = form_text(kind, types, has_body=body is not None)
    destination, transaction, priority = broker_text(message.destination), message.transaction_id, message.priority
    return SendCommand(
        destination,
        f"{lines}{JMS_HEADER}:{form}\n{properties}",  # the form first, as long heads are recorded in part
        body or b"",
        message.persistent,
        priority if 0 <= priority <= 9 else min(9, max(0, priority)),
        message.expiration,
        message.timestamp,
        None if transaction is None else transaction_name(transaction),
        receipt,
        kind is JmsKind.BYTES,
        message_id=str(message.message_id),
        sent_to=list_of(message.destination) if LIST_SEPARATOR in destination else None,
        converted=_kept(message, user_headers, has_body=body is not None)
        if keep and _comes_back(message, properties)
        else None,
    )


def _comes_back(message: MessageCommand, properties: str) -> bool:
    """Return whether what is made of the stored form of a message would be just what came.

    Not where its ids are others than those of their text, or its properties say what else the broker says, perhaps.
    """
    id, reply_to = message.message_id, message.reply_to
    return (
        id is not None
        and id.text_view is None
        and id.producer_id is not None
        and bool(id.producer_id.connection_id)
        and message.original_destination is None
        and (reply_to is None or named_destination(text_of_whole(reply_to)) == reply_to)
        and message.data_type != t.BLOB_MESSAGE
        and ORIGIN not in properties
        and SIGNATURE not in properties
    )


def _kept(message: MessageCommand, user_headers: str, *, has_body: bool) -> MessageCommand:
    """Make of a message what consumers get of it, without its content and what outgoing_messages says of it."""
    message.producer_id = message.message_id.producer_id if message.message_id is not None else None
    message.transaction_id, message.original_transaction_id = None, message.transaction_id
    if message.group_id is None:
        message.group_sequence = 0
    message.content, message.compressed = FROM_BODY if has_body else None, False
    message.user_id = unescape(user_headers.partition(":")[2].rstrip("\n")) if user_headers else None
    message.data_structure = message.target_consumer_id = message.cluster = None
    message.received_by_df_bridge = message.droppable = False
    message.broker_out_time, message.arrival = 0, NOT_SAID
    return message


def _properties(encoded: bytes | None) -> dict[str, Any]:
    """Return the properties of a message. Raises OpenWireError for what is none, RequestRefused for too many."""
    if not encoded:
        return {}
    if len(encoded) > MAX_PROPERTIES_BYTES:
        raise RequestRefused(f"properties of {len(encoded)} bytes: at most {MAX_PROPERTIES_BYTES} are allowed")
    values = decode_map(encoded)
    if len(values) > MAX_PROPERTIES:
        raise RequestRefused(f"{len(values)} properties: at most {MAX_PROPERTIES} are allowed")
    return values


def _origin_lines(origin: str, properties: str) -> str:
    """Return the header lines that say where a message was sent to before, by the word of its client."""
    names = dict.fromkeys((line.partition(":")[0] for line in properties.split("\n")), "")
    said = with_broker_headers(names, {ORIGIN: origin})
    return "".join(f"{name}:{escape(value)}\n" for name, value in said.items() if value is not None)


def _body(message: MessageCommand, kind: JmsKind, limit: int) -> bytes | None:
    """Return the body as it is stored; None where it is null."""
    content = message.content
    if content is None:
        return None
    if message.compressed:
        content = inflate(message.data_type, content, limit)
    return content if kind is not JmsKind.TEXT else utf8_of_text_content(content)
