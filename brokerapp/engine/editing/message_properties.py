"""Separate the application's properties of a message from other headers, and validate those of operators. Pure.

The one home of what is whose: forms, the API and brokerctl ask here before they send, and the node asks before it does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from brokerapp.engine.policy.broker_headers import CLAIMED_ROUTE, NAMES, SIGNATURE
from brokerapp.engine.scheduling.delivery_schedule import HEADERS as SCHEDULE
from brokerapp.errors import RequestRefused
from brokerapp.model.jms.form import JMS_HEADER, TRANSACTION_HEADER
from brokerapp.model.jms.typed_text import PROPERTY_TYPE_NAMES, normal_text, type_named
from brokerapp.selectors.values import DECIMAL_NUMBER

#: Headers that STOMP or the broker give a meaning; all others are properties.
STANDARD = frozenset(
    {
        "message-id", "destination", "original-destination", "timestamp", "expires", "priority", "persistent",
        "redelivered", "correlation-id", "reply-to", "type", "content-type", "content-length", "receipt",
        "transaction", "subscription", "ack",
    }
)  # fmt: skip
#: Of those, the ones that are given, set and removed like a property.
EDITABLE = ("correlation-id", "reply-to", "type", "content-type")
#: What the broker writes about a message: not the application's own, so not in an edited copy.
BROKER_WRITTEN = NAMES | {
    SIGNATURE, CLAIMED_ROUTE, "scheduledJobId", "transformation-error", "sluice-path", JMS_HEADER, TRANSACTION_HEADER,
}  # fmt: skip
#: What only the broker says of who sent a message and how it was delivered: it stays, and nobody sets it.
BROKER_ONLY = frozenset({"JMSXUserID", "JMSXDeliveryCount", "JMSRedelivered"})
#: What an edit of many messages says of a property that keeps its type: a message of a STOMP client has none, and that
#: of a JMS client has it while the new value is one of it.
KEEP_TYPE = "keep type"
#: Types of an edit that say what a value must look like, and leave the type of the property.
_LOOKS: dict[str, re.Pattern[str]] = {
    KEEP_TYPE: re.compile(r"(?s).*"),
    "text": re.compile(r"(?s).*"),
    "number": re.compile(DECIMAL_NUMBER),
}
#: Types that an edit can give properties.
EDIT_TYPES = (KEEP_TYPE, *PROPERTY_TYPE_NAMES)
#: Characters of a name or value: what a STOMP client sends in one header line of usual length limits.
MAX_TEXT = 10_000


def is_own(name: str) -> bool:
    """Whether a header is the application's own, so that an edited copy has it too."""
    return name in EDITABLE or not (name in STANDARD or name in BROKER_WRITTEN)


def check_type(name: str, kind: str, value: str) -> str:
    """Return the text of a value, which is of this type. Raises RequestRefused."""
    if kind not in _LOOKS:
        return normal_text(f"property {name!r}", type_named(kind), value)
    if not _LOOKS[kind].fullmatch(value):
        raise RequestRefused(f"property {name!r}: {value[:40]!r} is not a {kind}")
    return value


def leaves_type(kind: str) -> bool:
    """Return whether a type of an edit leaves that of the property."""
    return kind in _LOOKS


def check_properties(given: Mapping[str, str], may_wait: bool = False) -> None:
    """Raise RequestRefused for properties that nobody gives. `may_wait`: those that ask for a delay are among them."""
    for name, value in given.items():
        if not (may_wait and name in SCHEDULE):
            check_name(name)
        check_text(f"the value of {name!r}", value)


def check_name(name: str) -> None:
    """Raise RequestRefused for what is no name of a property, or of a header that may be given."""
    check_text("a property's name", name)
    if not name:
        raise RequestRefused("the name of a property is empty")
    if name in EDITABLE:
        return
    if name in STANDARD or name in SCHEDULE:
        raise RequestRefused(f"{name!r} is not a property or an editable header ({', '.join(EDITABLE)})")
    if name in BROKER_WRITTEN:
        raise RequestRefused(f"{name!r} is set by the broker and cannot be changed")
    if name in BROKER_ONLY:
        raise RequestRefused(f"{name!r} is reserved for the broker")


def check_text(what: str, text: str) -> None:
    """Raise RequestRefused for what no header line can hold."""
    if "\0" in text:
        raise RequestRefused(f"{what} contains a NUL character")
    if len(text) > MAX_TEXT:
        raise RequestRefused(f"{what} has {len(text):,} characters, more than {MAX_TEXT:,}")
