r"""The STOMP codec: bytes to frames and back. Pure; knows the grammar and nothing else.

    stream  : { EOL | BLANK | NUL | frame }
    frame   : command EOL { name ":" value EOL } EOL body NUL
    EOL     : "\n" or "\r\n"

Read as ActiveMQ does where it is more generous than the text: `\r\n` in all versions, an unknown escape stays as it is,
blanks and NULs between frames are skipped, a header line without a colon is passed over.
Names and values are unescaped in versions 1.1 and 1.2 (not in CONNECT, STOMP), trimmed in 1.0. Of a repeated header the
first counts. A body has the length of `content-length` in commands that carry one, else it ends at the first NUL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from brokerapp.errors import ProtocolError
from brokerapp.model.message import escape
from brokerapp.model.transport_connector import MAX_BODY_BYTES
from brokerapp.stomp.frame_batches import (
    PUBLISHING,
    AckFrameBatch,
    Frame,
    SendFrame,
    SendFrameBatch,
    read_acks,
    read_transaction,
    skip_between_frames,
)
from brokerapp.stomp.header_parser import (
    BROKER_LIMITS,
    CLIENT_LIMITS,
    LITERAL,
    MAX_COMMAND_BYTES,
    NUL_IN_HEAD,
    HeadLimits,
    read_head,
)
from brokerapp.stomp.send_heads import MAX_SEND_HEAD_BYTES
from brokerapp.stomp.send_reader import SendReader

__all__ = ["BROKER_LIMITS", "CLIENT_LIMITS", "Frame", "FrameBatch", "FrameParser", "HeadLimits", "encode"]

#: Longest number that is read.
MAX_DIGITS = 18

#: Commands whose body may hold NULs, counted by content-length; on others ActiveMQ ignores it.
COMMANDS_WITH_BODY = frozenset({"SEND", "MESSAGE", "ERROR", "RECEIPT"})
#: As Java reads a number.
_LENGTH = re.compile(rf"\s*(\+?[0-9]{{1,{MAX_DIGITS}}}|-0{{1,{MAX_DIGITS}}})\s*").fullmatch


FrameBatch = SendFrameBatch | AckFrameBatch


class FrameParser:
    """Bytes in, frames out. After a ProtocolError it is of no more use; frames before the bad one have been given.

    `version` and `head_limits` may be set while frames are taken: they hold from the next frame on.
    """

    def __init__(self, max_body: int = MAX_BODY_BYTES, max_frame: int | None = None) -> None:
        self.version, self.head_limits = "1.0", CLIENT_LIMITS
        self.max_body, self.max_frame = max_body, max_frame
        self._chunks: list[bytes] = []
        self._held_bytes = 0
        self._needed_bytes = 1  # bytes before looking again makes sense
        self._until_nul = False  # or: a NUL must have come
        self._sends = SendReader()

    @property
    def is_idle(self) -> bool:
        """Whether it holds no part of a frame: what comes next begins one."""
        return not self._chunks

    def feed(self, *reads: bytes) -> Iterator[Frame | FrameBatch]:
        """Yield the frames that these bytes complete.

        SENDs, with the transactions around them, and plain ACKs that follow each other come in batches.
        """
        self._chunks += reads
        self._held_bytes += sum(map(len, reads))
        if self._held_bytes < self._needed_bytes or (self._until_nul and not any(b"\0" in each for each in reads)):
            if self._until_nul and self._held_bytes > self.max_body + self.head_limits.head:
                raise self._too_long("the frame")
            return
        buffer = b"".join(self._chunks)  # which copies nothing where there is one only
        self._chunks.clear()
        yield from self._frames_in(buffer)

    def _frames_in(self, buffer: bytes) -> Iterator[Frame | FrameBatch]:
        position, size = 0, len(buffer)
        sends: list[SendFrame | Frame] = []
        ignored: tuple[str, ...] = ()
        try:
            while True:
                self._needed_bytes, self._until_nul = 1, False
                position = skip_between_frames(buffer, position)
                if self.version != "1.0":
                    position = self._sends.read(buffer, position, self.version, self._room_of_sends, sends)
                try:
                    found = self._next_at(buffer, position) if position < size else None
                except ProtocolError:
                    if sends:
                        yield SendFrameBatch(sends, ignored)
                    raise
                if found is not None and isinstance(frame := found[0], Frame) and frame.command in PUBLISHING:
                    sends.append(frame)
                    ignored, position = ignored or frame.ignored_lines, found[1]
                    continue
                if sends:
                    yield SendFrameBatch(sends, ignored)
                    sends, ignored = [], ()
                if found is None:
                    break
                position = found[1]
                yield found[0]
        finally:
            rest = buffer[position:]
            self._held_bytes = len(rest)
            if rest:
                self._chunks.insert(0, rest)

    @property
    def _room_of_sends(self) -> int:
        """Bytes of a body that is in no frame that is too long, as the head of a plain SEND is short."""
        return self.max_body if self.max_frame is None else min(self.max_body, self.max_frame - MAX_SEND_HEAD_BYTES)

    def _next_at(self, buffer: bytes, start: int) -> tuple[Frame | FrameBatch, int] | None:
        return self._plain_at(buffer, start) or self._frame_at(buffer, start)

    def _plain_at(self, buffer: bytes, start: int) -> tuple[AckFrameBatch | Frame, int] | None:
        if self.version == "1.0" or (self.max_frame is not None and self.max_frame < MAX_SEND_HEAD_BYTES):
            return None
        if buffer.startswith((b"ACK\n", b"NACK\n"), start):
            return read_acks(buffer, start, self.version)
        return read_transaction(buffer, start, self.version)

    def _frame_at(self, buffer: bytes, start: int) -> tuple[Frame, int] | None:
        end = buffer.find(b"\n\n", start)
        body = end + 2
        if end < 0 or buffer.find(b"\r", start, end) >= 0:
            end, body = _end_of_head(buffer, start)
            if end < 0:
                _check_open_head(buffer, start, self.head_limits.head)
                self._max_body_of(buffer, start, len(buffer))
                return None
        command, headers, passed_over = read_head(buffer[start:end], self.version, self.head_limits)
        room = self._max_body_of(buffer, start, body)
        if command not in COMMANDS_WITH_BODY or (length := headers.get("content-length")) is None:
            nul = buffer.find(b"\0", body)
            if (nul if nul >= 0 else len(buffer)) - body > room:
                raise self._too_long("the body")
            if nul < 0:
                self._until_nul = True
                return None
            return Frame(command, headers, buffer[body:nul], passed_over), nul + 1
        last = body + _content_length(length)
        if last - body > room:
            raise self._too_long(f"content-length:{length[:40]}")
        if last >= len(buffer):
            self._needed_bytes = last - start + 1
            return None
        if buffer[last] != 0:
            raise ProtocolError(f"{command}: no NUL after the {length} bytes that content-length announces")
        return Frame(command, headers, buffer[body:last], passed_over), last + 1

    def _max_body_of(self, buffer: bytes, start: int, body: int) -> int:
        """Bytes the body of this frame may have, whose head ends at `body`. Raises ProtocolError when that is too long.

        Toward the length of a frame its line ends do not count.
        """
        if self.max_frame is None:
            return self.max_body
        line_ends = buffer.count(b"\n", start, body) + buffer.count(b"\r", start, body)
        room = self.max_frame - (body - start - line_ends)
        if room < 0:
            newline = buffer.find(b"\n", start, body)
            is_command = (newline if newline >= 0 else body) - start > self.max_frame
            what = "command line exceeds" if is_command else "headers exceed"
            raise ProtocolError(f"the {what} the limit of a frame of {self.max_frame} bytes (maxFrameSize)")
        return min(self.max_body, room)

    def _too_long(self, what: str) -> ProtocolError:
        limits = [f"{self.max_body} bytes (maxDataLength)"]
        if self.max_frame is not None:
            limits.append(f"a frame of {self.max_frame} bytes (maxFrameSize)")
        return ProtocolError(f"{what} exceeds the limit of {' or '.join(limits)}")


def _end_of_head(buffer: bytes, start: int) -> tuple[int, int]:
    """Where the headers end and the body begins, when `\\r` may be about; (-1, -1) when they do not end yet."""
    plain, carriage = buffer.find(b"\n\n", start), buffer.find(b"\n\r\n", start)
    if plain >= 0 and (carriage < 0 or plain < carriage):
        return plain, plain + 2
    return (carriage, carriage + 3) if carriage >= 0 else (-1, -1)


def _check_open_head(buffer: bytes, start: int, limit: int) -> None:
    if len(buffer) - start > limit:
        raise ProtocolError(f"the headers exceed {limit} bytes")
    if b"\0" in buffer[start:]:
        raise ProtocolError(NUL_IN_HEAD)
    newline = buffer.find(b"\n", start)
    if newline < 0 and len(buffer) - start > MAX_COMMAND_BYTES:
        raise ProtocolError(f"the command line exceeds {MAX_COMMAND_BYTES} bytes")


def _content_length(text: str) -> int:
    if not _LENGTH(text):
        raise ProtocolError(f"content-length:{text[:40]} is not a number of bytes")
    return int(text)


def _quote_1_0(text: str) -> str:
    """Header text for 1.0, which has no escapes: what would break a line becomes a space."""
    return text.replace("\n", " ")


def _quote_1_1(text: str) -> str:
    """Header text for 1.1, which has no escape for the carriage return."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace(":", "\\c")


#: How header text is written, by version.
QUOTES = {"1.0": _quote_1_0, "1.1": _quote_1_1, "1.2": escape}


def encode(command: str, headers: Mapping[str, str], body: bytes = b"", version: str = "1.2") -> bytes:
    """One frame as bytes, followed by a newline as ActiveMQ does. Values are escaped as the version has it."""
    quote = QUOTES["1.0" if command in LITERAL else version]
    lines = [f"{quote(name)}:{quote(value)}\n" for name, value in headers.items()]
    return b"%b\n%b\n%b\0\n" % (command.encode(), "".join(lines).encode(), body)
