"""A message as an operator writes it: plain values, so that the console has it without the broker that sends it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp.engine.policy.broker_headers import with_broker_headers
from brokerapp.errors import TooLarge
from brokerapp.model.commands import SendCommand
from brokerapp.model.jms.form import JMS_HEADER, JmsForm
from brokerapp.model.message import DEFAULT_PRIORITY, escape

#: Bytes that operators have the store take in at once: it stands still for all while it does.
BYTES_AT_ONCE = 8 * 1024 * 1024
#: Bytes of the body of a message that a page or a program gives. Larger ones are sent by clients, whose connections
#: read them piece by piece.
MAX_BODY = BYTES_AT_ONCE


@dataclass(frozen=True, slots=True)
class OperatorMessage:
    """A message as an operator gives it."""

    __test__ = False  # no test, whatever pytest thinks of its name

    destination: str  #: native or STOMP form, lists and fully qualified names included
    properties: Mapping[str, str] = field(default_factory=dict)  #: those with AMQ_SCHEDULED_* names delay it
    body: bytes = b""
    persistent: bool = True
    priority: int = DEFAULT_PRIORITY
    expires: int = 0  #: milliseconds since the epoch; 0: never
    is_bytes: bool = False  #: consumers are told the body's length, and take it for bytes
    jms_form: str = ""  #: what it is for JMS clients (see JmsForm.header_value); "": what STOMP's messages are

    @property
    def headers(self) -> dict[str, str]:
        """Return the properties, and the line with the JMS form."""
        return {**self.properties, **({JMS_HEADER: self.jms_form} if self.jms_form else {})}

    def to_json(self) -> dict[str, Any]:
        """Return the object as values that JSON can hold."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {"properties": dict(self.properties), "body": base64.b64encode(self.body).decode()}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> OperatorMessage:
        """Build the object from the result of to_json."""
        return OperatorMessage(**{**data, "body": base64.b64decode(data["body"])})

    def send(self, more: Mapping[str, str]) -> SendCommand:
        """Build the SEND of this message, with more properties that the broker writes."""
        headers = {
            name: value
            for name, value in {**self.properties, **with_broker_headers({}, more)}.items()
            if value is not None
        }
        lines = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in headers.items())
        if self.jms_form:
            lines += JmsForm.parse(self.jms_form).header_line()
        return SendCommand(
            self.destination, lines, self.body, self.persistent, self.priority, self.expires, None, None, None,
            self.is_bytes,
        )  # fmt: skip


def check_size(size: int) -> None:
    """Raise TooLarge for a body of as many bytes that cannot be sent from a page or by a program."""
    if size > MAX_BODY:
        raise TooLarge(f"The body has {size:,} bytes. At most {MAX_BODY:,} bytes can be sent from here.")


def estimate_bytes(properties: Mapping[str, str], body: bytes) -> int:
    """About how many bytes this is in each message."""
    return len(body) + sum(len(name) + len(value) for name, value in properties.items())


def batch_size(most: int, weight: int) -> int:
    """Return how many messages of this size are sent at once, at most `most`, as other clients wait meanwhile."""
    return max(1, min(most, BYTES_AT_ONCE // max(1, weight)))
