"""Find how long a message may be for the other broker of a bridge, as far as that announces it. Pure.

It ends the connection at what is longer, as often as it comes: such a message can never cross.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from brokerapp.stomp.frames import BROKER_LIMITS, HeadLimits, encode

#: Digits of each limit in the header that tells them: of more than any memory.
_HEADER = re.compile(r"([0-9]{1,18}),([0-9]{1,18})").fullmatch
#: Bytes that a character of a header may become, and those of its line besides.
_PER_CHARACTER, _PER_LINE = 4, len(":")
_COMMAND = "SEND"


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """Bytes; 0: as many as there are, for all that is known."""

    body: int = 0
    frame: int = 0  #: headers and body together, without the line ends of the headers
    heads: HeadLimits = BROKER_LIMITS

    def exceeded_by(self, headers: Mapping[str, str], body: bytes, unpacked: int) -> str:
        """Why a SEND of this is too long; "" when it is not. `unpacked` is the body's length when it is not packed."""
        if self.body and unpacked > self.body:
            return f"its body has {unpacked:,} bytes, more than {self.body:,} (maxDataLength)"
        if why := self._excess_of_headers(headers):
            return why
        if not self.frame or len(body) + _upper_bound(headers) <= self.frame:
            return ""
        length = _length(headers) + len(body)
        if length <= self.frame:
            return ""
        return f"its frame has {length:,} bytes, more than {self.frame:,} (maxFrameSize)"

    def _excess_of_headers(self, headers: Mapping[str, str]) -> str:
        if len(headers) > (most := self.heads.headers):
            return f"it has {len(headers):,} headers, more than {most:,}"
        limit = self.heads.line
        for name, value in headers.items():
            if _PER_CHARACTER * (len(name) + len(value)) + _PER_LINE > limit:
                length = _length({name: value}) - len(_COMMAND)
                if length > limit:
                    return f"its header {name[:40]!r} has {length:,} bytes, more than {limit:,}"
        return ""


def _upper_bound(headers: Mapping[str, str]) -> int:
    """Bytes that these headers have at most: only near the limit they are written to be counted."""
    characters = sum(map(len, headers)) + sum(map(len, headers.values()))
    return _PER_CHARACTER * characters + _PER_LINE * len(headers) + len(_COMMAND)


def _length(headers: Mapping[str, str]) -> int:
    head = encode(_COMMAND, headers).removesuffix(b"\0\n")
    return len(head) - head.count(b"\n")


def read_limits(text: str, heads: HeadLimits = BROKER_LIMITS) -> FrameLimits:
    """Return the limits of bodies and frames that a header tells, beside those of heads. Raises ValueError."""
    if (found := _HEADER(text)) is None:
        raise ValueError(f"{text[:40]!r} is not two numbers of bytes, body,frame")
    return FrameLimits(int(found[1]), int(found[2]), heads)
