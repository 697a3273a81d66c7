"""The manifest of a backup: what is in the file, of which broker, and when it was made. Pure.

It is written last, so a file without one is incomplete.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from brokerapp.errors import BackupRefused

#: The format of backups: raised when an older version could not restore them any more.
FORMAT = 1
#: The name of the manifest in the file.
NAME = "manifest.json"
#: Bytes that a manifest may have: lists of files are parts of their own.
MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One part of a backup, as it stands in the file."""

    name: str
    bytes: int
    sha256: str
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """The snapshot of one server, and the shards of the broker that are in it."""

    part: str
    shards: tuple[int, ...]
    database: int  #: of the server, in which the keys are
    server: str  #: version of the server, as it calls itself
    life: str  #: of the server, see store/functions/history.lua
    offset: int  #: of the server's replication, at which the snapshot was taken
    epoch: int  #: of the broker's members
    changes: int  #: that the store had counted, at least
    seq: int  #: the last sequence number, at least
    format: int  #: of the store


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """Describes a backup."""

    broker: str
    host: str
    made: str  #: when the snapshot of the stores was taken, ISO 8601 in UTC
    sluice: str  #: version that made it
    stores: tuple[StoreEntry, ...] = ()
    parts: tuple[PartEntry, ...] = ()
    encryption: dict[str, Any] | None = None  #: parameters of the key, see encryption.py; None: it is not encrypted
    left_out: tuple[str, ...] = ()  #: what is not in it, as sentences
    format: int = FORMAT
    facts: dict[str, Any] = field(default_factory=dict)  #: what the parts need to be restored, by part

    def part(self, name: str) -> PartEntry | None:
        """Return the part of this name; None where there is none."""
        return next((each for each in self.parts if each.name == name), None)

    @property
    def shards(self) -> tuple[int, ...]:
        """Return the numbers of the broker's shards."""
        return tuple(sorted(number for each in self.stores for number in each.shards))

    def to_bytes(self, seal: Callable[[bytes], str]) -> bytes:
        """Return the manifest as JSON, with its own checksum and its seal."""
        content = asdict(self)
        canonical = _canonical(content)
        document = {"sha256": _digest(canonical), "seal": seal(canonical), "manifest": content}
        return json.dumps(document, indent=1).encode()


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest as it was found in a file."""

    manifest: BackupManifest
    canonical: bytes  #: of which the seal was made
    seal: str  #: "" in backups that are not encrypted


def read_manifest(data: bytes) -> StoredManifest:
    """Read a manifest. Raises BackupRefused for one that is damaged, or of a newer format."""
    try:
        document = json.loads(data)
        content = document["manifest"]
        found = int(content["format"])
    except (ValueError, KeyError, TypeError):
        raise BackupRefused("the backup is damaged: its manifest cannot be read") from None
    if found > FORMAT:
        raise BackupRefused(
            f"the backup has format {found}, and this version of Sluice supports formats up to {FORMAT}: "
            f"restore it with Sluice {content.get('sluice', 'of a later version')}"
        )
    canonical = _canonical(content)
    if document.get("sha256") != _digest(canonical):
        raise BackupRefused("the backup is damaged: the checksum of its manifest differs")
    stores = tuple(StoreEntry(**{**each, "shards": tuple(each["shards"])}) for each in content["stores"])
    parts = tuple(PartEntry(**each) for each in content["parts"])
    manifest = BackupManifest(**{**content, "stores": stores, "parts": parts, "left_out": tuple(content["left_out"])})
    return StoredManifest(manifest, canonical, str(document.get("seal", "")))


def _digest(canonical: bytes) -> str:
    return hashlib.sha256(canonical).hexdigest()


def _canonical(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
