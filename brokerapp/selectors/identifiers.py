"""Resolves names in selectors: JMS identifiers and their STOMP aliases; all others are user properties."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from brokerapp.selectors.values import Value, ValueType, parse_boolean, parse_number

#: A temporary destination in STOMP form: its kind and its name.
TEMPORARY = r"(?s)/(?:remote-)?(temp-queue|temp-topic)/(.*)"

PERSISTENT, NON_PERSISTENT = "PERSISTENT", "NON_PERSISTENT"


def _same(text: str) -> str:
    return text


def _delivery_mode(text: str) -> str:
    return PERSISTENT if parse_boolean(text) else NON_PERSISTENT


def _native(text: str) -> str:
    """Convert a destination header to native form: `/queue/orders` becomes `queue://orders`."""
    if (temporary := re.fullmatch(TEMPORARY, text)) is not None:
        return f"{temporary[1]}://{temporary[2]}"
    try:
        return str(Destination.parse(text))
    except InvalidDestination:
        return text


class IdentifierType(Enum):
    """Type of the value of an identifier, and the conversion of its header."""

    TEXT = ValueType.TEXT, _same
    NUMBER = ValueType.NUMBER, parse_number
    BOOLEAN = ValueType.BOOLEAN, parse_boolean
    DELIVERY_MODE = ValueType.TEXT, _delivery_mode
    DESTINATION = ValueType.TEXT, _native

    def __init__(self, type: ValueType, read: Callable[[str], Value | None]) -> None:
        self.type, self.read = type, read


@dataclass(frozen=True, slots=True)
class Identifier:
    """The value is that of the first of `headers` a message has, else `default` (None: unknown)."""

    headers: tuple[str, ...]
    form: IdentifierType = IdentifierType.TEXT
    default: str | None = None


#: JMS identifier -> the STOMP headers that carry it. Defaults are what JMS says of a message that does not say.
JMS: dict[str, Identifier] = {
    "JMSDestination": Identifier(("original-destination", "destination"), IdentifierType.DESTINATION),
    "JMSReplyTo": Identifier(("reply-to",), IdentifierType.DESTINATION),
    "JMSMessageID": Identifier(("message-id",)),
    "JMSCorrelationID": Identifier(("correlation-id",)),
    "JMSType": Identifier(("type",)),
    "JMSPriority": Identifier(("priority",), IdentifierType.NUMBER, "4"),
    "JMSTimestamp": Identifier(("timestamp",), IdentifierType.NUMBER, "0"),
    "JMSExpiration": Identifier(("expires",), IdentifierType.NUMBER, "0"),
    "JMSDeliveryMode": Identifier(("persistent",), IdentifierType.DELIVERY_MODE, "false"),
    "JMSRedelivered": Identifier(("redelivered",), IdentifierType.BOOLEAN, "false"),
    "JMSXDeliveryCount": Identifier(("JMSXDeliveryCount",), IdentifierType.NUMBER, "1"),
    "JMSXGroupSeq": Identifier(("JMSXGroupSeq",), IdentifierType.NUMBER, "0"),
    "JMSXGroupFirstForConsumer": Identifier(("JMSXGroupFirstForConsumer",), IdentifierType.BOOLEAN, "false"),
    "JMSActiveMQBrokerInTime": Identifier(("JMSActiveMQBrokerInTime",), IdentifierType.NUMBER),
    "JMSActiveMQBrokerOutTime": Identifier(("JMSActiveMQBrokerOutTime",), IdentifierType.NUMBER),
}

#: STOMP's own names, accepted beside those of JMS. `persistent` is the boolean a STOMP client writes.
STOMP: dict[str, Identifier] = {
    "destination": JMS["JMSDestination"],
    "reply-to": JMS["JMSReplyTo"],
    "message-id": JMS["JMSMessageID"],
    "correlation-id": JMS["JMSCorrelationID"],
    "type": JMS["JMSType"],
    "priority": JMS["JMSPriority"],
    "timestamp": JMS["JMSTimestamp"],
    "expires": JMS["JMSExpiration"],
    "redelivered": JMS["JMSRedelivered"],
    "persistent": Identifier(("persistent",), IdentifierType.BOOLEAN, "false"),
}

_KNOWN = JMS | STOMP


def identifier_for(name: str) -> Identifier:
    """Return the identifier of this name; a name that is not in the tables is a user property."""
    return _KNOWN.get(name) or Identifier((name,))


def plain_header(name: str) -> str | None:
    """Return the header whose text is the value of `name`, unconverted; None if there is none."""
    known = identifier_for(name)
    return known.headers[0] if known == Identifier(known.headers[:1]) else None


def header_reader(name: str) -> Callable[[Mapping[str, str]], Value | None]:
    """Return a function from a message's headers to the value of `name`, None when unknown."""
    if header := plain_header(name):
        return lambda headers: headers.get(header)
    known = identifier_for(name)
    read, default, (first, *others) = known.form.read, known.default, known.headers

    def read_first(headers: Mapping[str, str]) -> Value | None:
        text = headers.get(first)
        for other in others:
            if text is None:
                text = headers.get(other)
        if text is None:
            text = default
        return None if text is None else read(text)

    return read_first
