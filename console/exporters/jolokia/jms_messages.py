"""Convert a browsed message to JMX: JMS headers, properties by type, and the body. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from console.access.masking import MaskedMessage

#: Bytes of a body that is no text.
PREVIEW = 255

#: STOMP's name of a header, JMS's, and what it is when the message has none.
_HEADERS = (
    ("message-id", "JMSMessageID", ""),
    ("destination", "JMSDestination", ""),
    ("correlation-id", "JMSCorrelationID", None),
    ("reply-to", "JMSReplyTo", None),
    ("type", "JMSType", None),
    ("JMSXGroupID", "JMSXGroupID", None),
    ("JMSXUserID", "JMSXUserID", None),
    ("original-destination", "OriginalDestination", None),
)
#: Headers that STOMP gives a meaning: all others are properties.
_NO_PROPERTIES = frozenset(
    {"message-id", "destination", "correlation-id", "reply-to", "type", "original-destination", "timestamp", "expires",
     "priority", "persistent", "redelivered", "content-length", "content-type", "receipt", "transaction",
     "subscription", "ack", "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID"}
)  # fmt: skip
#: Headers that name a destination.
_DESTINATIONS = frozenset({"destination", "original-destination", "reply-to"})
_TYPES = ("Boolean", "Byte", "Short", "Int", "Long", "Float", "Double")


def as_data(message: MaskedMessage) -> dict[str, Any]:
    """Return the message as plain values; all properties are texts, as STOMP has no types."""
    headers = message.headers
    properties = {name: value for name, value in headers.items() if name not in _NO_PROPERTIES}
    return {
        **{jms: headers.get(stomp, missing) for stomp, jms, missing in _HEADERS},
        **{jms: _native(headers[stomp]) for stomp, jms, _ in _HEADERS if stomp in _DESTINATIONS and stomp in headers},
        "JMSDeliveryMode": "PERSISTENT" if headers.get("persistent") == "true" else "NON-PERSISTENT",
        "JMSExpiration": _number(headers.get("expires")),
        "JMSPriority": _number(headers.get("priority"), 4),
        "JMSRedelivered": headers.get("redelivered") == "true",
        "JMSTimestamp": _time(headers.get("timestamp")),
        "JMSXGroupSeq": _number(headers.get("JMSXGroupSeq")),
        "BrokerPath": "",
        "PropertiesText": "{" + ", ".join(f"{name}={value}" for name, value in properties.items()) + "}",
        "StringProperties": properties,
        **{f"{type}Properties": {} for type in _TYPES},
        **_body(message),
    }


def _body(message: MaskedMessage) -> dict[str, Any]:
    if message.withheld:
        return {"BodyLength": message.size, "BodyPreview": [], "Withheld": message.withheld}
    try:
        return {"Text": message.body.decode()}
    except UnicodeDecodeError:
        return {"BodyLength": message.size, "BodyPreview": list(message.body[:PREVIEW])}


def _native(text: str) -> str:
    """Return a destination as JMS writes it, `queue://orders`; other text unchanged."""
    try:
        return str(Destination.parse(text))
    except InvalidDestination:
        return text


def _number(text: str | None, default: int = 0) -> int:
    return int(text) if text and text.isdecimal() else default


def _time(text: str | None) -> datetime | None:
    """Return a STOMP timestamp, milliseconds since the epoch, as a datetime."""
    return datetime.fromtimestamp(int(text) / 1000, UTC) if text and text.isdecimal() and len(text) < 15 else None
