"""Batches of frames: consecutive SENDs, with the transactions around them, and consecutive ACKs; reads those other than
SENDs (see send_reader.py). Pure; the fast path of frames.py.

Whatever is less plain is left to frames.py, so nothing needs to be refused here. Versions 1.1 and 1.2 read alike what
is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from brokerapp.model.message import unescape
from brokerapp.stomp.header_parser import read_head
from brokerapp.stomp.send_heads import MAX_SEND_HEAD_BYTES, Values

#: What may stand between frames.
BETWEEN_FRAMES = re.compile(rb"[\0\t\r\n ]*")
#: ACKs of STOMP 1.2 that ask for no receipt and belong to no transaction; these and NACKs; and any ACK or NACK.
_PLAIN_ACKS = re.compile(rb"(?:[\r\n]*ACK\nid:[0-9A-Za-z-]+\n\n\0)+")
_PLAIN_ACKS_AND_NACKS = re.compile(rb"(?:[\r\n]*N?ACK\nid:[0-9A-Za-z-]+\n\n\0)+")
_PLAIN = _PLAIN_ACKS, _PLAIN_ACKS_AND_NACKS
_ACK_ID = re.compile(r"id:([0-9A-Za-z-]+)")
_ACK_OR_NACK = re.compile(rb"(?:^|[\0\r\n])(N?)ACK\n")
_ACK = re.compile(rb"[\r\n]*(N?)ACK\n((?:(?:id|message-id|subscription|receipt|transaction):[ -~]*\n)+)\n\0")
#: The beginning or end of a transaction.
_TRANSACTION = re.compile(rb"[\r\n]*(BEGIN|COMMIT|ABORT)\n((?:(?:transaction|receipt):[ -~]*\n)+)\n\0")
#: Commands whose frames are read as one batch: what a client sends, and the transactions around it.
PUBLISHING = frozenset({"SEND", "BEGIN", "COMMIT", "ABORT"})
#: The escape that means something in 1.2 only.
READ_DIFFERENTLY = b"\\r"


@dataclass(slots=True)
class Frame:
    """One frame; headers unescaped."""

    command: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ignored_lines: tuple[str, ...] = ()  #: header lines without a colon

    @property
    def receipt(self) -> str | None:
        """Return what its receipt is to be called; None when it asks for none."""
        return self.headers.get("receipt")


@dataclass(slots=True)
class SendFrame:
    """One SEND whose head is plain; see send_heads.py."""

    like: Values  #: what decides about the message, as it is written
    properties: str  #: header lines as the broker stores them
    body: bytes
    varying: Values | None  #: what else is interpreted; None: nothing
    is_counted: bool  #: it has a content-length
    receipt: str | None
    head: bytes
    command = "SEND"

    @property
    def headers(self) -> dict[str, str]:
        """All headers, unescaped."""
        return read_head(self.head, "1.2")[1]


@dataclass(slots=True)
class SendFrameBatch:
    """SENDs that came one after the other, whatever they say, and the BEGINs, COMMITs and ABORTs among them.

    SENDs whose head is not plain are frames, read by frames.py.
    """

    frames: list[SendFrame | Frame]
    ignored_lines: tuple[str, ...] = ()  #: header lines without a colon

    @property
    def command(self) -> str:
        """Return the command of the first."""
        return self.frames[0].command

    @property
    def receipt(self) -> str | None:
        """Return the receipt of the first."""
        return self.frames[0].receipt


@dataclass(slots=True)
class AckFrameBatch:
    """ACKs and NACKs that follow each other and belong to no transaction, or ACKs of one."""

    ids: list[str]
    subscriptions: list[str | None] | None = None  #: what each names; None: none does
    receipts: list[str | None] | None = None  #: what each asks for; None: none does
    rejects: list[bool] | None = None  #: whether each is a NACK; None: none is
    transaction: str | None = None  #: of all
    ignored_lines = ()

    @property
    def command(self) -> str:
        """Return the command of the first."""
        return "NACK" if self.rejects and self.rejects[0] else "ACK"

    @property
    def receipt(self) -> str | None:
        """Return the receipt of the first."""
        return self.receipts[0] if self.receipts else None


def skip_between_frames(buffer: bytes, position: int) -> int:
    """Return where the next frame begins."""
    return BETWEEN_FRAMES.match(buffer, position).end()  # type: ignore[union-attr]  # it matches nothing, too


def read_acks(buffer: bytes, start: int, version: str) -> tuple[AckFrameBatch, int] | None:
    """Read the ACKs and NACKs that begin here, and return where they end; None when none can be read here."""
    for pattern in _PLAIN if version == "1.2" else ():
        plain = pattern.match(buffer, start)
        if plain and not _ACK.match(buffer, plain.end()):
            is_nack = [] if pattern is _PLAIN_ACKS else [bool(each) for each in _ACK_OR_NACK.findall(plain[0])]
            return AckFrameBatch(_ACK_ID.findall(plain[0].decode()), rejects=is_nack or None), plain.end()
    names_message = "id" if version == "1.2" else "message-id"
    ids: list[str] = []
    subscriptions: list[str | None] = []
    receipts: list[str | None] = []
    rejects: list[bool] = []
    transaction: str | None = None
    position = start
    while (found := _ACK.match(buffer, position)) and len(found[0]) <= MAX_SEND_HEAD_BYTES:
        if version != "1.2" and READ_DIFFERENTLY in found[2]:
            break
        headers = _headers_of(found[2].decode())
        if names_message not in headers or (version != "1.2" and "subscription" not in headers):
            break
        if ids and headers.get("transaction") != transaction:
            break
        transaction = headers.get("transaction")
        if transaction is not None and found[1]:  # which is refused
            break
        ids.append(headers[names_message])
        subscriptions.append(headers["subscription"] if version != "1.2" else None)
        receipts.append(headers.get("receipt"))
        rejects.append(bool(found[1]))
        position = found.end()
    if not ids:
        return None
    return AckFrameBatch(ids, subscriptions, receipts, rejects if any(rejects) else None, transaction), position


def read_transaction(buffer: bytes, start: int, version: str) -> tuple[Frame, int] | None:
    """Read the BEGIN, COMMIT or ABORT that begins here, and return where it ends; None where it is not plain."""
    found = _TRANSACTION.match(buffer, start)
    if not found or len(found[0]) > MAX_SEND_HEAD_BYTES or (version != "1.2" and READ_DIFFERENTLY in found[2]):
        return None
    return Frame(found[1].decode(), _headers_of(found[2].decode())), found.end()


def _headers_of(lines: str) -> dict[str, str]:
    """Return the headers of a frame; of one that is repeated the first counts."""
    pairs = [line.partition(":") for line in lines.splitlines()]
    return {name: unescape(value) if "\\" in value else value for name, _, value in reversed(pairs)}
