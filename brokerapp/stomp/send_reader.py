"""SendReader: reads the plain SENDs of a connection that follow each other. Pure; used by frames.py.

Where compiled_sends.pyx was compiled (`make setup` does it where there is a C compiler), that reads most of them: a
SEND takes 1.5 us, whatever its headers. What it leaves is read here, one by one. Without it all are read here: 4.7 us,
or 11 where the names or the order of headers differ from those before. Both find the same (decision 26).
"""

from __future__ import annotations

from brokerapp.model.message import unescape
from brokerapp.stomp.frame_batches import READ_DIFFERENTLY, Frame, SendFrame, skip_between_frames
from brokerapp.stomp.send_heads import MAX_SEND_HEAD_BYTES, SendHead, read_send_head
from brokerapp.stomp.send_shapes import SAMPLED_ONE_IN, SHAPES, SendShape

try:
    from brokerapp.stomp.compiled_sends import CompiledSendReader
except ImportError:
    CompiledSendReader = None  # type: ignore[assignment, misc]

_SEND = b"SEND\n"
#: Longest content-length that is read here.
_MAX_DIGITS = 9


class SendReader:
    """Reads the SENDs of one connection; without the compiled reader it tries the shape of an earlier one first."""

    __slots__ = ("_compiled", "_shape", "_unshaped")

    def __init__(self) -> None:
        self._compiled = None if CompiledSendReader is None else CompiledSendReader()
        self._shape: SendShape | None = None
        self._unshaped = 0  # heads that were read without a shape

    def read(
        self, buffer: bytes, start: int, version: str, max_body: int, sends: list[SendFrame | Frame]
    ) -> int:  # fmt: skip
        """Append the complete plain SENDs that begin here to `sends`, and return where they end."""
        size = len(buffer)
        while start < size:
            if self._compiled is not None:
                start = self._compiled.read(buffer, start, version == "1.2", max_body, sends)
                if start == size:
                    break
            end = self._read_one(buffer, start, version, max_body, sends)
            if end == start:
                break
            start = end
        return start

    def _read_one(self, buffer: bytes, start: int, version: str, max_body: int, sends: list[SendFrame | Frame]) -> int:
        """Append the plain SEND that begins here to `sends` and return where it ends; where it begins if none does."""
        shape = self._shape
        found = shape.match(buffer, start) if shape is not None else None
        end = found.end() - 2 if found else buffer.find(b"\n\n", start, start + MAX_SEND_HEAD_BYTES)
        head = buffer[start:end]
        if end < 0 or len(head) > MAX_SEND_HEAD_BYTES or not _is_plain(head, version):
            return start
        read = shape.read(found.groups()) if shape and found else self._read_unshaped(head)
        if read is None:
            return start
        like, properties, receipt, digits, varying = read
        begin, size = end + 2, len(buffer)
        if digits is None:
            end = buffer.find(b"\0", begin)
        elif digits.isdigit() and len(digits) <= _MAX_DIGITS:
            end = begin + int(digits)
        else:
            return start
        if not begin <= end < size or buffer[end] or end - begin > max_body:
            return start
        name = None if receipt is None else unescape(receipt.decode())
        sends.append(SendFrame(like, properties, buffer[begin:end], varying, digits is not None, name, head))
        end += 1
        return skip_between_frames(buffer, end) if end < size and not buffer.startswith(b"SEND", end) else end

    def _read_unshaped(self, head: bytes) -> SendHead | None:
        read = read_send_head(head[len(_SEND) :]) if head.startswith(_SEND) else None
        if read is not None:
            self._unshaped += 1
            if self._unshaped % SAMPLED_ONE_IN == 0:
                self._shape = SHAPES.sample(head[len(_SEND) :]) or self._shape
        return read


def _is_plain(head: bytes, version: str) -> bool:
    """Whether a head is text that reads as in STOMP 1.2."""
    if not head.isascii():
        try:
            head.decode()
        except UnicodeDecodeError:
            return False
    return version == "1.2" or READ_DIFFERENTLY not in head
