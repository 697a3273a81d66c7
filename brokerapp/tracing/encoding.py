"""Encodes batches of trace events as bytes on the node, and decodes them to columns for readers.

    magic  length  zstd(msgpack((broker, runs, facts, steps, heads, weights)))

Facts of a message are there once, however many events it had; `steps` lead from the place of each that was noted to the
next one's.

A batch costs the node a fifth of what Arrow columns cost it, and takes a tenth of the space (decision 13). Version 2
had Python's marshal format instead of msgpack; it is read by `unmarshal`, which makes plain values only. Up to version
3 messages that were enqueued together had one head, because they had the same properties. Up to version 4 every run had
facts of its own, and no steps.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from brokerapp.tracing.columns import different_facts, table_of
from brokerapp.tracing.schema import ENQUEUE, RUN_FIELDS, current
from brokerapp.tracing.unmarshal import unmarshal

_MAGIC, _OWN_FACTS, _HEAD_OF_RUN, _MARSHALLED = b"SLT5", b"SLT4", b"SLT3", b"SLT2"
_LENGTH = struct.Struct("<I")
_HEADER = len(_MAGIC) + _LENGTH.size
#: How steps are written.
_STEPS = "<i4"
#: A client may send any text, also half of a character.
_TEXTS = {"unicode_errors": "surrogatepass"}
_CODEC = "zstd"
#: Bytes of a packed batch: more than the longest heads of all its messages come to. What claims more is none.
MAX_BYTES = 256 * 1024 * 1024
#: How batches of version 1 begin, which were Arrow streams.
_ARROW = b"\xff\xff\xff\xff"


def encode(
    broker: str, runs: list[Any], facts: list[tuple[str, int, int]], heads: list[bytes], weights: dict[str, int]
) -> bytes:
    """Encode a batch: references for each run, the facts of its messages, and a head of each message enqueued, or none.

    See recorder.py.
    """
    places, different = different_facts(facts)
    steps = np.diff(places, prepend=0).astype(_STEPS).tobytes()
    plain = msgpack.packb((broker, runs, different, steps, heads, weights), **_TEXTS)
    return b"%b%b%b" % (_MAGIC, _LENGTH.pack(len(plain)), pa.compress(plain, _CODEC, asbytes=True))


def decode(data: bytes) -> pa.Table:
    """Return the events of one batch of this version or an earlier one. Raises ValueError for other data."""
    try:
        if data.startswith(_ARROW):
            return current(pa.ipc.open_stream(data).read_all())
        return table_of(*_values(data))
    except (LookupError, AttributeError, TypeError, ValueError, OverflowError, OSError, pa.ArrowException) as error:
        raise ValueError(f"not a batch of trace events: {error}") from error


def _values(data: bytes) -> tuple[Any, ...]:
    plain = _plain(data)
    if data.startswith(_MARSHALLED):
        broker, runs, facts, heads, weights = unmarshal(plain)
        return broker, runs, facts, _head_of_each(runs, heads), weights
    values = msgpack.unpackb(plain, use_list=False, **_TEXTS)
    if data.startswith(_MAGIC):
        broker, runs, different, steps, heads, weights = values
        return broker, list(runs), _facts_at(different, steps), list(heads), weights
    broker, runs, facts, heads, weights = values
    same: dict[Any, Any] = {}  # a message's facts are one object again, by which columns know it
    heads = _head_of_each(runs, heads) if data.startswith(_HEAD_OF_RUN) else list(heads)
    return broker, list(runs), list(map(same.setdefault, facts, facts)), heads, weights


def _facts_at(different: Sequence[Any], steps: bytes) -> list[Any]:
    places = np.cumsum(np.frombuffer(steps, _STEPS), dtype=np.int64)
    if len(places) and places.min() < 0:
        raise ValueError("a step leads before the first message")
    return [different[place] for place in places.tolist()]


def _head_of_each(runs: Sequence[Any], heads: Sequence[bytes]) -> list[bytes]:
    """Return a head for each message that was enqueued, from one for each run of them, if there are any."""
    counts = [count for kind, count in zip(runs[1::RUN_FIELDS], runs[6::RUN_FIELDS], strict=True) if kind == ENQUEUE]
    return [head for head, count in zip(heads, counts, strict=False) for _ in range(count)]


def _plain(data: bytes) -> bytes:
    if not data.startswith((_MAGIC, _OWN_FACTS, _HEAD_OF_RUN, _MARSHALLED)) or len(data) < _HEADER:
        raise ValueError(f"it begins with {data[: len(_MAGIC)]!r}")
    [length] = _LENGTH.unpack_from(data, len(_MAGIC))
    if length > MAX_BYTES:
        raise ValueError(f"its length of {length} bytes exceeds the limit of {MAX_BYTES}")
    plain: bytes = pa.decompress(data[_HEADER:], length, _CODEC, asbytes=True)
    return plain
