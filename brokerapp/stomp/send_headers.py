"""Interprets the headers of SEND: properties of the message, and instructions to the broker.

ActiveMQ's JMS names set the STOMP headers of the same meaning.
"""

from __future__ import annotations

from brokerapp.engine.policy.broker_headers import ORIGIN, SIGNATURE, with_broker_headers
from brokerapp.errors import RequestRefused
from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER
from brokerapp.model.message import DEFAULT_PRIORITY, escape

#: The largest number in a header of SEND, and the characters it may be written with: Java's long, as in ActiveMQ.
LARGEST = 2**63 - 1
MAX_CHARACTERS = 40
#: SEND headers that are not properties of the message: instructions, or written by the broker itself.
NOT_PROPERTIES = frozenset(
    [
        "destination",
        "receipt",
        "transaction",
        "content-length",
        "persistent",
        "priority",
        "expires",
        "timestamp",
        "message-id",
        "sluice-path",
        SIGNATURE,
        "redelivered",
        "subscription",
        "ack",
        ORIGIN,
        JMS_HEADER,
        TRANSACTION_HEADER,
        "transformation-error",
        "JMSRedelivered",
        "JMSXDeliveryCount",
        "JMSXUserID",
    ]
)
#: JMS names that set the STOMP header of the same meaning.
JMS_SETTERS = {
    "JMSCorrelationID": "correlation-id",
    "JMSDeliveryMode": "persistent",
    "JMSExpiration": "expires",
    "JMSPriority": "priority",
    "JMSReplyTo": "reply-to",
    "JMSTimestamp": "timestamp",
    "JMSType": "type",
}
#: What STOMP writes for the schemes of ActiveMQ's own names.
_PREFIXES = {
    "queue": "/queue/",
    "topic": "/topic/",
    "temp-queue": "/remote-temp-queue/",
    "temp-topic": "/remote-temp-topic/",
}


def apply_jms_names(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers with STOMP's names in place of JMS names."""
    if JMS_SETTERS.keys().isdisjoint(headers):
        return headers
    result = {JMS_SETTERS.get(name, name): value for name, value in headers.items()}
    if "JMSDeliveryMode" in headers:
        result["persistent"] = str(headers["JMSDeliveryMode"].upper() in ("2", "PERSISTENT")).lower()
    if "://" in headers.get("JMSReplyTo", ""):
        result["reply-to"] = _in_stomp_form(headers["JMSReplyTo"])
    return result


def _in_stomp_form(text: str) -> str:
    """Return a destination as STOMP writes it; other text stays as it is."""
    scheme, _, name = text.partition("://")
    return _PREFIXES[scheme] + name if scheme in _PREFIXES else text


def properties_of(headers: dict[str, str]) -> str:
    """Return the header lines of the message that come from its producer."""
    lines = ""
    for name, value in headers.items():
        if name not in NOT_PROPERTIES:
            lines += f"{escape(name)}:{escape(value)}\n"
    return lines


def origin_of(headers: dict[str, str]) -> str:
    """Return the header lines that say where a bridged message was sent to at its broker."""
    if ORIGIN not in headers:
        return ""
    came = {name: value for name, value in headers.items() if name not in NOT_PROPERTIES}
    said = with_broker_headers(came, {ORIGIN: headers[ORIGIN]})
    return "".join(f"{name}:{escape(value)}\n" for name, value in said.items() if value is not None)


def jms_lines_of(headers: dict[str, str]) -> str:
    """Return the header lines that say what a bridged message is for JMS clients."""
    found = ((name, headers[name]) for name in (JMS_HEADER, TRANSACTION_HEADER) if name in headers)
    return "".join(f"{name}:{escape(value)}\n" for name, value in found)


def priority_of(headers: dict[str, str]) -> int:
    """Return the priority, from 0 to 9. Raises RequestRefused."""
    return min(9, max(0, whole_number("priority", headers["priority"]))) if "priority" in headers else DEFAULT_PRIORITY


def has_content_length(headers: dict[str, str]) -> bool:
    """Return whether consumers get a content-length: the producer sent one, or says that the body is bytes.

    Only ActiveMQ's Java clients see more of a difference between text and bytes.
    """
    kind = headers["amq-msg-type"].lower() if "amq-msg-type" in headers else None
    if kind not in (None, "text", "bytes"):
        raise RequestRefused(f"amq-msg-type:{kind} is neither text nor bytes")
    return kind == "bytes" or "content-length" in headers


def whole_number(name: str, text: str) -> int:
    """Return the whole number that is the value of a header. Raises RequestRefused."""
    try:
        number = int(text[: MAX_CHARACTERS + 1])
    except ValueError:
        raise RequestRefused(f"{name}:{text[:MAX_CHARACTERS]} is not a whole number") from None
    if len(text) > MAX_CHARACTERS or not -LARGEST - 1 <= number <= LARGEST:
        raise RequestRefused(f"{name}:{text[:MAX_CHARACTERS]} is beyond {LARGEST}")
    return number
