"""Encode what the shards other than the coordinator are to do of a write, as the coordinator keeps it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from brokerapp.errors import BrokerError
from brokerapp.model.message import Message
from brokerapp.store import CopyRow, SettledEntry

#: Version of the encoding, its first byte.
VERSION = 1
_LENGTH = struct.Struct(">I")


def intent_id(session: str, number: int) -> str:
    """Return the id of an intent of a node."""
    return f"{session}-{number}"


def owner_of(intent: str) -> str:
    """Return the session of the node that made an intent."""
    return intent.rpartition("-")[0]


def number_of(intent: str) -> int:
    """Return which intent of its node it is."""
    return int(intent.rpartition("-")[2])


@dataclass(slots=True)
class StoredSettle:
    """An entry that is to be removed from its log, as far as the store needs to know it."""

    log: str
    seq: int
    payload: int
    size: int
    message: Message


@dataclass(slots=True)
class ShardPart:
    """What one shard is to do of a write."""

    shard: int
    appends: Sequence[tuple[bytes, Sequence[CopyRow]]]
    settles: Sequence[SettledEntry]
    dedup_key: str = ""  #: by which its messages are recognised when another broker or a client sends them again


def encode_parts(parts: Sequence[ShardPart]) -> bytes:
    """Return the parts as bytes: a version, the length of a description in JSON, that, and the stored messages."""
    described = [
        [
            part.shard,
            [[len(stored), rows] for stored, rows in part.appends],
            [[each.log, each.seq, each.payload, each.size, each.message.persistent] for each in part.settles],
            part.dedup_key,
        ]
        for part in parts
    ]
    head = json.dumps(described, separators=(",", ":")).encode()
    messages = b"".join(stored for part in parts for stored, _ in part.appends)
    return b"".join((bytes([VERSION]), _LENGTH.pack(len(head)), head, messages))


def decode_parts(content: bytes) -> list[ShardPart]:
    """Return the parts that these bytes describe. Raises BrokerError for those of a version that is not known."""
    if content[:1] != bytes([VERSION]):
        raise BrokerError(f"an intent of version {content[0] if content else None} is not known: upgrade this node")
    [length] = _LENGTH.unpack_from(content, 1)
    at = 1 + _LENGTH.size
    described, at = json.loads(content[at : at + length]), at + length
    parts = []
    for shard, appends, settles, dedup_key in described:
        messages = []
        for size, rows in appends:
            messages.append((content[at : at + size], [tuple(row) for row in rows]))
            at += size
        entries = [
            StoredSettle(log, seq, payload, size, _PERSISTENT if persistent else _NON_PERSISTENT)
            for log, seq, payload, size, persistent in settles
        ]
        parts.append(ShardPart(shard, messages, entries, dedup_key))
    return parts


#: Stand for messages of which the store asks only whether they are persistent.
_PERSISTENT = Message("", b"", b"", persistent=True)
_NON_PERSISTENT = Message("", b"", b"", persistent=False)
