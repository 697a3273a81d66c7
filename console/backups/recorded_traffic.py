"""Back up what was recorded: the archive, its tables of measures, and results of analyses.

A backup always lists the files of the archive, with their sizes and checksums as the archive's manifests have them. The
files themselves are in it when they are asked for. They are read after the snapshots of the stores: what is archived
later than these is not in the trace stream of the restored store, which goes on where the archive ends.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import quote

from analytics.archive import bloom_index, manifest
from analytics.archive.broker_archive import AS_OF, BrokerArchive
from analytics.archive.data_files import data_files, position_in
from analytics.archive.read_locks import read_lock
from analytics.archive.stream_ids import position_of
from analytics.rollups.store import NAME as ROLLUPS
from brokerapp.backup.container import BackupReader, BackupWriter, PartWriter
from brokerapp.errors import BackupRefused
from brokerapp.system.environment import Environment
from console.backups.database import sqlite_copy
from console.ui.formatting.number_format import format_bytes

#: Parts of a backup: the list of the archive's files, and the files.
LIST, FILES = "archive.jsonl", "recorded.tar"
#: The file that a restore writes about files that are missing.
MISSING = "archive-missing.txt"
_COMMIT = "_commit.json"
_INDEXES = (bloom_index.NAME, bloom_index.NAME_V1)


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file of the archive as its manifest has it."""

    path: str  #: within the folder of the archive
    bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class _ArchiveView:
    """The archive of one broker as of one commit record, whatever the archiver appends meanwhile."""

    archive: BrokerArchive
    records: dict[Path, bytes]  #: what is in the files that each append changes: commit record, freshness, manifests
    files: dict[Path, ArchivedFile]  #: the data files up to the commit
    staged: dict[Path, Path]  #: of those that the commit names and that may not have their final names yet


def _view(archive: BrokerArchive, root: Path) -> _ArchiveView:
    """Read which files an archive has up to its commit record; hold the read lock.

    The record is read first, and what the manifests list beyond it is left out: the restored archiver appends it again.
    """
    records = {path: _read(path) for path in (archive.folder / AS_OF, archive.folder / _COMMIT)}
    commit = records[archive.folder / _COMMIT]
    fields = json.loads(commit) if commit is not None else None
    last = position_of(fields["offset"]) if fields else None
    files: dict[Path, ArchivedFile] = {}
    for hour in manifest.hours_of(archive.folder):
        present = {each.path.name for each in data_files(hour)} if hour.is_dir() else set()
        entries = manifest.read(hour)
        if entries is None:  # of an earlier version, or the commit that begins it is not listed yet: all files count
            files |= {hour / name: _as_listed(hour / name, hour / name, root) for name in present if _is_in(name, last)}
            continue
        entries = {name: each for name, each in entries.items() if _is_in(name, last)}
        records[manifest.path_of(hour)] = manifest.content_of(entries.values())
        for name, entry in manifest.expected_files(entries, present).items():
            files[hour / name] = ArchivedFile(str((hour / name).relative_to(root)), entry.bytes, entry.crc32)
    staged = {archive.folder / path: archive.staged(path) for path in (fields["files"] if fields else ())}
    for final, hidden in staged.items():
        if final not in files and (found := next((each for each in (final, hidden, final) if each.exists()), None)):
            files[final] = _as_listed(final, found, root)
    return _ArchiveView(archive, {path: data for path, data in records.items() if data is not None}, files, staged)


def _is_in(name: str, last: int | None) -> bool:
    """Return whether a data file has entries of the stream up to a position only."""
    return last is None or (position_in(name) or 0) <= last


def _as_listed(path: Path, found: Path, root: Path) -> ArchivedFile:
    """Return what a manifest would list about a data file that is in none."""
    return ArchivedFile(str(path.relative_to(root)), found.stat().st_size, manifest.crc32_of(found))


def add_recorded_traffic(writer: BackupWriter, environment: Environment, with_files: bool) -> list[str]:
    """Add the list of the archive's files, and the files if asked for; return sentences about what was left out."""
    root = environment.archive
    with read_lock(root):  # compaction and retention wait
        views = [_view(each, root) for each in BrokerArchive.archives_in(root)]
        files = [each for view in views for each in view.files.values()]
        content = "".join(json.dumps([each.path, each.bytes, each.crc32]) + "\n" for each in files)
        writer.add(LIST, content.encode())
        if with_files:
            with writer.part(FILES) as part:
                lacking = _add_files(part, environment, views, writer.path)
            return [f"files that the archive has lost: {len(lacking):,}"] if lacking else []
    total = sum(each.bytes for each in files)
    return [f"recorded traffic ({len(files):,} files of the archive, {format_bytes(total)})"] if files else []


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _add_files(part: PartWriter, environment: Environment, views: list[_ArchiveView], target: Path) -> list[Path]:
    """Add the files of archive, tables and results; return those of the archive that are missing."""
    # Hard links are dereferenced: each name has its content, wherever the files are restored.
    with tarfile.open(
        fileobj=cast(BinaryIO, part), mode="w|", format=tarfile.PAX_FORMAT, dereference=True
    ) as archive:  # fmt: skip
        for view in views:
            for path, content in view.records.items():
                info = tarfile.TarInfo(_name(path, environment))
                info.size, info.mode = len(content), 0o600
                archive.addfile(info, io.BytesIO(content))
            _add_rollups(archive, view.archive.folder / ROLLUPS, environment, target)
        lacking = [path for view in views for path in view.files if not _add_data(archive, path, view, environment)]
        for path in _files_below(environment.archive):
            is_of_view = path.suffix == ".parquet" or path.parent.name == manifest.FOLDER
            if is_of_view or path.name in (AS_OF, _COMMIT) or path.name.startswith(ROLLUPS):
                continue
            view = next((each for each in views if path.is_relative_to(each.archive.folder)), None)
            if view is None or path.name not in _INDEXES:
                _add_file(archive, path, environment)
            else:
                _add_index(archive, path, view, environment)
        for folder in (environment.tables, environment.results):
            for path in _files_below(folder):
                _add_file(archive, path, environment)
    return lacking


