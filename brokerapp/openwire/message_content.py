"""Encodes and decodes the content of messages, compressed or not, by the type of their body."""

from __future__ import annotations

import struct
import zlib

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands.data_types import BYTES_MESSAGE, TEXT_MESSAGE
from brokerapp.openwire.encoding.modified_utf8 import decode_text, encode_text

_LENGTH = struct.Struct(">i")
#: What Java writes for an object: magic and version of the stream, an object, the description of its class.
_OBJECT_HEADER = b"\xac\xed\x00\x05sr"


def inflate(data_type: int, content: bytes, limit: int) -> bytes:
    """Return the content of a message of this type, as it was before it was compressed.

    Raises OpenWireError for one of more than `limit` bytes, and for what is not compressed.
    """
    if not content:
        return b""
    if data_type == BYTES_MESSAGE:
        return _inflate_announced(content, limit)
    whole, is_complete = _decompress(content, limit + 1)
    if len(whole) > limit:
        raise _too_long(limit)
    if not is_complete:
        raise OpenWireError(f"a compressed content ends too early, after {len(whole)} bytes")
    return whole


def _inflate_announced(content: bytes, limit: int) -> bytes:
    """Return the bytes whose number stands before what is compressed.

    More may follow them there: a Java client compresses its buffer with what is behind its content.
    """
    if len(content) < _LENGTH.size:
        raise OpenWireError(f"a compressed content of {len(content)} bytes is too short")
    (size,) = _LENGTH.unpack_from(content)
    if size > limit:
        raise _too_long(limit)
    whole = _decompress(content[_LENGTH.size :], size)[0] if size > 0 else b""
    if len(whole) != size:
        raise OpenWireError(f"a compressed content has {len(whole)} bytes: it says {size}")
    return whole


def _decompress(content: bytes, most: int) -> tuple[bytes, bool]:
    """Return at most so many bytes of what was compressed, and whether that is all."""
    inflating = zlib.decompressobj()
    try:
        return inflating.decompress(content, most), inflating.eof
    except zlib.error as error:
        raise OpenWireError(f"a content of {len(content)} bytes is not compressed: {error}") from None


def _too_long(limit: int) -> OpenWireError:
    return OpenWireError(f"a compressed content exceeds the limit of {limit} bytes")


def deflate(data_type: int, content: bytes) -> bytes:
    """Return the content of a message of this type, compressed."""
    compressed = zlib.compress(content)
    return _LENGTH.pack(len(content)) + compressed if data_type == BYTES_MESSAGE else compressed


def decode_text_content(content: bytes) -> str | None:
    """Return the text of a text message, not compressed; None where it has none. Raises OpenWireError."""
    raw = _raw_text(content)
    return None if raw is None else decode_text(raw)


def utf8_of_text_content(content: bytes) -> bytes | None:
    """Return the text of a text message in UTF-8, not compressed; None where it has none. Raises OpenWireError."""
    raw = _raw_text(content)
    return raw if raw is None or raw.isascii() else decode_text(raw).encode()


def _raw_text(content: bytes) -> bytes | None:
    if not content:
        return None
    if len(content) < _LENGTH.size:
        raise OpenWireError(f"a text's content of {len(content)} bytes is too short")
    (length,) = _LENGTH.unpack_from(content)
    if length < 0:
        return None
    raw = content[_LENGTH.size :]
    if len(raw) != length:
        raise OpenWireError(f"a text has {len(raw)} bytes: its content says {length}")
    return raw


def encode_text_content(text: str | None) -> bytes | None:
    """Return the content of a text message, not compressed; none for none."""
    if text is None:
        return None
    raw = encode_text(text)
    return _LENGTH.pack(len(raw)) + raw


def content_of(data_type: int, body: bytes) -> bytes:
    """Return the content of a message of this type, not compressed, of a body as it is stored.

    That of a text message is UTF-8; what is none is replaced.
    """
    if data_type != TEXT_MESSAGE:
        return body
    if not body.isascii() or body.find(b"\0") >= 0:
        body = encode_text(body.decode("utf-8", "replace"))
    return _LENGTH.pack(len(body)) + body


def object_class_name(content: bytes) -> str | None:
    """Return the name of the class of an object message, not compressed; None where its content does not begin so."""
    start = len(_OBJECT_HEADER) + 2
    if not content.startswith(_OBJECT_HEADER) or len(content) < start:
        return None
    end = start + int.from_bytes(content[start - 2 : start])
    try:
        return decode_text(content[start:end]) if end <= len(content) else None
    except OpenWireError:
        return None
