"""Convert a browsed message to JMX: JMS headers, properties by type, and the body. Pure."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType, PropertyValue, property_value
from brokerapp.openwire.shown_messages import jms_form, read_content, shown_headers
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
#: Types of properties that have a map of their own; all others are among the strings.
_TYPES = {
    PropertyType.BOOLEAN: "Boolean", PropertyType.BYTE: "Byte", PropertyType.SHORT: "Short", PropertyType.INT: "Int",
    PropertyType.LONG: "Long", PropertyType.FLOAT: "Float", PropertyType.DOUBLE: "Double",
}  # fmt: skip


def as_data(message: MaskedMessage) -> dict[str, Any]:
    """Return the message as plain values; properties of STOMP clients are texts, those of JMS clients have types."""
    headers, form = message.headers, jms_form(message.headers) or JmsForm(JmsKind.TEXT)
    shown = shown_headers(headers)
    properties = {name: value for name, value in shown.items() if name not in _NO_PROPERTIES}
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
        "StringProperties": {name: text for name, text in properties.items() if form.types.get(name) not in _TYPES},
        **{
            f"{_TYPES[type]}Properties": {
                name: _typed(type, text) for name, text in properties.items() if form.types.get(name) is type
            }
            for type in _TYPES
        },
        **_body(message),
    }


def _body(message: MaskedMessage) -> dict[str, Any]:
    if message.withheld:
        return {"BodyLength": message.size, "BodyPreview": [], "Withheld": message.withheld}
    form = jms_form(message.headers)
    content = read_content(form, message.body) if form is not None else None
    if form is not None and form.kind is JmsKind.MAP and content is not None:
        return {"ContentMap": "{" + ", ".join(f"{each.name}={each.value}" for each in content.values) + "}"}
    if form is None or form.kind is JmsKind.TEXT:
        with suppress(UnicodeDecodeError):
            return {"Text": message.body.decode()}
    elif form.kind is not JmsKind.BYTES:
        return {}
    return {"BodyLength": message.size, "BodyPreview": list(message.body[:PREVIEW])}


def _typed(type: PropertyType, text: str) -> PropertyValue:
    """Return the value of a property; its text where it is masked, or no number of JSON."""
    if type is PropertyType.BOOLEAN and text not in ("true", "false"):
        return text
    value = property_value(type, text)
    return text if isinstance(value, float) and not math.isfinite(value) else value


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
