"""A sample message for route previews and selector tests: entered by hand or picked from a queue. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.selectors import SelectorView

#: Maximum characters of headers and of a body.
MAX_HEADERS, MAX_BODY = 64_000, 1_000_000
#: Headers that a producer does not set; the destination has a field of its own.
_NOT_SENT = frozenset({"destination", "original-destination", "subscription", "ack"})


@dataclass(frozen=True, slots=True)
class SampleMessage:
    """A message that is not sent."""

    destination: str = ""
    headers: str = ""  #: one per line, `name: value`
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
        text = "\n".join(f"{name}: {value}" for name, value in values.items())
        sent_to = message.original_destination or message.destination
        body = "" if withheld else message.body.decode("utf-8", errors="replace")
        return SampleMessage(sent_to, text, body, note=withheld, values=values)

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
    """Read headers from lines `name: value` or `name=value`. Raises ValueError, which names the line."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        marks = [at for at in (line.find(":"), line.find("=")) if at > 0]
        if not marks:
            raise ValueError(f"Line {number} is not a header. Use name: value.")
        at = min(marks)
        found.setdefault(line[:at].strip(), line[at + 1 :].strip())
    return found
