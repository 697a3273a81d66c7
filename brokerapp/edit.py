"""An edit: what is changed of a message when it is sent again, and the message that comes of it. Pure.

The one home of what an edit is: the form for one message begins with the copy that changes nothing, and jobs and
brokerctl apply one edit to many messages, at the node that has them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.destination import Destination
from brokerapp.engine.dead_letters import CAUSE
from brokerapp.engine.schedule import HEADERS as SCHEDULE
from brokerapp.errors import RequestRefused
from brokerapp.handwritten import TestSend
from brokerapp.message import DEFAULT_PRIORITY
from brokerapp.selectors.values import DECIMAL_NUMBER

#: Headers that STOMP or the broker give a meaning; all others are properties.
STANDARD = frozenset(
    {
        "message-id", "destination", "original-destination", "timestamp", "expires", "priority", "persistent",
        "redelivered", "correlation-id", "reply-to", "type", "content-type", "content-length", "receipt",
        "transaction", "subscription", "ack",
    }
)  # fmt: skip
#: Of those, the ones that are set and removed like a property.
EDITABLE = ("correlation-id", "reply-to", "type", "content-type")
#: What the broker writes about a message: not the application's own, so not in an edited copy.
BROKERS_OWN = frozenset(
    {
        CAUSE, "dlqDeliveryCount", "dlqConsumer", "dlqTime", "dlqRoute", "originalExpiration", "originalDeliveryMode",
        "resubmitCount", "resubmittedBy", "resubmittedTime", "resubmittedFrom", "sentBy", "scheduledJobId",
        "transformation-error", "sluice-path",
    }
)  # fmt: skip
#: What only the broker says of who sent a message and how it was delivered: it stays, and nobody sets it.
NOT_SET = frozenset({"JMSXUserID", "JMSXDeliveryCount", "JMSRedelivered"})
#: Types of properties, and what a value of each must look like. STOMP knows text only: a type is a promise about it.
TYPES: dict[str, re.Pattern[str]] = {
    "text": re.compile(r"(?s).*"),
    "number": re.compile(DECIMAL_NUMBER),
    "boolean": re.compile("true|false"),
}
#: Names that one edit sets and removes: as many as a form can show.
MAX_NAMES = 64
#: Characters of a name or value: what a STOMP client sends in one header line of usual length limits.
MAX_TEXT = 10_000
#: Bytes of a body that is given: it is kept with the job, and sent to the node with each step.
MAX_BODY = 1024 * 1024
#: The longest time to live that can be given, seconds.
MAX_LIFE = 10**9
MAX_PRIORITY = 9


@dataclass(frozen=True, slots=True)
class Edit:
    """What is changed; all else of a message stays as it is. A value of `set` is text, as STOMP has it."""

    set: Mapping[str, str] = field(default_factory=dict)  #: properties, and headers of EDITABLE
    remove: tuple[str, ...] = ()  #: the same, to be there no more
    persistent: bool | None = None
    priority: int | None = None
    lives: int | None = None  #: seconds from the moment in which it is sent; 0: for ever
    body: bytes | None = None  #: None: the same bytes
    is_bytes: bool = False  #: of a `body`: consumers are told its length, and take it for bytes
    keeps: bool = False  #: the original stays where it is

    @property
    def changes(self) -> bool:
        """Whether the message that comes of it differs at all."""
        given = (self.persistent, self.priority, self.lives, self.body)
        return bool(self.set or self.remove) or any(each is not None for each in given)

    def check(self) -> None:
        """Raise RequestRefused that names what cannot be changed so, and the rule."""
        if twice := sorted(self.set.keys() & set(self.remove)):
            raise RequestRefused(f"{twice[0]!r} cannot be set and removed at once")
        for name, value in self.set.items():
            check_name(name)
            check_text(f"the value of {name!r}", value)
        for name in self.remove:
            check_name(name)
        if (count := len(self.set) + len(self.remove)) > MAX_NAMES:
            raise RequestRefused(f"{count} properties and headers: {MAX_NAMES} can be changed at once")
        if self.priority is not None and not 0 <= self.priority <= MAX_PRIORITY:
            raise RequestRefused(f"priority: {self.priority} is none of 0 to {MAX_PRIORITY}")
        if self.lives is not None and not 0 <= self.lives <= MAX_LIFE:
            raise RequestRefused(f"lives: {self.lives} is no number of seconds from 0 (for ever) to {MAX_LIFE:,}")
        if self.body is not None and len(self.body) > MAX_BODY:
            raise RequestRefused(f"body: {len(self.body):,} bytes are more than the {MAX_BODY:,} that can be given")

    def applied(self, headers: Mapping[str, str], body: bytes, to: str, now_ms: int) -> TestSend:
        """The message that comes of one with these headers and this body, sent `to` there now."""
        kept = {name: value for name, value in headers.items() if is_own(name) and name not in self.remove}
        expires = _number(headers.get("expires"), 0)
        if self.lives is not None:
            expires = now_ms + self.lives * 1000 if self.lives else 0
        return TestSend(
            to,
            {**kept, **self.set},
            body if self.body is None else self.body,
            headers.get("persistent") == "true" if self.persistent is None else self.persistent,
            _number(headers.get("priority"), DEFAULT_PRIORITY) if self.priority is None else self.priority,
            expires,
            "content-length" in headers if self.body is None else self.is_bytes,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        body = None if self.body is None else base64.b64encode(self.body).decode()
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"set": dict(self.set), "remove": list(self.remove), "body": body}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Edit:
        """The inverse of to_json."""
        body = None if data["body"] is None else base64.b64decode(data["body"])
        return Edit(**{**data, "remove": tuple(data["remove"]), "body": body})

    def told(self, values: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
        """What is asked, change by change: its name and what becomes of it. `values`: those of `set`, perhaps covered.

        Of a body only its size is told: it may hold what not everybody may read.
        """
        shown = self.set if values is None else values
        found = [(name, shown.get(name, "")) for name in self.set]
        found += [(name, "removed") for name in self.remove]
        if self.persistent is not None:
            found.append(("persistent", str(self.persistent).lower()))
        if self.priority is not None:
            found.append(("priority", str(self.priority)))
        if self.lives is not None:
            found.append(("lives", f"{self.lives} s" if self.lives else "for ever"))
        if self.body is not None:
            found.append(("body", f"{len(self.body):,} bytes in place of the old"))
        return found + ([("originals", "stay")] if self.keeps else [])


def is_own(name: str) -> bool:
    """Whether a header is the application's own, so that an edited copy has it too."""
    return name in EDITABLE or not (name in STANDARD or name in BROKERS_OWN)


