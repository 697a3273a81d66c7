"""Write and read the file of a backup: a tar archive of parts, with the manifest at its end.

It is written under a temporary name, synced and renamed, so it is there as a whole or not at all. A part is written as
it comes; its size is put into its header afterwards.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from brokerapp.backup import manifest
from brokerapp.backup.encryption import PartDecryptor, PartEncryptor, PassphraseKey
from brokerapp.backup.manifest import BackupManifest, PartEntry, read_manifest
from brokerapp.errors import BackupRefused
from brokerapp.system import atomic_files

#: Bytes that are read or written at once.
BLOCK_BYTES = 1024 * 1024
#: Seconds since the last write after which a temporary file that nobody holds is removed. Locks tell nothing of other
#: machines on some shares, but a backup that runs writes more often: a store begins its snapshot within 10 minutes.
LEFTOVER_SECONDS = 3600.0
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")

Progress = Callable[[str], None]


class PartWriter:
    """Writes the bytes of one part."""

    def __init__(self, file: BinaryIO, encryptor: PartEncryptor | None) -> None:
        self._file, self._encryptor, self._digest = file, encryptor, hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        """Write bytes; return how many."""
        self._put(self._encryptor.update(data) if self._encryptor else data)
        return len(data)

    def finish_entry(self, name: str) -> PartEntry:
        """Write what is held of them, and describe what is in the file."""
        if self._encryptor:
            self._put(self._encryptor.finish())
        return PartEntry(name, self.bytes, self._digest.hexdigest(), self._encryptor is not None)

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.bytes += len(data)


class BackupWriter:
    """Writes a backup. Leaves nothing unless `finish` was called. Raises OSError, BackupRefused."""

    def __init__(self, path: Path, key: PassphraseKey | None) -> None:
        self.path, self._key = path, key
        self._temporary = temporary_beside(path)
        self._parts: list[PartEntry] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self.path.exists():
            raise BackupRefused(f"{self.path} exists: choose another name, or delete it")
        if not self.path.parent.is_dir():
            raise BackupRefused(f"folder {self.path.parent} not found: create it, or choose another one")
        _remove_leftovers(self.path.parent)
        self._file = create_temporary(self._temporary)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a full disk takes nothing of what is buffered either
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    @contextmanager
    def part(self, name: str) -> Iterator[PartWriter]:
        """Add a part: yield what writes it."""
        with self._member(name) as entry:
            writer = self._part_writer(name, self._file)
            yield writer
            entry.append(writer.finish_entry(name))

    @contextmanager
    def part_beside(self, name: str) -> Iterator[PartWriter]:
        """Add a part, while others are written, too: it goes into a temporary file first, as it will stand here."""
        path = temporary_beside(self.path)
        with create_temporary(path) as file:
            try:
                writer = self._part_writer(name, file)
                yield writer
                found = writer.finish_entry(name)
                file.seek(0)
                with self._lock, self._member(name) as entry:
                    shutil.copyfileobj(file, self._file, BLOCK_BYTES)
                    entry.append(found)
            finally:
                path.unlink(missing_ok=True)

    def _part_writer(self, name: str, file: BinaryIO) -> PartWriter:
        return PartWriter(file, self._key.encryptor(name) if self._key else None)

    @contextmanager
    def _member(self, name: str) -> Iterator[list[PartEntry]]:
        """Write what is before and behind the content of a part; the context says at its end what that was."""
        begin = self._file.tell()
        self._file.write(bytes(tarfile.BLOCKSIZE))
        written: list[PartEntry] = []
        yield written
        [entry] = written
        self._file.write(bytes(-entry.bytes % tarfile.BLOCKSIZE))
        end = self._file.tell()
        self._file.seek(begin)
        self._file.write(_header(name, entry.bytes))
        self._file.seek(end)
        self._parts.append(entry)

    def add(self, name: str, data: bytes) -> None:
        """Add a part of these bytes."""
        with self.part(name) as writer:
            writer.write(data)

    def add_file(self, name: str, source: BinaryIO) -> None:
        """Add a part with the content of an open file."""
        with self.part(name) as writer:
            while block := source.read(BLOCK_BYTES):
                writer.write(block)

    def finish(self, found: BackupManifest) -> BackupManifest:
        """Add the manifest, with the parts written, and give the file its name. Return the manifest."""
        complete = replace(
            found, parts=tuple(self._parts), encryption=self._key.parameters if self._key is not None else None
        )
        data = complete.to_bytes(self._key.seal if self._key is not None else lambda _: "")
        self._file.write(_header(manifest.NAME, len(data)) + data + bytes(-len(data) % tarfile.BLOCKSIZE))
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        self._file.flush()
        os.fsync(self._file.fileno())
        if self.path.exists():
            raise BackupRefused(f"{self.path} exists meanwhile: choose another name")
        self._temporary.rename(self.path)
        atomic_files.sync(self.path.parent)
        return complete


# -- temporary files


def temporary_beside(path: Path) -> Path:
    """Return a new name beside a backup, for what becomes of it or a part of it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def create_temporary(path: Path) -> BinaryIO:
    """Create such a file, for its owner only, and lock it: that tells it from one that a killed process left."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.fdopen(descriptor, "w+b", buffering=BLOCK_BYTES)


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of backups that were killed."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):  # it went meanwhile, or is somebody else's
            if _TEMPORARY.fullmatch(path.name) and time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                with path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, int(time.time())
    header = info.tobuf(tarfile.GNU_FORMAT)
    assert len(header) == tarfile.BLOCKSIZE, f"{name} is too long for one header"
    return header


class BackupReader:
    """Reads a backup. Raises BackupRefused for a file that is damaged, incomplete or none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._key: PassphraseKey | None = None
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise BackupRefused(f"backup {path} cannot be read: {error.strerror}") from None
        try:
            self._members = self._read_members()
            self._stored_manifest = read_manifest(self._read_small(manifest.NAME))
        except BaseException:
            self._file.close()
            raise
        self.manifest = self._stored_manifest.manifest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def unlock(self, passphrase: str) -> None:
        """Take the passphrase of an encrypted backup. Raises BackupRefused for a wrong one, or a changed manifest."""
        if self.manifest.encryption is None:
            return
        key = PassphraseKey.open(passphrase, self.manifest.encryption)
        if not hmac.compare_digest(self._stored_manifest.seal, key.seal(self._stored_manifest.canonical)):
            raise BackupRefused(f"{self.path} was changed: its manifest was not made with this passphrase")
        self._key = key

    def verify(self, report: Progress) -> None:
        """Compare size and checksum of each part with the manifest.

        All parts of an encrypted backup are encrypted: one that is not was put in by somebody without the passphrase.
        """
        for part in self.manifest.parts:
            if part.encrypted != (self.manifest.encryption is not None):
                raise BackupRefused(f"{self.path} was changed: its part {part.name} is not encrypted as the others are")
            digest, size = hashlib.sha256(), 0
            for block in self._stored(part):
                digest.update(block)
                size += len(block)
            if size != part.bytes or digest.hexdigest() != part.sha256:
                raise BackupRefused(f"{self.path} is damaged: the checksum of its part {part.name} differs")
        if self._key is not None and not self._key.seals:
            report(
                "its manifest is not authenticated, as earlier versions made it: check who else could write to the file"
            )
        report(f"{self.path} is intact: {len(self.manifest.parts)} parts")

    def has(self, name: str) -> bool:
        """Return whether there is a part of this name."""
        return self.manifest.part(name) is not None

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a part, decrypted."""
        part = self.manifest.part(name)
        if part is None:
            raise BackupRefused(f"{self.path} has no part {name}")
        if not part.encrypted:
            yield from self._stored(part)
            return
        assert self._key is not None, "unlock it first"
        decryptor: PartDecryptor = self._key.decryptor(name)
        for block in self._stored(part):
            yield decryptor.update(block)
        yield decryptor.finish()

    def read(self, name: str) -> bytes:
        """Return the content of a small part."""
        return b"".join(self.blocks(name))

    def extract(self, name: str, path: Path) -> None:
        """Write the content of a part to a new file of its owner only, and sync it."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for block in self.blocks(name):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

    def _read_members(self) -> dict[str, tarfile.TarInfo]:
        try:
            with tarfile.open(fileobj=self._file, mode="r:") as archive:
                members = {each.name: each for each in archive.getmembers()}
        except (tarfile.TarError, EOFError, OSError):
            raise BackupRefused(f"{self.path} is damaged, or not a backup of Sluice") from None
        if manifest.NAME not in members:
            raise BackupRefused(f"{self.path} is incomplete: it has no manifest, which is written last")
        return members

    def _read_small(self, name: str) -> bytes:
        member = self._members[name]
        if member.size > manifest.MAX_BYTES:
            raise BackupRefused(f"{self.path} is damaged: its {name} has {member.size:,} bytes")
        self._file.seek(member.offset_data)
        return self._file.read(member.size)

    def _stored(self, part: PartEntry) -> Iterator[bytes]:
        """Yield a part as it stands in the file."""
        member = self._members.get(part.name)
        if member is None:
            raise BackupRefused(f"{self.path} is damaged: its part {part.name} is missing")
        self._file.seek(member.offset_data)
        left = member.size
        while left:
            block = self._file.read(min(BLOCK_BYTES, left))
            if not block:
                raise BackupRefused(f"{self.path} is damaged: its part {part.name} is cut off")
            left -= len(block)
            yield block
