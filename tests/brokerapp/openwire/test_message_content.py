"""Test the content of messages, compressed and not."""

import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerapp.errors import OpenWireError
from brokerapp.openwire.commands.data_types import BYTES_MESSAGE, MESSAGES, TEXT_MESSAGE
from brokerapp.openwire.message_content import (
    content_of,
    decode_text_content,
    deflate,
    encode_text_content,
    inflate,
    object_class_name,
    utf8_of_text_content,
)


@given(text=st.text() | st.none())
def test_a_text_is_the_same_after_encoding_and_decoding(text):
    assert decode_text_content(encode_text_content(text) or b"") == text


def test_the_bytes_of_a_text_are_those_of_java():
    assert encode_text_content("é\0😀").hex() == "0000000a" + "c3a9" + "c080" + "eda0bdedb880"
    assert encode_text_content("") == b"\0\0\0\0"
    assert decode_text_content(b"\xff\xff\xff\xff") is None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\0", "a text's content of 1 bytes is too short"),
        (b"\0\0\0\2a", "a text has 1 bytes: its content says 2"),
        (b"\0\0\0\1ab", "a text has 2 bytes: its content says 1"),
        (b"\0\0\0\1\xff", "a text of 1 bytes is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(content, sentence):
    with pytest.raises(OpenWireError, match=sentence):
        decode_text_content(content)


@pytest.mark.parametrize("data_type", MESSAGES)
@given(content=st.binary(min_size=1))
def test_a_content_is_the_same_after_compressing_it(data_type, content):
    compressed = deflate(data_type, content)
    assert inflate(data_type, compressed, len(content)) == content
    with pytest.raises(OpenWireError, match="exceeds the limit of"):
        inflate(data_type, compressed, len(content) - 1)
    if data_type != BYTES_MESSAGE:  # which says itself where its content ends
        for size in range(1, len(compressed)):
            with pytest.raises(OpenWireError):
                inflate(data_type, compressed[:size], len(content))


def test_a_compressed_content_that_is_empty_is_empty():
    assert [inflate(each, b"", 0) for each in MESSAGES] == [b""] * len(MESSAGES)


def test_compressed_bytes_begin_with_their_number():
    assert deflate(BYTES_MESSAGE, b"ab") == b"\0\0\0\2" + zlib.compress(b"ab")
    for size in (3, -1):
        with pytest.raises(OpenWireError, match=r"a compressed content has \d bytes: it says"):
            inflate(BYTES_MESSAGE, size.to_bytes(4, signed=True) + zlib.compress(b"ab"), 100)
    for too_short in (b"\0", b"\0\0\0", b"\0\0\0\2", b"\0\0\0\2" + zlib.compress(b"ab")[:3]):
        with pytest.raises(OpenWireError):
            inflate(BYTES_MESSAGE, too_short, 100)


def test_what_java_compresses_behind_the_content_is_not_part_of_it():
    assert inflate(BYTES_MESSAGE, b"\0\0\0\2" + zlib.compress(b"ab" + bytes(1000)), 2) == b"ab"


@given(content=st.binary(), data_type=st.sampled_from(MESSAGES))
def test_any_bytes_are_a_content_or_an_error_of_the_protocol(content, data_type):
    for decode in (lambda: inflate(data_type, content, 1000), lambda: decode_text_content(content)):
        try:
            decode()
        except OpenWireError:
            continue


def test_what_inflates_to_more_than_the_limit_is_not_inflated():
    bomb = zlib.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(OpenWireError, match="exceeds the limit of 1000 bytes"):
            inflate(TEXT_MESSAGE, bomb, 1000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (bytes.fromhex("aced0005737200116a6176612e6c616e672e496e7465676572") + b"more", "java.lang.Integer"),
        (bytes.fromhex("aced0005737200ff6a"), None),
        (bytes.fromhex("aced00057372"), None),
        (bytes.fromhex("aced000573720001ff"), None),
        (b"", None),
        (b"something else", None),
    ],
)
def test_the_class_of_an_object_is_read_from_its_first_bytes(content, name):
    assert object_class_name(content) == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_in_utf_8_is_the_content_that_its_characters_make(text):
    assert content_of(TEXT_MESSAGE, text.encode()) == encode_text_content(text)
    assert utf8_of_text_content(encode_text_content(text)) == text.encode()
