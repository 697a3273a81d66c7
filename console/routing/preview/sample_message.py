"""A sample message for route previews and selector tests: entered by hand or picked from a queue. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from brokerapp.errors import InvalidDestination, RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.jms.form import JMS_HEADER, JmsForm, JmsKind
from brokerapp.model.jms.properties import PropertyType, property_header
from brokerapp.model.jms.typed_text import ALL_TYPE_NAMES, TYPE_NAMES, normal_text, parse_typed, type_named
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.openwire.shown_messages import jms_form, shown_lines
from brokerapp.selectors import SelectorView

#: Maximum characters of headers and of a body.
MAX_HEADERS, MAX_BODY = 64_000, 1_000_000
#: Headers that a producer does not set; the destination has a field of its own.
_NOT_SENT = frozenset({"destination", "original-destination", "subscription", "ack"})
#: Type of properties that no selector reads: maps and lists.
UNREAD_TYPE = TYPE_NAMES[PropertyType.OTHER]
_TYPED_NAME = re.compile(r"(.+?) *\(([a-z\[\]]+)\)")


@dataclass(frozen=True, slots=True)
class SampleMessage:
    """A message that is not sent."""

    destination: str = ""
    headers: str = ""  #: one per line, `name: value`; of JMS properties `name (int): value`
    body: str = ""
    error: str = ""  #: why it is invalid
    note: str = ""  #: what is hidden
    values: dict[str, str] = field(default_factory=dict)  #: the headers as read

    @staticmethod
    def read(form: Mapping[str, str]) -> SampleMessage:
        """Read a sample message from a form or an address."""
        destination = form.get("destination", "").strip()
        headers, body = form.get("headers", "")[:MAX_HEADERS], form.get("body", "")[:MAX_BODY]
        try:
            values = read_headers(headers)
        except ValueError as wrong:
            return SampleMessage(destination, headers, body, error=str(wrong))
        return SampleMessage(destination, headers, body, values=values)

    @staticmethod
    def of(message: BrowsedMessage, withheld: str = "") -> SampleMessage:
        """Copy a message of a queue, with the destination that it was first sent to."""
        values = {name: value for name, value in message.headers.items() if name not in _NOT_SENT}
        form = jms_form(values)
        shown = (each for each in shown_lines(values) if each.type != UNREAD_TYPE)
        text = "\n".join(map(str, sorted(shown, key=lambda each: not each.type)))  # JMS properties first
        sent_to = message.original_destination or message.destination
        has_text = not withheld and (form is None or form.kind is JmsKind.TEXT)
        body = message.body.decode("utf-8", errors="replace") if has_text else ""
        return SampleMessage(sent_to, text, body, note=withheld, values=values)

    @staticmethod
    def typed(destination: str, headers: Mapping[str, str], types: Mapping[str, str], body: str) -> SampleMessage:
        """Return a message with these names of JMS types of properties. Raises RequestRefused."""
        if unknown := sorted(types.keys() - headers.keys()):
            raise RequestRefused(f"types: {unknown[0]!r} is not one of the headers")
        rows = [(name, types[name], headers[name]) for name in types]
        others = {name: value for name, value in headers.items() if name not in types}
        return SampleMessage(destination, body=body, values=_with_properties(others, rows))

    @property
    def target(self) -> Destination:
        """Return its destination. Raises InvalidDestination."""
        found = Destination.parse(self.destination, DestinationKind.QUEUE)
        if found.is_pattern:
            raise InvalidDestination(self.destination, "a message is sent to one destination, not to a pattern")
        return found

    def selector_view(self, places: Mapping[str, str] | None = None) -> SelectorView:
        """Return the message as selectors see it, at one step of its route."""
        return SelectorView({**self.values, **(places or {})}, self.body.encode())


def read_headers(text: str) -> dict[str, str]:
    """Read headers from lines `name: value` or `name=value`. Raises ValueError, which names the line.

    Lines `name (type): value` are properties of a JMS message.
    """
    found: dict[str, str] = {}
    properties: list[tuple[str, str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        marks = [at for at in (line.find(":"), line.find("=")) if at > 0]
        if not marks:
            raise ValueError(f"Line {number} is not a header. Use name: value.")
        at = min(marks)
        name, value = line[:at].strip(), line[at + 1 :].strip()
        typed = _TYPED_NAME.fullmatch(name)
        if typed is None or typed[2] not in ALL_TYPE_NAMES:
            found.setdefault(name, value)
            continue
        try:
            parse_typed(f"property {typed[1]!r}", type_named(typed[2], ALL_TYPE_NAMES), value)
        except RequestRefused as error:
            raise ValueError(f"Line {number}: {error}.") from None
        properties.append((typed[1], typed[2], value))
    return _with_properties(found, properties) if properties else found


def _with_properties(headers: Mapping[str, str], rows: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return headers of a JMS message with these properties: name, name of the type, and value."""
    found, types = dict(headers), {}
    for name, type_name, value in rows:
        type = type_named(type_name, ALL_TYPE_NAMES)
        found.setdefault(property_header(name), normal_text(f"property {name!r}", type, value))
        if type is not None:
            types[name] = type
    return found | {JMS_HEADER: JmsForm(JmsKind.TEXT, types).header_value()}
