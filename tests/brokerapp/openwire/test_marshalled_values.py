"""Test the encoding of typed values."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.errors import OpenWireError
from brokerapp.openwire.marshalled_values import (
    MAX_DEPTH,
    Byte,
    Char,
    Float,
    Long,
    Short,
    decode_map,
    decode_stream,
    encode_map,
    encode_stream,
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-128, 127).map(Byte),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(Float),
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]).map(Char),
    st.text(),
    st.binary(),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(values=st.dictionaries(st.text(), VALUES))
@settings(max_examples=60)
def test_a_map_is_the_same_after_encoding_and_decoding_with_the_types_of_its_values(values):
    decoded = decode_map(encode_map(values))
    assert repr(decoded) == repr(values)
    assert types(decoded) == types(values)


@given(values=st.lists(SCALARS))
def test_a_stream_is_the_same_after_encoding_and_decoding(values):
    decoded = decode_stream(encode_stream(values))
    assert repr(decoded) == repr(values)
    assert types(decoded) == types(values)


def types(value):
    """The types of a value and of those in it."""
    if isinstance(value, dict):
        return {name: types(each) for name, each in value.items()}
    return [types(each) for each in value] if isinstance(value, list) else type(value)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, "00"),
        (True, "0101"),
        (Byte(-2), "02fe"),
        (Char("€"), "0320ac"),
        (Short(-2), "04fffe"),
        (-2, "05fffffffe"),
        (Long(-2), "06fffffffffffffffe"),
        (2**31, "060000000080000000"),
        (1.5, "073ff8000000000000"),
        (Float(1.5), "083fc00000"),
        ("é\0", "090004c3a9c080"),
        ("😀", "090006eda0bdedb880"),
        (b"ab", "0a000000026162"),
        ({"a": 1}, "0b00000001000161" + "0500000001"),
        ([True, None], "0c00000002" + "010100"),
    ],
)
def test_the_bytes_of_a_value_are_those_of_java(value, encoded):
    assert encode_map({"k": value}).hex() == "00000001" + "00016b" + encoded


@pytest.mark.parametrize(("units", "tag"), [(8190, 9), (8191, 13), (100_000, 13)])
def test_a_long_text_has_a_length_of_four_bytes(units, tag):
    for text in ("x" * units, "é" * units, "😀" * (units // 2) + "x" * (units % 2)):
        encoded = encode_stream([text])
        assert encoded[0] == tag
        assert decode_stream(encoded) == [text]


def test_a_map_that_is_null_is_empty_and_a_long_text_that_is_null_is_none():
    assert decode_map(b"\xff\xff\xff\xff") == {}
    assert decode_stream(b"\x0d\xff\xff\xff\xff") == [None]


def test_the_last_of_two_values_with_one_name_is_taken_as_in_java():
    once = encode_map({"a": 1})
    twice = b"\0\0\0\2" + once[4:] + encode_map({"a": 2})[4:]
    assert decode_map(twice) == {"a": 2}


def test_half_a_pair_of_surrogates_becomes_the_replacement_character():
    assert decode_stream(b"\x03\xd8\x3d" + b"\x09\0\x03\xed\xa0\xbd") == ["\ufffd", "\ufffd"]


@given(data=st.binary(max_size=60))
@settings(max_examples=100)
def test_any_bytes_are_values_or_an_error_of_the_protocol(data):
    for decode, encode in ((decode_map, encode_map), (decode_stream, encode_stream)):
        try:
            values = decode(data)
        except OpenWireError:
            continue
        assert repr(decode(encode(values))) == repr(values)


@given(values=st.dictionaries(st.text(max_size=5), VALUES, max_size=3), random=st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_a_map_of_which_some_bytes_changed_is_a_map_or_an_error_of_the_protocol(values, random):
    data = bytearray(encode_map(values))
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    try:
        decode_map(bytes(data))
    except OpenWireError:
        return


@given(values=st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=3))
@settings(max_examples=30)
def test_a_map_that_ends_before_its_end_or_after_is_refused(values):
    encoded = encode_map(values)
    for size in range(len(encoded)):
        with pytest.raises(OpenWireError):
            decode_map(encoded[:size])
    with pytest.raises(OpenWireError, match="1 bytes follow the values"):
        decode_map(encoded + b"\0")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("", "values end too early: they are longer than their 0 bytes"),
        ("fffffffe", "a map or list has -2 values"),
        ("00000001000161" + "0e", "a value of type 14 is not known"),
        ("000000010001ff" + "00", "a text of 1 bytes is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_map_is_said(data, sentence):
    with pytest.raises(OpenWireError, match=sentence):
        decode_map(bytes.fromhex(data))


def test_maps_and_lists_that_are_nested_too_deeply_are_refused_both_ways():
    value = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert decode_map(encode_map({"a": value})) == {"a": value}
    for deeper in ([value], {"b": value}):
        with pytest.raises(OpenWireError, match=f"nested more than {MAX_DEPTH} times"):
            encode_map({"a": deeper})
    for one in ("0c00000001", "0b00000001000161"):
        with pytest.raises(OpenWireError, match=f"nested more than {MAX_DEPTH} times"):
            decode_map(bytes.fromhex("00000001000161" + one * 100_000))


def test_a_number_of_values_that_no_message_can_hold_costs_no_memory():
    tracemalloc.start()
    try:
        for data in ("7fffffff", "00000001000161" + "0c7fffffff", "00000001000161" + "0a7fffffff"):
            with pytest.raises(OpenWireError):
                decode_map(bytes.fromhex(data))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("data", ["0b00000000", "0c00000000"])
def test_a_stream_holds_no_maps_and_lists(data):
    with pytest.raises(OpenWireError, match="a stream message holds a map or list"):
        decode_stream(bytes.fromhex(data))
    for value in ({}, []):
        with pytest.raises(OpenWireError, match="a stream message cannot hold a"):
            encode_stream([value])


@pytest.mark.parametrize("value", [2**63, Byte(128), Short(-32769), Float(1e39), Long(-(2**63) - 1)])
def test_a_number_beyond_its_type_is_refused(value):
    with pytest.raises(OpenWireError, match="a value does not fit its type"):
        encode_map({"a": value})


def test_a_value_of_another_type_is_refused():
    with pytest.raises(OpenWireError, match="a value of type set cannot be encoded"):
        encode_map({"a": set()})
    for text in ("", "ab", "😀"):
        with pytest.raises(OpenWireError):
            encode_map({"a": Char(text)})
    with pytest.raises(OpenWireError, match="at most 65535"):
        encode_map({"a" * 65536: 1})
