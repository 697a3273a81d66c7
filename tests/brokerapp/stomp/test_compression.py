"""Test the compression of bodies between brokers."""

import zlib

import pytest

from brokerapp.errors import RequestRefused
from brokerapp.stomp.compression import ENCODING_HEADER, MIN_BODY_BYTES, compress, decompress

LONG = b"the same again " * 1000


@pytest.mark.parametrize("headers", [{"destination": "/queue/q"}, {"content-length": str(len(LONG)), "colour": "blue"}])
def test_a_text_stays_a_text_and_bytes_stay_bytes(headers):
    sent, body = compress(headers, LONG)
    assert len(body) < len(LONG) / 10
    assert sent["content-length"] == str(len(body))
    assert decompress(sent, body, len(LONG)) == (headers, LONG)


@pytest.mark.parametrize("body", [b"x" * (MIN_BODY_BYTES - 1), zlib.compress(bytes(range(256)) * 40)])
def test_what_gets_no_shorter_goes_as_it_is(body):
    assert compress({"a": "b"}, body) == ({"a": "b"}, body)


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("deflate text", b"no", "is not compressed"),
        ("deflate text", zlib.compress(LONG)[:-8], "not whole"),
        ("deflate text", zlib.compress(LONG * 2), f"exceeds {len(LONG)} bytes"),
        ("brotli", b"", "sluice-encoding:brotli is not known"),
    ],
)
def test_what_is_wrong_or_too_long_is_refused(encoding, body, why):
    with pytest.raises(RequestRefused, match=why):
        decompress({ENCODING_HEADER: encoding}, body, len(LONG))
