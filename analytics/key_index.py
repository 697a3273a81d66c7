"""The index of an archive: which files may hold events of a message. A Bloom filter a file, an hour in one file.

    archive/broker=B/day=YYYY-MM-DD/hour=HH/_keys    records: length of the name, bits, name, filter, CRC of all that

A file's keys are its message ids and, of what was sent, the properties chosen for it. Sixteen bits a key and eight
probes say "perhaps" of one file in two thousand that has nothing. What is not in the index (its writer was killed, or
the file is older than the index) may hold anything.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerapp.recording.schema import ENQUEUE, KINDS

NAME = "_keys"
BITS, PROBES = 16, 8
#: What a value may be long, to be a key.
MAX_VALUE = 200
_HEAD, _CRC = struct.Struct("<HI"), struct.Struct("<I")


def key_of(text: str, name: str = "") -> int:
    """The key of a message id, or of a property's value: 64 bits."""
    return int.from_bytes(blake2b(f"{name}\0{text}".encode(), digest_size=8).digest(), "little")


def keys_of(events: pa.Table, properties: Iterable[str]) -> set[int]:
    """The keys of these events."""
    keys = {key_of(id) for id in pc.unique(events["msg_id"]).to_pylist() if id}
    sent = events.filter(pc.equal(events["kind"].cast(pa.string()), KINDS[ENQUEUE]))["ps"]
    for name in properties:
        values = pc.unique(pc.map_lookup(sent, pa.scalar(name), "first")).to_pylist()
        keys.update(key_of(value, name) for value in values if value and len(value) <= MAX_VALUE)
    return keys


def add(folder: Path, file: str, keys: set[int]) -> None:
    """Add a file of the folder. What a killed writer left at the end is cut off first."""
    bits, data = _filter(keys)
    name = file.encode()
    record = _HEAD.pack(len(name), bits) + name + data
    path = folder / NAME
    with path.open("r+b" if path.exists() else "w+b") as index:
        end = 0
        if size := path.stat().st_size:
            with mmap.mmap(index.fileno(), size, access=mmap.ACCESS_READ) as written:
                end = max((ended for _, _, ended in _records(written)), default=0)
        index.seek(end)
        index.truncate()
        index.write(record + _CRC.pack(zlib.crc32(record)))


def copy(source: Path, target: Path, files: Collection[str]) -> None:
    """Begin the index of a folder with what that of another says of these files."""
    try:
        with (source / NAME).open("rb") as index, mmap.mmap(index.fileno(), 0, access=mmap.ACCESS_READ) as written:
            start, parts = 0, []
            for name, _, end in _records(written):
                if name in files:
                    parts.append(written[start:end])
                start = end
    except (FileNotFoundError, ValueError):  # as below
        return
    (target / NAME).write_bytes(b"".join(parts))


def candidates(folder: Path, keys: Iterable[int]) -> tuple[set[str], set[str]]:
    """Files of the folder that may hold one of the keys, and all that the index knows of."""
    wanted, may, known = [_split(key) for key in keys], set(), set()
    path = folder / NAME
    try:
        with path.open("rb") as index, mmap.mmap(index.fileno(), 0, access=mmap.ACCESS_READ) as written:
            for name, (at, bits), _ in _records(written):
                known.add(name)
                if any(_holds(written, at, bits, low, high) for low, high in wanted):
                    may.add(name)
    except (FileNotFoundError, ValueError):  # an empty file cannot be mapped
        pass
    return may, known


def _records(written: mmap.mmap) -> Iterator[tuple[str, tuple[int, int], int]]:
    """Name, place and bits of the filter, and end of each record, up to one that is not whole."""
    at, size = 0, len(written)
    while at + _HEAD.size <= size:
        length, bits = _HEAD.unpack_from(written, at)
        start = at + _HEAD.size + length
        end = start + bits // 8
        if end + _CRC.size > size:
            return
        yield bytes(written[at + _HEAD.size : start]).decode(errors="replace"), (start, bits), end + _CRC.size
        at = end + _CRC.size


def _split(key: int) -> tuple[int, int]:
    return key & 0xFFFFFFFF, key >> 32 | 1


def _holds(written: mmap.mmap, at: int, bits: int, low: int, high: int) -> bool:
    for probe in range(PROBES):
        place = (low + probe * high) % bits
        if not written[at + place // 8] & 0x80 >> place % 8:
            return False
    return True


def _filter(keys: set[int]) -> tuple[int, bytes]:
    bits = max(64, -(-len(keys) * BITS // 8) * 8)
    flags = np.zeros(bits, np.uint8)
    if keys:
        split = np.array([_split(key) for key in keys], np.uint64)
        for probe in range(PROBES):
            flags[(split[:, 0] + np.uint64(probe) * split[:, 1]) % np.uint64(bits)] = 1
    return bits, np.packbits(flags).tobytes()
