"""Define a message in the form in which it is stored and delivered.

A message is kept as the text of its STOMP headers (`head`, one escaped `name:value` line each) and its body, so that
storing and delivering need no conversion: a MESSAGE frame is a few lines about the delivery, `head`, an empty line,
`body`. What the broker itself must know of a message without reading the head stands in fields.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from brokerapp.model.broker_path import format_path, parse_path
from brokerapp.model.destination import Destination

#: JMS default priority.
DEFAULT_PRIORITY = 4
#: How the line begins that names a message's group.
GROUP_LINE = b"JMSXGroupID:"

#: An empty path, where something follows it.
_NO_PATH = ","
_EMPTY = _NO_PATH.encode()
#: What a checksum begins with, and its length with that. No field of a version without checksums has such a character.
CHECKSUM, CHECKSUM_LENGTH = b"#", 9

#: What escapes stand for in STOMP 1.2.
ESCAPES = {"\\n": "\n", "\\c": ":", "\\\\": "\\", "\\r": "\r"}


def escape(text: str) -> str:
    """A header name or value as STOMP 1.2 writes it."""
    if "\\" in text or ":" in text or "\n" in text or "\r" in text:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace(":", "\\c").replace("\r", "\\r")
    return text


def unescape(text: str, escapes: Mapping[str, str] = ESCAPES) -> str:
    """The inverse of escape; what is none of the escapes stays as it is."""
    if "\\" not in text:
        return text
    if escapes is ESCAPES and "\\\\" not in text:  # no pair begins within another one
        return text.replace("\\c", ":").replace("\\n", "\n").replace("\\r", "\r")
    parts: list[str] = []
    position = 0
    while (found := text.find("\\", position)) >= 0:
        pair = text[found : found + 2]
        parts += (text[position:found], escapes.get(pair, pair))
        position = found + 2
    return "".join(parts) + text[position:]


@dataclass(slots=True)
class Message:
    """One message. Never changed after it was made; copies in several logs share it."""

    id: str  #: message-id: the node's prefix and a number, e.g. `ID:sluice-5f3a:17`
    head: bytes  #: header lines as sent to consumers, message-id included, destination not; each ends in a newline
    body: bytes
    persistent: bool = False
    priority: int = DEFAULT_PRIORITY
    expires: int = 0  #: milliseconds since the epoch; 0: never
    born_us: int = 0  #: when it reached the first broker, microseconds since the epoch
    has_group: bool = False  #: it may have a JMSXGroupID
    deliveries: int = 0  #: to consumers, before it came to the queue it is in; those of policies that let it return
    path: tuple[str, ...] = ()  #: brokers of a network that it crossed
    held: tuple[str, ...] = ()  #: full names of queues bound to its topic with a copy, here or before
    is_damaged: bool = field(default=False, compare=False)  #: storage changed it since it was written
    _headers: dict[str, str] | None = field(default=None, repr=False, compare=False)
    #: The message as another protocol has it, made once for all consumers.
    converted: Any = field(default=None, init=False, repr=False, compare=False)
    facts: tuple[str, int, int] = field(init=False, repr=False, compare=False)  #: id, size and born_us, for the trace

    def __post_init__(self) -> None:
        self.facts = (self.id, len(self.body), self.born_us)

    @property
    def size(self) -> int:
        """Return the size of the body in bytes."""
        return self.facts[1]

    @property
    def headers(self) -> dict[str, str]:
        """The head as a mapping, values unescaped. Do not change it."""
        if self._headers is None:
            text = self.head.decode()
            lines = [line.partition(":") for line in text.split("\n") if line]
            if text.find("\\", text.find("\n") + 1) >= 0:
                lines = [(unescape(name), "", unescape(value)) for name, _, value in lines]
            elif lines:  # most have escapes in their first line only, the message-id
                name, _, value = lines[0]
                lines[0] = unescape(name), "", unescape(value)
            self._headers = {name: value for name, _, value in lines}
        return self._headers

    def header(self, name: str) -> str | None:
        """Return the value of a header whose name has no escapes, without reading the others; None without it."""
        if self._headers is not None:
            return self._headers.get(name)
        begin = self.head.find(f"\n{name}:".encode())  # the first line is the message-id
        if begin < 0:
            return self.headers.get(name) if self.head.startswith(f"{name}:".encode()) else None
        begin += len(name) + 2
        return unescape(self.head[begin : self.head.index(b"\n", begin)].decode())

    def stored(self) -> bytes:
        """The message as one value of the store: a line of broker's fields, the head, an empty line, the body.

        The last of the fields is a checksum (CRC-32) of all the rest.
        """
        return encode_messages((self,))[0]

    def with_headers(self, changed: Mapping[str, str | None], **fields: Any) -> Message:
        """The message with these headers in place of, or beside, those it has (None: without), and these fields."""
        merged = {**self.headers, **changed}
        headers = {name: value for name, value in merged.items() if value is not None}
        head = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in headers.items()).encode()
        return replace(self, head=head, _headers=headers, **fields)

    @staticmethod
    def load(stored: bytes) -> Message:
        """Load a message from its stored form."""
        return decode_messages((stored,))[0]


def is_non_persistent(stored: bytes) -> bool:
    """Whether a message in its stored form is not persistent."""
    return stored.startswith(b"0")


def stored_fields(
    persistent: bool,
    priority: int,
    expires: int,
    born_us: int,
    deliveries: int = 0,
    path: tuple[str, ...] = (),
    held: tuple[str, ...] = (),
) -> bytes:
    """Return the broker's fields of a stored message, but for the checksum of what follows."""
    crossed = format_path(path) if path else _NO_PATH
    copies = format_path(held) if held else _NO_PATH
    return f"{persistent:d} {priority} {expires} {born_us} {deliveries} {crossed} {copies} ".encode()


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """The stored form of messages that differ in head and body only; of one, of course, too."""
    first = messages[0]
    fields = stored_fields(
        first.persistent, first.priority, first.expires, first.born_us, first.deliveries, first.path, first.held
    )
    begun, crc32 = zlib.crc32(fields), zlib.crc32
    return [
        b"%b#%08x\n%b\n%b"
        % (fields, crc32(message.body, crc32(message.head + b"\n", begun)), message.head, message.body)
        for message in messages
    ]


