"""Test that batches of trace events contain plain values only, also those of version 2."""

import contextlib
import marshal
import struct

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.tracing.decoding import decode
from brokerapp.tracing.encoding import encode
from brokerapp.tracing.schema import ENQUEUE
from brokerapp.tracing.unmarshal import unmarshal

FACTS = [("ID:a:1", 10, 1_795_370_000_000_000), ("ID:ä\udc80:2", 2**40, 1_795_370_000_000_001)]
PLACES = ("queue://a", "queue://b")
RUNS = [
    1_795_370_000_000_000, 1, PLACES, "topic://x", None, None, 2,
    1_795_370_000_000_009, 2, PLACES, None, "c", None, 1,
]  # fmt: skip
BATCH = ("broker", RUNS, [*FACTS, FACTS[0]], [b"priority:4\n"], {"topic://x": 4})
#: Plain values as batches hold them.
VALUES = st.recursive(
    st.none() | st.integers(-(2**70), 2**70) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
)


def of_version_2(values) -> bytes:
    """As the version before stored it."""
    plain = marshal.dumps(values, 4)
    return b"SLT2" + struct.pack("<I", len(plain)) + pa.compress(plain, "zstd", asbytes=True)


def packed(magic, values) -> bytes:
    """As versions from 3 on store it."""
    plain = msgpack.packb(values, unicode_errors="surrogatepass")
    return magic + struct.pack("<I", len(plain)) + pa.compress(plain, "zstd", asbytes=True)


def zstd_text(data) -> bytes:
    """What a batch holds, before it is compressed."""
    return pa.decompress(data[8:], struct.unpack("<I", data[4:8])[0], "zstd", asbytes=True)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_plain_values_are_read_as_python_wrote_them(value):
    assert unmarshal(marshal.dumps(value, 4)) == value
    shared = [value, (value, value), value]
    assert unmarshal(marshal.dumps(shared, 4)) == shared


def test_a_batch_of_version_2_is_read_as_one_of_this_version():
    assert decode(of_version_2(BATCH)).equals(decode(encode(*BATCH)))


def test_a_batch_of_version_4_is_read_as_one_of_this_version():
    assert decode(packed(b"SLT4", BATCH)).equals(decode(encode(*BATCH)))


def test_the_facts_of_a_message_are_written_once():
    [one, other] = [("ID:a:1", 10, 1_795_370_000_000_000), ("ID:a:2", 20, 1_795_370_000_000_001)]
    runs = [*RUNS[:6], 2, *RUNS[7:13], 2]
    data = encode("broker", runs, [other, one, one, other], [], {})
    assert zstd_text(data).count(b"ID:a:1") == zstd_text(data).count(b"ID:a:2") == 1
    ids = decode(data)["msg_id"].to_pylist()
    assert ids == ["ID:a:2", "ID:a:2", "ID:a:1", "ID:a:1", "ID:a:1", "ID:a:1", "ID:a:2", "ID:a:2"]


@pytest.mark.parametrize("steps", [[0, 0, -1], [0, 5, 0], [0]])
def test_steps_to_messages_that_are_not_there_are_refused(steps):
    broker, runs, _, heads, weights = BATCH
    values = broker, runs, FACTS, np.array(steps, "<i4").tobytes(), heads, weights
    with pytest.raises(ValueError, match="not a batch of trace events"):
        decode(packed(b"SLT5", values))


def test_messages_that_had_one_head_together_up_to_version_3_have_its_properties_each():
    runs = [1_795_370_000_000_000, ENQUEUE, PLACES[:1], "topic://x", None, "p", 2]
    head, values = b"message-id:1\nregion:north\n", ("broker", runs, FACTS)
    of_version_3 = packed(b"SLT3", (*values, [head], {}))
    expected = decode(encode(*values, [head, head], {}))
    assert [dict(each)["region"] for each in expected["ps"].to_pylist()] == ["north", "north"]
    for data in (of_version_3, of_version_2((*values, [head], {}))):
        assert decode(data).equals(expected)


@pytest.mark.parametrize("value", [compile("1", "x", "eval"), {1, 2}, 1.5, ..., StopIteration])
def test_code_and_other_values_are_refused(value):
    data = marshal.dumps((value,), 4)
    with pytest.raises(ValueError, match="unsupported type"):
        unmarshal(data)
    with pytest.raises(ValueError, match="not a batch of trace events"):
        decode(of_version_2((value, [], [], [], {})))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400))
def test_damaged_bytes_are_refused_and_never_end_the_process(noise, place):
    good = marshal.dumps(BATCH, 4)
    damaged = good[: place % len(good)] + noise + good[place % len(good) + len(noise) :]
    with contextlib.suppress(ValueError):
        unmarshal(damaged)
