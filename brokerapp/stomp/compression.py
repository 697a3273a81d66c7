"""Compresses bodies that are sent between two brokers (useCompression of a network connector). Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from brokerapp.errors import RequestRefused

#: How the body of a SEND is packed, and of what it is: bytes, or a text, whose frame had no content-length.
ENCODING_HEADER = "sluice-encoding"
_BYTES, _TEXT = "deflate bytes", "deflate text"
#: Bytes of shorter bodies are not worth the time.
MIN_BODY_BYTES = 512
#: The fastest: links are seldom slower than this is.
_LEVEL = 1


def compress(headers: Mapping[str, str], body: bytes) -> tuple[Mapping[str, str], bytes]:
    """Return headers and body of a SEND, compressed where that makes it shorter."""
    if len(body) < MIN_BODY_BYTES or len(smaller := zlib.compress(body, _LEVEL)) >= len(body):
        return headers, body
    encoding = _BYTES if "content-length" in headers else _TEXT
    return {**headers, "content-length": str(len(smaller)), ENCODING_HEADER: encoding}, smaller


def decompress(headers: Mapping[str, str], body: bytes, limit: int) -> tuple[dict[str, str], bytes]:
    """Undo compress. Raises RequestRefused for another encoding, or a body longer than `limit` bytes."""
    own = {name: value for name, value in headers.items() if name not in (ENCODING_HEADER, "content-length")}
    if headers[ENCODING_HEADER] not in (_BYTES, _TEXT):
        raise RequestRefused(f"{ENCODING_HEADER}:{headers[ENCODING_HEADER][:40]} is not known here")
    inflating = zlib.decompressobj()
    try:
        whole = inflating.decompress(body, limit)
    except zlib.error as wrong:
        raise RequestRefused(f"the body is not compressed as {ENCODING_HEADER} says: {wrong}") from None
    if inflating.unconsumed_tail or not inflating.eof:
        raise RequestRefused(f"the body exceeds {limit} bytes, or is not whole")
    if headers[ENCODING_HEADER] == _BYTES:
        own["content-length"] = str(len(whole))
    return own, whole