def decode_messages(stored: Sequence[bytes]) -> list[Message]:
    """The inverse of stored_alike()."""
    start = stored[0].index(b"\n") + 1
    persistent, priority, expires, born_us, *rest = stored[0][:start].split()
    fields = (persistent == b"1", int(priority), int(expires), int(born_us))
    deliveries = int(rest[0]) if rest else 0
    path = parse_path(rest[1].decode()) if len(rest) > 1 and rest[1] != _EMPTY else ()
    held = parse_path(rest[2].decode()) if len(rest) > 2 and rest[2] != _EMPTY else ()
    messages = []
    for each in stored:
        end = each.index(b"\n\n", start) + 1
        head = each[start:end]
        grouped = head.find(GROUP_LINE) >= 0  # `in` asks first whether it is a number, which takes longer
        messages.append(Message(_id_of(head), head, each[end + 1 :], *fields, grouped, deliveries, path, held))
    return messages


def _id_of(head: bytes) -> str:
    """The message-id: by convention the first line of a head."""
    return unescape(head[len(b"message-id:") : head.index(b"\n")].decode())


@dataclass(frozen=True, slots=True)
class RoutedCopy:
    """A message on its way to one physical destination."""

    destination: Destination  #: where this copy goes
    original: Destination | None = None  #: what its original-destination header names
    shown: Destination | None = None  #: what its destination header names, when not `destination`


class BodySizes(NamedTuple):
    """Bodies of messages that go the same way, looked at once for all places they come to."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of sizes
    bytes: int
    least: int
    greatest: int

    @classmethod
    def of(cls, messages: Sequence[Message]) -> BodySizes:
        """Compute the sizes of the bodies of one or more messages."""
        sizes = [message.size for message in messages]
        return cls(len(sizes), sum(sizes), min(sizes), max(sizes))
