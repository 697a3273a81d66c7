"""Encodes batches of trace events as bytes. Readers decode them to columns (decoding.py).

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
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Any

import msgpack
import numpy as np
import zstandard

MAGIC = b"SLT5"
LENGTH = struct.Struct("<I")  #: of the packed batch, before it is compressed
#: How steps are written.
STEPS = "<i4"
#: Values of runs, and heads, that are packed without a pause, in about half a millisecond.
STEP_VALUES, STEP_HEADS = 7_000, 250
#: A client may send any text, also half of a character.
TEXTS = {"unicode_errors": "surrogatepass"}
_COMPRESSION_LEVEL = 1


def encode(
    broker: str, runs: list[Any], facts: list[tuple[str, int, int]], heads: list[bytes], weights: dict[str, int]
) -> bytes:
    """Encode a batch: references for each run, the facts of its messages, and a head of each message enqueued, or none.

    See recorder.py.
    """
    steps = encode_in_steps(broker, runs, facts, heads, weights)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            encoded: bytes = done.value
            return encoded


def encode_in_steps(
    broker: str, runs: list[Any], facts: list[tuple[str, int, int]], heads: list[bytes], weights: dict[str, int]
) -> Generator[None, None, bytes]:
    """Encode a batch as `encode` does, with a pause every half a millisecond; return its bytes."""
    places, different = different_facts(facts)
    steps = np.diff(places, prepend=0).astype(STEPS).tobytes()
    yield
    # A compressor of its own: it releases Python's lock, and two threads that share one end the process.
    compressing = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compressobj()
    packer, size, compressed = msgpack.Packer(**TEXTS), 0, []
    parts = (
        (packer.pack_array_header(6), packer.pack(broker)),
        _packed_list(packer, runs, STEP_VALUES),
        (packer.pack(different), packer.pack(steps)),
        _packed_list(packer, heads, STEP_HEADS),
        (packer.pack(weights),),
    )
    for part in chain.from_iterable(parts):
        compressed.append(compressing.compress(part))
        size += len(part)
        yield
    return b"".join((MAGIC, LENGTH.pack(size), *compressed, compressing.flush()))


def _packed_list(packer: msgpack.Packer, values: list[Any], step: int) -> Iterator[bytes]:
    """Pack a list in parts of so many values."""
    yield packer.pack_array_header(len(values))
    for first in range(0, len(values), step):
        part = values[first : first + step]
        yield packer.pack(part)[len(packer.pack_array_header(len(part))) :]


def different_facts(facts: Sequence[tuple[str, int, int]]) -> tuple[np.ndarray, list[tuple[str, int, int]]]:
    """Return for each of the facts its index among the distinct objects, and these."""
    # Their addresses, as an array of objects holds them: asking each for its id took four times as long.
    objects = np.frombuffer(np.fromiter(facts, object, len(facts)), np.uintp)
    _, first, places = np.unique(objects, return_index=True, return_inverse=True)
    return places, [facts[each] for each in first.tolist()]
