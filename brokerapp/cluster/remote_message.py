"""Convert a MESSAGE from another broker of the cluster to the message that it is there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from brokerapp.engine.entries.remote_entry import REMOTE_LOG_PREFIX, EntryOwner, RemoteLogEntry
from brokerapp.model.broker_path import PATH_HEADER
from brokerapp.model.message import DEFAULT_PRIORITY, Message, escape

#: Headers about the delivery to this broker, not of the message.
_DELIVERY_HEADERS = frozenset({"subscription", "ack", "redelivered", "JMSXDeliveryCount", "destination", PATH_HEADER})
_ID = "message-id"


def message_of(headers: Mapping[str, str], body: bytes, sent_from: str) -> Message:
    """Return the message, with the path that says that it came from that broker."""
    kept = {_ID: headers[_ID], **{name: value for name, value in headers.items() if name not in _DELIVERY_HEADERS}}
    head = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in kept.items()).encode()
    return Message(
        headers[_ID],
        head,
        body,
        headers.get("persistent") == "true",
        int(headers.get("priority", DEFAULT_PRIORITY)),
        int(headers.get("expires", 0)),
        int(headers.get("timestamp", 0)) * 1000,
        has_group="JMSXGroupID" in headers,
        path=(sent_from,),
    )


def entry_of(headers: Mapping[str, str], body: bytes, sent_from: str, keeper: EntryOwner) -> RemoteLogEntry:
    """Return the message as its consumer is given it."""
    destination = headers["destination"]
    return RemoteLogEntry(
        f"{REMOTE_LOG_PREFIX}{sent_from}{destination}",
        0,
        message_of(headers, body, sent_from),
        shown_destination=destination,
        redelivery_count=max(0, int(headers.get("JMSXDeliveryCount", 1)) - 1),
        owner=keeper,
        ack_id=headers["ack"],
    )
