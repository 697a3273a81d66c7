"""Index the files of an archive by message: a Bloom filter for each data file, in one index file for each hour.

    archive/broker=B/day=YYYY-MM-DD/hour=HH/_keys2    records: length of the name, bits, name, filter, CRC of these

The first version, `_keys`, hashes keys differently: it is read, and replaced when the hour is compacted.

The keys of a file are its message ids and, of sent messages, the values of indexed properties. With sixteen bits a key
and eight probes, one file in two thousand is a false positive. A file that is not in the index (its writer was killed,
or the file is older than the index) may hold anything.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerapp.tracing.schema import ENQUEUE, KINDS

NAME, NAME_V1 = "_keys2", "_keys"
BITS, PROBES = 16, 8
#: Longest property value that is indexed.
MAX_VALUE = 200
_HEAD, _CRC = struct.Struct("<HI"), struct.Struct("<I")
#: Texts that are hashed together: each of their bytes takes eight, several times over, which fits in the CPU's caches.
CHUNK_TEXTS = 8192
#: Odd numbers without a pattern: the factor between the weights of successive bytes, and the one that mixes the sum.
_FACTOR, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


class IndexKey(NamedTuple):
    """A key that is searched for: a message id or, with a name, the value of that property."""

    text: str
    name: str = ""


def hash_keys(texts: pa.StringArray, name: str = "") -> np.ndarray:
    """Return the 64-bit hashes of keys: values of one property, or message ids; none of them empty."""
    parts = [_hash_chunk(texts[start : start + CHUNK_TEXTS], name) for start in range(0, len(texts), CHUNK_TEXTS)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hash_chunk(texts: pa.StringArray, name: str) -> np.ndarray:
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    lengths, starts = np.diff(offsets), offsets[:-1] - offsets[0]
    powers = np.cumprod(np.full(lengths.max(), _FACTOR))
    factors = powers[np.arange(len(data)) - np.repeat(starts, lengths)]
    sums = np.add.reduceat(factors * (data.astype(np.uint64) + np.uint64(1)), starts)
    return _mix_bits(_mix_bits(sums) + np.uint64(zlib.crc32(name.encode())))


def _mix_bits(numbers: np.ndarray) -> np.ndarray:
    """Mix the bits of each number, as sums differ mostly in their high bits."""
    mixed = (numbers ^ numbers >> _HALF) * _MIX
    return mixed ^ mixed >> _HALF


def _hash_key(key: IndexKey) -> int:
    return int(hash_keys(pa.array([key.text]), key.name)[0]) if key.text else 0


def _hash_key_v1(key: IndexKey) -> int:
    return int.from_bytes(blake2b(f"{key.name}\0{key.text}".encode(), digest_size=8).digest(), "little")


_VERSIONS = {NAME: _hash_key, NAME_V1: _hash_key_v1}


def event_keys(events: pa.Table, properties: Iterable[str]) -> np.ndarray:
    """Return the hashes of the keys of these events, each once."""
    found = [hash_keys(_distinct(events["msg_id"]))]
    sent = events.filter(pc.equal(events["kind"].cast(pa.string()), KINDS[ENQUEUE]))["ps"] if properties else None
    for name in properties:
        values = _distinct(pc.map_lookup(sent, pa.scalar(name), "first"))
        found.append(hash_keys(values.filter(pc.less_equal(pc.utf8_length(values), MAX_VALUE)), name))
    return np.concatenate(found)


def _distinct(texts: pa.ChunkedArray) -> pa.StringArray:
    """Return the distinct texts of a column, without null and the empty text."""
    different = pc.unique(texts)
    return different.filter(pc.greater(pc.binary_length(different), 0))


def add(folder: Path, file: str, keys: np.ndarray) -> None:
    """Add a file of the folder. An incomplete record of a killed writer is cut off first."""
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
    """Start the index of a folder with the records of these files from the index of another folder."""
    try:
        with (source / NAME).open("rb") as index, _mapped(index) as written:
            start, parts = 0, []
            for name, _, end in _records(written):
                if name in files:
                    parts.append(written[start:end])
                start = end
    except (FileNotFoundError, ValueError):  # as below
        return
    (target / NAME).write_bytes(b"".join(parts))


def indexed_files(folder: Path) -> set[str]:
    """Return the files of the folder that are in the index of this version."""
    try:
        with (folder / NAME).open("rb") as index, _mapped(index) as written:
            return {name for name, _, _ in _records(written)}
    except (FileNotFoundError, ValueError):  # an empty file cannot be mapped
        return set()


def candidates(folder: Path, keys: Collection[IndexKey]) -> tuple[set[str], set[str]]:
    """Return the files of the folder that may hold one of the keys, and all files in the index."""
    may, known = set(), set()
    for index_name, number_of in _VERSIONS.items():
        wanted = [_probe_parameters(number_of(key)) for key in keys]
        try:
            with (folder / index_name).open("rb") as index, _mapped(index) as written:
                for name, (at, bits), _ in _records(written):
                    known.add(name)
                    if any(_may_hold(written, at, bits, low, high) for low, high in wanted):
                        may.add(name)
        except (FileNotFoundError, ValueError):  # an empty file cannot be mapped
            pass
    return may, known


def _mapped(index: BinaryIO) -> mmap.mmap:
    return mmap.mmap(index.fileno(), 0, access=mmap.ACCESS_READ)


def _records(written: mmap.mmap) -> Iterator[tuple[str, tuple[int, int], int]]:
    """Yield name, offset and bits of the filter, and end of each record, up to an incomplete one."""
    at, size = 0, len(written)
    while at + _HEAD.size <= size:
        length, bits = _HEAD.unpack_from(written, at)
        start = at + _HEAD.size + length
        end = start + bits // 8
        if end + _CRC.size > size:
            return
        yield bytes(written[at + _HEAD.size : start]).decode(errors="replace"), (start, bits), end + _CRC.size
        at = end + _CRC.size


def _probe_parameters(key: int) -> tuple[int, int]:
    return key & 0xFFFFFFFF, key >> 32 | 1


def _may_hold(written: mmap.mmap, at: int, bits: int, low: int, high: int) -> bool:
    for probe in range(PROBES):
        place = (low + probe * high) % bits
        if not written[at + place // 8] & 0x80 >> place % 8:
            return False
    return True


def _filter(keys: np.ndarray) -> tuple[int, bytes]:
    bits = max(64, -(-len(keys) * BITS // 8) * 8)
    flags = np.zeros(bits, np.uint8)
    low, high = keys & np.uint64(0xFFFFFFFF), keys >> _HALF | np.uint64(1)
    for probe in range(PROBES):
        flags[(low + np.uint64(probe) * high) % np.uint64(bits)] = 1
    return bits, np.packbits(flags).tobytes()
