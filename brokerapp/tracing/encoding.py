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
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import numpy as np
import zstandard

MAGIC = b"SLT5"
LENGTH = struct.Struct("<I")  #: of the packed batch, before it is compressed
#: How steps are written.
STEPS = "<i4"
#: Values of runs, and heads, in one packed part.
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
    compressor = BatchCompressor()
    for part in packed_parts(broker, runs, facts, heads, weights):
        compressor.add(part)
    return compressor.finish()


def packed_parts(
    broker: str, runs: list[Any], facts: list[tuple[str, int, int]], heads: list[bytes], weights: dict[str, int]
) -> Iterator[bytes]:
    """Pack a batch in short parts: all at once would stop the event loop for milliseconds."""
    places, different = different_facts(facts)
    steps = np.diff(places, prepend=0).astype(STEPS).tobytes()
    packer = msgpack.Packer(**TEXTS)
    yield packer.pack_array_header(6) + packer.pack(broker)
    yield from _packed_list(packer, runs, STEP_VALUES)
    yield packer.pack(different) + packer.pack(steps)
    yield from _packed_list(packer, heads, STEP_HEADS)
    yield packer.pack(weights)


class BatchCompressor:
    """Compresses the packed parts of one batch.

    Each has a zstd compressor of its own: that releases Python's lock, and two threads that share one end the process.
    """

    def __init__(self) -> None:
        self._compressing = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compressobj()
        self._size, self._compressed = 0, list[bytes]()

    def add(self, part: bytes) -> None:
        """Compress the next part."""
        self._compressed.append(self._compressing.compress(part))
        self._size += len(part)

    def finish(self) -> bytes:
        """Return the encoded batch."""
        return b"".join((MAGIC, LENGTH.pack(self._size), *self._compressed, self._compressing.flush()))


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
