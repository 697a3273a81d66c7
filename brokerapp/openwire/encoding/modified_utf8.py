"""Converts texts to and from the UTF-8 of Java: NUL in two bytes, what is beyond 16 bits as a pair of surrogates."""

from __future__ import annotations

import re

from brokerapp.errors import OpenWireError

#: The longest text whose length is given in two bytes.
MAX_SHORT_TEXT_BYTES = 0xFFFF
_NUL = b"\xc0\x80"
_SUPPLEMENTARY = re.compile("[\U00010000-\U0010ffff]")


def encode_text(text: str) -> bytes:
    """Return the bytes of a text, without their number."""
    if text.isascii():
        return text.encode() if "\0" not in text else text.encode().replace(b"\0", _NUL)
    raw = _SUPPLEMENTARY.sub(_surrogates, text).encode("utf-8", "surrogatepass")
    return raw.replace(b"\0", _NUL)


def encode_short_text(text: str) -> bytes:
    """Return the number of bytes in two, and the bytes. Raises OpenWireError for a text that is longer than that."""
    raw = encode_text(text)
    if len(raw) > MAX_SHORT_TEXT_BYTES:
        raise OpenWireError(
            f"text {text[:40]!r}… has {len(raw)} bytes: at most {MAX_SHORT_TEXT_BYTES} are allowed here"
        )
    return len(raw).to_bytes(2) + raw


def decode_text(raw: bytes) -> str:
    """Return the text that the bytes stand for. Raises OpenWireError for others.

    A surrogate without its other half, which Java allows, becomes U+FFFD: no other text can hold it.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    try:
        halves = raw.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise OpenWireError(f"a text of {len(raw)} bytes is not UTF-8: {error.reason} at byte {error.start}") from None
    return join_surrogates(halves)


def join_surrogates(text: str) -> str:
    """Return a text with pairs of surrogates as the characters that they stand for, single ones as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def utf16_length(text: str) -> int:
    """Return the length of a text as Java counts it, in units of 16 bits."""
    return len(text) if text.isascii() else len(text) + len(_SUPPLEMENTARY.findall(text))


def _surrogates(match: re.Match[str]) -> str:
    offset = ord(match[0]) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))
