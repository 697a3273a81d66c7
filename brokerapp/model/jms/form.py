"""Define what a message from a JMS client is beside its headers and body: its kind, and the types of its properties.

A message is stored as STOMP has it: properties are header lines with values as text. What that loses stands in one
more header line, `sluice-jms`, which STOMP clients are never shown: the kind of the message, and the type of each
property that is not a string. A JMS client gets the message back from both as it was sent. Messages without that line
come from STOMP clients: all their properties are strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from urllib.parse import quote, unquote

from brokerapp.model.jms.properties import PropertyType
from brokerapp.model.message import Message
from brokerapp.system.text_cache import cached_if_short

#: The header with the JMS form of a message.
JMS_HEADER = "sluice-jms"
#: The header with the transaction in which a JMS client sent a message.
TRANSACTION_HEADER = "sluice-jms-transaction"
_LINE_START = f"\n{JMS_HEADER}:".encode()
#: Forms kept parsed: applications send few.
CACHED_FORMS = 4096


class JmsKind(StrEnum):
    """Kind of a JMS message, which says what its body is."""

    PLAIN = "plain"  #: no body
    TEXT = "text"  #: UTF-8
    BYTES = "bytes"
    MAP = "map"  #: as OpenWire marshals a map of primitive values
    STREAM = "stream"  #: as OpenWire marshals primitive values one after the other
    OBJECT = "object"  #: a serialized Java object, which is never read
    BLOB = "blob"  #: as OpenWire marshals a reference to a file


@cached_if_short(CACHED_FORMS)
def type_word(name: str, type: str) -> str:
    """Return the part of a header value that says the type of a property. It holds nothing that is to be escaped."""
    return f" {quote(name, safe='')}={type}"


def form_text(kind: JmsKind, type_words: str, *, has_body: bool) -> str:
    """Return the value of the header, of a form with these words for the types of properties."""
    return f"{kind.value}{type_words}" if has_body else f"{kind.value}!{type_words}"


@dataclass(frozen=True, slots=True)
class JmsForm:
    """What a message is for JMS clients."""

    kind: JmsKind
    types: Mapping[str, PropertyType] = field(default_factory=dict)  #: of the properties that are not strings
    has_body: bool = True  #: False: the body is null, which is not the same as empty

    def header_value(self) -> str:
        """Return the value of the header."""
        return form_text(self.kind, "".join([type_word(*each) for each in self.types.items()]), has_body=self.has_body)

    def header_line(self) -> str:
        """Return the header line, escaped."""
        return f"{JMS_HEADER}:{self.header_value()}\n"

    @staticmethod
    def parse(value: str) -> JmsForm:
        """Return the form that a header value stands for; what cannot be read is text with strings."""
        return _parse(value)


@cached_if_short(CACHED_FORMS)
def _parse(value: str) -> JmsForm:
    kind, *types = value.split(" ")
    try:
        pairs = (each.rpartition("=") for each in types)
        found = {unquote(name): PropertyType(type) for name, _, type in pairs}
        return JmsForm(JmsKind(kind.removesuffix("!")), MappingProxyType(found), not kind.endswith("!"))
    except ValueError:
        return JmsForm(JmsKind.TEXT)


def has_jms_form(message: Message) -> bool:
    """Return whether a message came from a JMS client."""
    return message.head.find(_LINE_START) >= 0  # `in` takes longer


def jms_form_of(message: Message) -> JmsForm | None:
    """Return the JMS form of a message; None where it came from no JMS client."""
    if not has_jms_form(message):
        return None
    value = message.header(JMS_HEADER)
    return JmsForm.parse(value) if value is not None else None
