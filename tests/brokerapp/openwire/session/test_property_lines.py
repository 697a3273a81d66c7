"""Properties that are few texts and numbers are read into header lines at once, as by way of their values."""

from random import Random

import pytest

from brokerapp.errors import OpenWireError
from brokerapp.openwire.marshalled_values import Byte, Char, Float, Long, Short, decode_map, encode_map
from brokerapp.openwire.session.jms_values import MAX_PLAIN_BYTES, header_lines, plain_header_lines

PLAIN = [
    {}, {"n": 5, "region": "north", "total": 2.5}, {"n": -(2**31)}, {"n": Long(2**63 - 1)}, {"total": 0.0},
    {"total": -1e300}, {"total": float("nan")}, {"a:b\\c\nd": "e:f\\g\nh\r"}, {"x": "ü\0😀"}, {"destination": "q"},
    {"x": ""}, {"": "x"}, {"JMSXGroupID": "g"}, {"x" * 300: 1},
]  # fmt: skip
OTHERS = [
    {"x": True}, {"x": None}, {"x": Byte(1)}, {"x": Short(1)}, {"x": Char("c")}, {"x": Float(1.5)}, {"x": b"b"},
    {"x": {"y": 1}}, {"x": [1]}, {"x": "long" * MAX_PLAIN_BYTES}, {"ü": 1}, {"x" * 3000: 1},
]  # fmt: skip


@pytest.mark.parametrize("values", PLAIN, ids=range(len(PLAIN)))
def test_plain_properties_are_the_same_lines(values):
    encoded = encode_map(values)
    for _ in range(2):
        assert plain_header_lines(encoded) == header_lines(decode_map(encoded))


@pytest.mark.parametrize("values", OTHERS, ids=range(len(OTHERS)))
def test_others_are_not_read(values):
    assert plain_header_lines(encode_map(values)) is None


def test_a_name_that_comes_twice_is_not_read():
    encoded = bytearray(encode_map({"a": 1, "b": 2}))
    assert plain_header_lines(bytes(encoded).replace(b"\1b", b"\1a")) is None


def test_the_type_of_a_name_may_change():
    for value in (1, "one", 1.0, Long(1), 1):
        encoded = encode_map({"changing": value})
        assert plain_header_lines(encoded) == header_lines({"changing": value})


def test_damaged_bytes_are_read_as_by_way_of_their_values_or_not_at_all():
    random, encoded = Random(1), encode_map({"n": 5, "region": "north", "total": 2.5, "long": Long(7)})
    for _ in range(5_000):
        damaged = bytearray(encoded[: random.choice((len(encoded), random.randrange(len(encoded))))])
        for _ in range(random.randrange(3)):
            if damaged:
                damaged[random.randrange(len(damaged))] = random.randrange(256)
        try:
            found = plain_header_lines(bytes(damaged))
        except OpenWireError:
            continue
        assert found is None or found == header_lines(decode_map(bytes(damaged)))
