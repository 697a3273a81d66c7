"""Apply an edit to a message that is sent again. Pure.

The one home of what an edit is: the form for one message begins with the copy that changes nothing, and jobs and
brokerctl apply one edit to many messages, at the node that has them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.engine.editing.jms_edit import with_jms_form
from brokerapp.engine.editing.message_properties import EDITABLE, check_name, check_text, check_type, is_own
from brokerapp.engine.editing.operator_message import OperatorMessage, batch_size, estimate_bytes
from brokerapp.errors import RequestRefused
from brokerapp.model.message import DEFAULT_PRIORITY

#: Names that one edit sets and removes: as many as a form can show.
MAX_NAMES = 64
#: Bytes of a body that is given: it is kept with the job, and sent to the node with each step.
MAX_BODY = 1024 * 1024
#: The longest time to live that can be given, seconds.
MAX_LIFE = 10**9
MAX_PRIORITY = 9


@dataclass(frozen=True, slots=True)
class MessageEdit:
    """Changes of a message; everything else is kept. Values of `set` are text, as in STOMP."""

    set: Mapping[str, str] = field(default_factory=dict)  #: properties, and headers of EDITABLE
    remove: tuple[str, ...] = ()  #: the same, to be there no more
    persistent: bool | None = None
    priority: int | None = None
    lives: int | None = None  #: seconds from the moment in which it is sent; 0: for ever
    body: bytes | None = None  #: None: the same bytes
    is_bytes: bool = False  #: of a `body`: consumers are told its length, and take it for bytes
    keeps: bool = False  #: the original stays where it is
    types: Mapping[str, str] = field(default_factory=dict)  #: of properties of `set`, in messages of JMS clients

    @property
    def changes(self) -> bool:
        """Whether the message that comes of it differs at all."""
        given = (self.persistent, self.priority, self.lives, self.body)
        return bool(self.set or self.remove) or any(each is not None for each in given)

    def batch_size(self, most: int) -> int:
        """Return how many messages are edited at once, at most `most`, by the size of what is set in each."""
        return batch_size(most, estimate_bytes(self.set, self.body or b""))

    def check(self) -> None:
        """Raise RequestRefused that names what cannot be changed so, and the rule."""
        if twice := sorted(self.set.keys() & set(self.remove)):
            raise RequestRefused(f"{twice[0]!r} cannot be set and removed at once")
        for name, value in self.set.items():
            check_name(name)
            check_text(f"the value of {name!r}", value)
        self._check_types()
        for name in self.remove:
            check_name(name)
        if (count := len(self.set) + len(self.remove)) > MAX_NAMES:
            raise RequestRefused(f"{count} properties and headers exceed the limit of {MAX_NAMES} per edit")
        if self.priority is not None and not 0 <= self.priority <= MAX_PRIORITY:
            raise RequestRefused(f"priority must be a whole number from 0 to {MAX_PRIORITY}, not {self.priority}")
        if self.lives is not None and not 0 <= self.lives <= MAX_LIFE:
            raise RequestRefused(
                f"time to live must be a number of seconds from 0 (never expires) to {MAX_LIFE:,}, not {self.lives}"
            )
        if self.body is not None and len(self.body) > MAX_BODY:
            raise RequestRefused(f"body: {len(self.body):,} bytes exceed the limit of {MAX_BODY:,}")

    def _check_types(self) -> None:
        for name, type in self.types.items():
            if name not in self.set:
                raise RequestRefused(f"types: {name!r} is not one of the properties that are set")
            if name in EDITABLE:
                raise RequestRefused(f"types: {name!r} is a header, which has no type")
            check_type(name, type, self.set[name])

    def applied(self, headers: Mapping[str, str], body: bytes, to: str, now_ms: int) -> OperatorMessage:
        """The message that comes of one with these headers and this body, sent `to` there now."""
        kept = {name: value for name, value in headers.items() if is_own(name) and name not in self.remove}
        expires = _number(headers.get("expires"), 0)
        if self.lives is not None:
            expires = now_ms + self.lives * 1000 if self.lives else 0
        made = OperatorMessage(
            to,
            {**kept, **self.set},
            body if self.body is None else self.body,
            headers.get("persistent") == "true" if self.persistent is None else self.persistent,
            _number(headers.get("priority"), DEFAULT_PRIORITY) if self.priority is None else self.priority,
            expires,
            "content-length" in headers if self.body is None else self.is_bytes,
        )
        return with_jms_form(made, headers, body, self.types)

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        body = None if self.body is None else base64.b64encode(self.body).decode()
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"set": dict(self.set), "remove": list(self.remove), "body": body, "types": dict(self.types)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> MessageEdit:
        """Build the object from the result of to_json."""
        body = None if data["body"] is None else base64.b64decode(data["body"])
        return MessageEdit(**{**data, "remove": tuple(data["remove"]), "body": body})

    def told(self, values: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
        """Describe each change by name and new value. `values`: those of `set`, possibly masked.

        Of a body only the size is given, as not every reader may see its content.
        """
        shown = self.set if values is None else values
        found = [(name, shown.get(name, "") + self._told_type(name)) for name in self.set]
        found += [(name, "removed") for name in self.remove]
        if self.persistent is not None:
            found.append(("persistent", str(self.persistent).lower()))
        if self.priority is not None:
            found.append(("priority", str(self.priority)))
        if self.lives is not None:
            found.append(("lives", f"{self.lives} s" if self.lives else "never expires"))
        if self.body is not None:
            found.append(("body", f"replaced by {len(self.body):,} bytes"))
        return found + ([("originals", "stay")] if self.keeps else [])

    def _told_type(self, name: str) -> str:
        return f" ({self.types[name]})" if name in self.types else ""


def body_of(text: str, encoding: str) -> bytes:
    """A body as somebody wrote it: as text, in base64 or in hexadecimal digits. Raises RequestRefused."""
    try:
        match encoding:
            case "base64":
                return base64.b64decode("".join(text.split()), validate=True)
            case "hex":
                return bytes.fromhex(text)
            case _:
                return text.encode()
    except binascii.Error as error:
        raise RequestRefused(f"body: invalid base64: {error}") from None
    except ValueError:
        raise RequestRefused("body: invalid hex: use pairs of hexadecimal digits, such as 00 ff") from None


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 20 else otherwise