def _add_data(archive: tarfile.TarFile, path: Path, view: _ArchiveView, environment: Environment) -> bool:
    """Add a data file, under its final name; return whether it exists."""
    staged = view.staged.get(path, path)
    return any(_add_file(archive, each, environment, path) for each in (path, staged, path))


def _add_index(archive: tarfile.TarFile, path: Path, view: _ArchiveView, environment: Environment) -> None:
    """Add the index of an hour, unless it may know files beyond the commit, whose names the restored archiver reuses.

    Files that are in no index are found all the same.
    """
    content = _read(path)
    if content is not None and all(each.path in view.files for each in data_files(path.parent)):
        info = tarfile.TarInfo(_name(path, environment))
        info.size, info.mode = len(content), 0o600
        archive.addfile(info, io.BytesIO(content))


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, without hidden ones, which are being written, and what is removed meanwhile."""

    def check(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for parent, folders, names in os.walk(folder, onerror=check):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
            if path.is_file() and not path.is_symlink():
                yield path


def _add_file(archive: tarfile.TarFile, path: Path, environment: Environment, named: Path | None = None) -> bool:
    """Add a file, under the name of another one if given; return whether it exists."""
    try:
        with path.open("rb") as file:
            info = archive.gettarinfo(arcname=_name(named or path, environment), fileobj=file)
            archive.addfile(info, file)
    except FileNotFoundError:
        return False  # it was replaced, or removed as too old, meanwhile
    return True


def _add_rollups(archive: tarfile.TarFile, path: Path, environment: Environment, target: Path) -> None:
    """Add the counts by destination and time, a database that the archiver writes to."""
    if not path.exists():
        return
    with sqlite_copy(path, target) as copy:
        archive.addfile(archive.gettarinfo(arcname=_name(path, environment), fileobj=copy), copy)


def _name(path: Path, environment: Environment) -> str:
    return str(path.relative_to(environment.data))


# -- restore


def archived_until(reader: BackupReader, environment: Environment, broker: str) -> tuple[str, int] | None:
    """Return up to which entry of the trace stream the restored archive has events, and which one in order that is.

    The archive is that of the backup, or one that was copied into the data folder before; None without any.
    """
    name = f"broker={quote(broker, safe='')}/{_COMMIT}"
    if reader.has(FILES):
        content = _from_files(reader, f"{environment.archive.name}/{name}")
    else:
        content = _read(environment.archive / name)
    if content is None:
        return None
    commit = json.loads(content)
    return str(commit["offset"]), int(commit["ordinal"])


def check_recorded_traffic(reader: BackupReader, environment: Environment) -> None:
    """Raise BackupRefused where recorded traffic would replace an archive that was copied before."""
    if reader.has(FILES) and environment.archive.exists():
        raise BackupRefused(f"the backup holds recorded traffic, and {environment.archive} exists: remove one of them")


class _Blocks(io.RawIOBase):
    """A file of the blocks of a part."""

    def __init__(self, reader: BackupReader) -> None:
        self._blocks, self._held = reader.blocks(FILES), b""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read some bytes; 0 at the end."""
        while not self._held:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._held = block
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size


def _from_files(reader: BackupReader, name: str) -> bytes | None:
    """Return one small file of the recorded traffic; those of the archive's records come first."""
    with tarfile.open(fileobj=cast(BinaryIO, _Blocks(reader)), mode="r|") as archive:
        for member in archive:
            if member.name == name:
                found = archive.extractfile(member)
                return found.read() if found is not None else None
    return None


def restore_recorded_traffic(
    reader: BackupReader, environment: Environment, work: Path, original: str, broker: str
) -> list[str]:
    """Restore recorded traffic, and say which files of the archive are missing. Raises BackupRefused, OSError."""
    if reader.has(FILES):
        try:
            with tarfile.open(fileobj=cast(BinaryIO, _Blocks(reader)), mode="r|") as archive:
                archive.extractall(work, filter="data")
        except tarfile.TarError as error:
            raise BackupRefused(f"the backup is damaged: its recorded traffic cannot be read ({error})") from error
        if original != broker:
            _rename_broker(work / environment.archive.name, original, broker)
            _rename_broker(work / environment.tables.name, original, broker)
        return []
    missing = [each for each in _listed_in(reader) if not _is_there(environment.archive / each.path, each)]
    if not missing:
        return []
    (work / MISSING).write_text("".join(f"{each.bytes}\t{each.path}\n" for each in missing))
    total = sum(each.bytes for each in missing)
    return [
        f"recorded traffic is not in the backup: {len(missing)} files with {total:,} bytes are missing in "
        f"{environment.archive}; {MISSING} lists them"
    ]


def _rename_broker(folder: Path, original: str, broker: str) -> None:
    former = folder / f"broker={quote(original, safe='')}"
    if former.is_dir():
        former.rename(folder / f"broker={quote(broker, safe='')}")


def _listed_in(reader: BackupReader) -> Iterator[ArchivedFile]:
    if reader.has(LIST):
        for line in reader.read(LIST).splitlines():
            yield ArchivedFile(*json.loads(line))


def _is_there(path: Path, listed: ArchivedFile) -> bool:
    try:
        return path.stat().st_size == listed.bytes
    except FileNotFoundError:
        return False
