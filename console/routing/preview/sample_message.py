"""A message to try routes and selectors on: as it was typed, or picked from a queue. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import BrowsedMessage
from brokerapp.selectors import SelectorView

#: Characters of headers and of a body that are read.
MAX_HEADERS, MAX_BODY = 64_000, 1_000_000
#: Headers a sender does not say: where it goes is a field of its own.
_NOT_SENT = frozenset({"destination", "original-destination", "subscription", "ack"})


@dataclass(frozen=True, slots=True)
class SampleMessage:
    """A message that nobody sends."""

    destination: str = ""
    headers: str = ""  #: one in a line, `name: value`
    body: str = ""
    error: str = ""  #: why it cannot be read
    note: str = ""  #: what is missing in it
    values: dict[str, str] = field(default_factory=dict)  #: the headers, read

    @staticmethod
    def read(form: Mapping[str, str]) -> SampleMessage:
        """What a form, or an address, says."""
        destination = form.get("destination", "").strip()
        headers, body = form.get("headers", "")[:MAX_HEADERS], form.get("body", "")[:MAX_BODY]
        try:
            values = read_headers(headers)
        except ValueError as wrong:
            return SampleMessage(destination, headers, body, error=str(wrong))
        return SampleMessage(destination, headers, body, values=values)

    @staticmethod
    def of(message: BrowsedMessage, withheld: str = "") -> SampleMessage:
        """A message of a queue, as it was sent: to where it was sent first."""
        values = {name: value for name, value in message.headers.items() if name not in _NOT_SENT}
        text = "\n".join(f"{name}: {value}" for name, value in values.items())
        sent_to = message.original_destination or message.destination
        body = "" if withheld else message.body.decode("utf-8", errors="replace")
        return SampleMessage(sent_to, text, body, note=withheld, values=values)

    @property
    def target(self) -> Destination:
        """Where it is sent to. Raises InvalidDestination."""
        found = Destination.parse(self.destination, DestinationKind.QUEUE)
        if found.is_pattern:
            raise InvalidDestination(self.destination, "a message goes to one destination, not to a pattern")
        return found

    def selector_view(self, places: Mapping[str, str] | None = None) -> SelectorView:
        """As a selector sees it, at a place of its way."""
        return SelectorView({**self.values, **(places or {})}, self.body.encode())


def read_headers(text: str) -> dict[str, str]:
    """Headers from lines `name: value` or `name=value`; raises ValueError, which names the line."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        marks = [at for at in (line.find(":"), line.find("=")) if at > 0]
        if not marks:
            raise ValueError(f"Line {number} is no header: write name: value")
        at = min(marks)
        found.setdefault(line[:at].strip(), line[at + 1 :].strip())
    return found