def home_of(headers: Mapping[str, str], original: str | None, here: Destination) -> Destination:
    """Where an edited message goes when nobody says where: a dead letter to where it failed, others to where they are.

    Raises InvalidDestination.
    """
    return Destination.parse(original) if original and CAUSE in headers else here


def typed(name: str, kind: str, value: str) -> str:
    """The value, which is of this type. Raises RequestRefused."""
    if not TYPES.get(kind, TYPES["text"]).fullmatch(value):
        raise RequestRefused(f"property {name!r}: {value[:40]!r} is no {kind}")
    return value


def type_of(value: str) -> str:
    """The narrowest type a value is of."""
    return next(kind for kind in ("number", "boolean", "text") if TYPES[kind].fullmatch(value))


def body_of(text: str, encoding: str) -> bytes:
    """A body as somebody wrote it: as text, or in base64. Raises RequestRefused."""
    try:
        return base64.b64decode(text, validate=True) if encoding == "base64" else text.encode()
    except (binascii.Error, ValueError) as error:
        raise RequestRefused(f"body: it is no base64: {error}") from None


def check_name(name: str) -> None:
    """Raise RequestRefused for what is no name of a property, or of a header that may be edited."""
    check_text("a property's name", name)
    if not name:
        raise RequestRefused("a property has no name")
    if name in EDITABLE:
        return
    if name in STANDARD or name in SCHEDULE:
        raise RequestRefused(f"{name!r} is no property, and none of the headers that are edited: {_all(EDITABLE)}")
    if name in BROKERS_OWN:
        raise RequestRefused(f"{name!r} is written by the broker, and an edited message begins without it")
    if name in NOT_SET:
        raise RequestRefused(f"{name!r} is for the broker to say")


def check_text(what: str, text: str) -> None:
    """Raise RequestRefused for what no header line can hold."""
    if "\0" in text:
        raise RequestRefused(f"{what} holds a NUL, which ends a frame")
    if len(text) > MAX_TEXT:
        raise RequestRefused(f"{what} has {len(text):,} characters, more than {MAX_TEXT:,}")


def _all(names: Iterable[str]) -> str:
    return ", ".join(names)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 20 else otherwise
