"""Back up what was recorded: the archive, its tables of measures, and results of analyses.

A backup always lists the files of the archive, with their sizes and checksums as the archive's manifests have them. The
files themselves are in it when they are asked for. They are read after the snapshots of the stores: what is archived
later than these is not in the trace stream of the restored store, which goes on where the archive ends.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import quote

from analytics.archive import manifest
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.read_locks import read_lock
from analytics.rollups.store import NAME as ROLLUPS
from brokerapp.backup.container import BackupReader, BackupWriter, PartWriter
from brokerapp.errors import BackupRefused
from brokerapp.system.environment import Environment
from console.backups.database import copy_sqlite

#: Parts of a backup: the list of the archive's files, and the files.
LIST, FILES = "archive.jsonl", "recorded.tar"
#: The file that a restore writes about files that are missing.
MISSING = "archive-missing.txt"
_COMMIT = "_commit.json"
_MANIFESTS = manifest.FOLDER


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file of the archive as its manifest has it."""

    path: str  #: within the folder of the archive
    bytes: int
    crc32: int


def add_recorded_traffic(writer: BackupWriter, environment: Environment, with_files: bool) -> list[str]:
    """Add the list of the archive's files, and the files if asked for; return sentences about what was left out."""
    with read_lock(environment.archive):  # compaction and retention wait
        commits = {each: _read(each / _COMMIT) for each in _brokers(environment.archive)}
        files = list(listed_files(environment.archive))
        content = "".join(json.dumps([each.path, each.bytes, each.crc32]) + "\n" for each in files)
        writer.add(LIST, content.encode())
        if with_files:
            with writer.part(FILES) as part:
                _add_files(part, environment, commits, files, writer.path.parent)
            return []
    total = sum(each.bytes for each in files)
    return [f"recorded traffic: files of the archive: {len(files):,}, bytes: {total:,}"] if files else []


def listed_files(archive: Path) -> Iterator[ArchivedFile]:
    """Yield the files that the archive should have."""
    for broker in _brokers(archive):
        for hour in manifest.hours_of(broker):
            entries = manifest.read(hour) or {}
            present = {each.name for each in hour.glob("*.parquet")} if hour.is_dir() else set()
            for name, entry in manifest.expected_files(entries, present).items():
                yield ArchivedFile(str((hour / name).relative_to(archive)), entry.bytes, entry.crc32)


def _brokers(archive: Path) -> list[Path]:
    return [each.folder for each in BrokerArchive.archives_in(archive)]


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _add_files(
    part: PartWriter, environment: Environment, commits: dict[Path, bytes | None], files: list[ArchivedFile], near: Path
) -> None:
    wanted = {environment.archive / each.path for each in files}
    with tarfile.open(fileobj=cast(BinaryIO, part), mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for broker, commit in commits.items():
            if commit is not None:
                info = tarfile.TarInfo(_name(broker / _COMMIT, environment))
                info.size, info.mode = len(commit), 0o600
                archive.addfile(info, io.BytesIO(commit))
            _add_rollups(archive, broker / ROLLUPS, environment, near)
        for path in _files_below(environment.archive):
            is_data = path.suffix == ".parquet"
            if path.name == _COMMIT or path.name.startswith(ROLLUPS) or (is_data and path not in wanted):
                continue
            _add_file(archive, path, environment)
        for folder in (environment.tables, environment.results):
            for path in _files_below(folder):
                _add_file(archive, path, environment)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder; what is hidden is being written."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not any(
            each.startswith(".") for each in path.relative_to(folder).parts
        ):  # fmt: skip
            yield path


def _add_file(archive: tarfile.TarFile, path: Path, environment: Environment) -> None:
    try:
        with path.open("rb") as file:
            info = archive.gettarinfo(arcname=_name(path, environment), fileobj=file)
            archive.addfile(info, file)
    except FileNotFoundError:
        return  # it was replaced, or removed as too old, meanwhile


def _add_rollups(archive: tarfile.TarFile, path: Path, environment: Environment, near: Path) -> None:
    """Add the counts by destination and time, a database that the archiver writes to."""
    if not path.exists():
        return
    with tempfile.TemporaryDirectory(prefix=".rollups.", dir=near) as folder:
        copy = Path(folder) / ROLLUPS
        copy_sqlite(path, copy)
        archive.add(copy, arcname=_name(path, environment))


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
