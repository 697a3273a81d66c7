"""Decodes batches of trace events, of this version (encoding.py) or an earlier one, to columns. Not for nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from brokerapp.tracing.arrow_schema import current
from brokerapp.tracing.columns import table_of
from brokerapp.tracing.encoding import LENGTH, MAGIC, STEPS, TEXTS
from brokerapp.tracing.schema import ENQUEUE, RUN_FIELDS
from brokerapp.tracing.unmarshal import unmarshal

_OWN_FACTS, _HEAD_OF_RUN, _MARSHALLED = b"SLT4", b"SLT3", b"SLT2"
_HEADER = len(MAGIC) + LENGTH.size
_CODEC = "zstd"
#: Bytes of a packed batch: more than the longest heads of all its messages come to. What claims more is none.
MAX_BYTES = 256 * 1024 * 1024
#: How batches of version 1 begin, which were Arrow streams.
_ARROW = b"\xff\xff\xff\xff"


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
    values = msgpack.unpackb(plain, use_list=False, **TEXTS)
    if data.startswith(MAGIC):
        broker, runs, different, steps, heads, weights = values
        return broker, list(runs), _facts_at(different, steps), list(heads), weights
    broker, runs, facts, heads, weights = values
    same: dict[Any, Any] = {}  # a message's facts are one object again, by which columns know it
    heads = _head_of_each(runs, heads) if data.startswith(_HEAD_OF_RUN) else list(heads)
    return broker, list(runs), list(map(same.setdefault, facts, facts)), heads, weights


def _facts_at(different: Sequence[Any], steps: bytes) -> list[Any]:
    places = np.cumsum(np.frombuffer(steps, STEPS), dtype=np.int64)
    if len(places) and places.min() < 0:
        raise ValueError("a step leads before the first message")
    return [different[place] for place in places.tolist()]


def _head_of_each(runs: Sequence[Any], heads: Sequence[bytes]) -> list[bytes]:
    """Return a head for each message that was enqueued, from one for each run of them, if there are any."""
    counts = [count for kind, count in zip(runs[1::RUN_FIELDS], runs[6::RUN_FIELDS], strict=True) if kind == ENQUEUE]
    return [head for head, count in zip(heads, counts, strict=False) for _ in range(count)]


def _plain(data: bytes) -> bytes:
    if not data.startswith((MAGIC, _OWN_FACTS, _HEAD_OF_RUN, _MARSHALLED)) or len(data) < _HEADER:
        raise ValueError(f"it begins with {data[: len(MAGIC)]!r}")
    [length] = LENGTH.unpack_from(data, len(MAGIC))
    if length > MAX_BYTES:
        raise ValueError(f"its length of {length} bytes exceeds the limit of {MAX_BYTES}")
    plain: bytes = pa.decompress(data[_HEADER:], length, _CODEC, asbytes=True)
    return plain
