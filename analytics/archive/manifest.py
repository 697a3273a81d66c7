"""Read and write the manifests of an archive, which list the data files of each hour, and compare them with the files.

    archive/broker=B/_manifests/YYYY-MM-DDTHH.jsonl    a line of JSON for each file of that hour

Only the archiver writes them. A file is listed after it got its final name: until then the commit record names it
(broker_archive.py). Compaction lists the merged file, with the names of those that it replaces, before the folders are
exchanged, and removes those names afterwards: a reader that sees the folder before or after takes one or the other.
A manifest is not in its hour's folder, so that a lost folder is noticed.

Checks:

* whenever files are chosen to be read: whether each exists, and its size and time of modification, which takes
  microseconds a file. If the time differs from that in the manifest, the checksum is compared once; the outcome is
  cached for this size and time;
* when Spark fails to read: the checksums of all files of that run (run_execution.py);
* once a day: the checksum of each file, by the archiver (housekeeping.py).

An hour without a manifest was written by an earlier version: all files of its folder count, and their footers are read.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from analytics.archive.data_files import DataFile, data_files, hour_folders, position_in
from analytics.archive.footer_stats import READ_ERRORS, read_footer
from brokerapp.system import atomic_files

FOLDER = "_manifests"
#: Reasons why a file is not read.
MISSING, DAMAGED, FOREIGN = "missing", "damaged", "foreign"
NOT_OURS = "the archiver did not write it"
#: The folder of files that were moved out of the archive.
SET_ASIDE_FOLDER = "set-aside"
#: Bytes that are read at once for a checksum.
_BLOCK = 1 << 20
#: Attempts to see a manifest and its folder unchanged: each takes less than a millisecond, compaction takes seconds.
_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One data file as it was when it was written."""

    file: str
    rows: int
    bytes: int
    crc32: int
    mtime_ns: int
    first_us: int | None  #: time of its first event, microseconds since the epoch; None: unknown
    last_us: int | None
    replaces: tuple[str, ...] = ()  #: files that it was merged from, while these may still exist instead of it


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that is not read, and why."""

    hour: str  #: `day=2025-10-09/hour=08`
    file: str
    reason: str  #: MISSING, DAMAGED or FOREIGN
    detail: str
    rows: int | None = None  #: number of its events, which are missing from results; None: unknown
    first_us: int | None = None
    last_us: int | None = None

    @property
    def path(self) -> str:
        """Return the path within the folder of the broker."""
        return f"{self.hour}/{self.file}"


@dataclass(frozen=True, slots=True)
class HourInspection:
    """The files of one hour: those to be read, in the order of their events, and those set aside."""

    files: list[DataFile]
    set_aside: list[SetAside]
    rows: dict[str, int]  #: number of events of the files to be read, by name, where the manifest has it


# -- the files of manifests


def path_of(hour: Path) -> Path:
    """Return the path of the manifest of an hour's folder."""
    name = f"{hour.parent.name.removeprefix('day=')}T{hour.name.removeprefix('hour=')}.jsonl"
    return hour.parent.parent / FOLDER / name


def hours_of(broker: Path) -> list[Path]:
    """Return the folders of a broker's hours, oldest first, missing ones that have a manifest included."""
    listed = (each.stem.partition("T") for each in (broker / FOLDER).glob("*T*.jsonl"))
    named = {broker / f"day={day}" / f"hour={hour}" for day, _, hour in listed}
    return sorted({*hour_folders(broker), *named}, key=lambda each: each.parts[-2:])


def read(hour: Path) -> dict[str, ManifestEntry] | None:
    """Read the entries of an hour, by file; None without a manifest. Incomplete lines are skipped."""
    try:
        lines = path_of(hour).read_bytes().splitlines()
    except FileNotFoundError:
        return None
    found = (_entry(line) for line in lines)
    return {each.file: each for each in found if each is not None}


def _entry(line: bytes) -> ManifestEntry | None:
    try:
        fields = json.loads(line)
        return ManifestEntry(**{**fields, "replaces": tuple(fields.get("replaces", ()))})
    except (ValueError, TypeError, AttributeError):
        return None


def add(hour: Path, entries: Iterable[ManifestEntry]) -> None:
    """Append files to the manifest of an hour, after ending an incomplete last line."""
    path = path_of(hour)
    atomic_files.make_folder(path.parent)
    is_new = not path.exists()
    with path.open("ab") as file:
        file.write(b"".join([b"\n" if not is_new else b"", *map(_line, entries)]))
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        atomic_files.sync(path.parent)


def write(hour: Path, entries: Iterable[ManifestEntry]) -> None:
    """Replace the manifest of an hour atomically."""
    path = path_of(hour)
    atomic_files.make_folder(path.parent)
    atomic_files.replace(path, content_of(entries))


def content_of(entries: Iterable[ManifestEntry]) -> bytes:
    """Return the content of a manifest with these entries."""
    return b"".join(map(_line, entries))


def remove(hour: Path) -> None:
    """Forget an hour that retention removes."""
    path_of(hour).unlink(missing_ok=True)
    if path_of(hour).parent.is_dir():
        atomic_files.sync(path_of(hour).parent)


def _line(entry: ManifestEntry) -> bytes:
    fields = {name: value for name, value in asdict(entry).items() if name != "replaces" or value}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def entry_of(path: Path, name: str = "", replaces: tuple[str, ...] = ()) -> ManifestEntry:
    """Build the entry of a data file, under its final name. Raises OSError or pyarrow.ArrowException."""
    footer, found = read_footer(path), path.stat()
    return ManifestEntry(
        name or path.name, footer.rows, found.st_size, crc32_of(path), found.st_mtime_ns,
        footer.first_us, footer.last_us, replaces,
    )  # fmt: skip


def crc32_of(path: Path) -> int:
    """Return the checksum of a file's bytes."""
    crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return crc


# -- comparison with the files


def inspect(hour: Path, committed: Collection[str] = (), seam: int | None = None) -> HourInspection:
    """Compare an hour's folder with its manifest. `committed` are names of files that the commit record lists.

    With `seam` only files up to that position of the stream count. If the archiver changes the manifest meanwhile, the
    comparison is repeated.
    """
    for _ in range(_ATTEMPTS):
        before = _state(path_of(hour))
        entries = read(hour)
        present, others = _listed(hour)
        if _state(path_of(hour)) == before:
            break
    if seam is not None:
        present = {name: each for name, each in present.items() if each.last <= seam}
        entries = entries and {name: each for name, each in entries.items() if (position_in(name) or 0) <= seam}
    if entries is None:
        found = _without_manifest(hour, present)
    else:
        found = _with_manifest(hour, present, entries, committed)
    others = [SetAside(_name(hour), name, FOREIGN, NOT_OURS, 0) for name in others]
    return replace(found, set_aside=[*found.set_aside, *others])


def _listed(hour: Path) -> tuple[dict[str, DataFile], list[str]]:
    """Return the data files in a folder by name, and the names of other Parquet files."""
    try:
        present = {each.path.name: each for each in data_files(hour)}
    except FileNotFoundError:
        return {}, []
    return present, sorted(each.name for each in hour.glob("[!._]*.parquet") if each.name not in present)


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _without_manifest(hour: Path, present: dict[str, DataFile]) -> HourInspection:
    files, aside, rows = [], [], {}
    for name, file in present.items():
        try:
            rows[name] = read_footer(file.path).rows
            files.append(file)
        except FileNotFoundError:  # removed by retention meanwhile
            continue
        except (*READ_ERRORS, ValueError) as error:
            aside.append(SetAside(_name(hour), name, DAMAGED, _first_line(error)))
    return HourInspection(files, aside, rows)


def _with_manifest(
    hour: Path, present: dict[str, DataFile], entries: dict[str, ManifestEntry], committed: Collection[str]
) -> HourInspection:
    expected = expected_files(entries, present)
    files, aside, rows = [], [], {}
    for name, file in present.items():
        if name not in expected:
            if name in committed:
                files.append(file)
            else:
                aside.append(_unlisted(hour, name))
    for name, entry in expected.items():
        wrong = _reason_missing(hour, name) if name not in present else _difference(present[name].path, entry)
        if wrong is None:
            files.append(present[name])
            rows[name] = entry.rows
        else:
            aside.append(SetAside(_name(hour), name, *wrong, entry.rows, entry.first_us, entry.last_us))
    return HourInspection(sorted(files, key=lambda each: (each.last, each.path.name)), aside, rows)


def _unlisted(hour: Path, name: str) -> SetAside:
    """Describe a file that no manifest lists: an unreadable one of an earlier version, or a foreign one."""
    try:
        read_footer(hour / name)
    except (*READ_ERRORS, ValueError) as error:
        return SetAside(_name(hour), name, DAMAGED, _first_line(error))
    return SetAside(_name(hour), name, FOREIGN, NOT_OURS, 0)


def _reason_missing(hour: Path, name: str) -> tuple[str, str]:
    kept = set_aside_folder(hour) / name
    return (DAMAGED, f"it was moved to {kept}") if kept.exists() else (MISSING, "file not found")


def set_aside_folder(hour: Path) -> Path:
    """Return the folder for damaged and foreign files of an hour, outside the archive."""
    broker = hour.parent.parent
    work = broker.parent.with_name(f"{broker.parent.name}.work") / broker.name
    return work / SET_ASIDE_FOLDER / f"{hour.parent.name}.{hour.name}"


def expected_files(entries: dict[str, ManifestEntry], present: Collection[str]) -> dict[str, ManifestEntry]:
    """Return the entries of the files that should exist: either a merged file or those that it replaces."""
    merged = {name for name, each in entries.items() if each.replaces}
    done = {name for name in merged if name in present or not any(old in present for old in entries[name].replaces)}
    gone = {old for name in done for old in entries[name].replaces}
    return {name: each for name, each in entries.items() if name not in gone and (name not in merged or name in done)}


def _difference(path: Path, entry: ManifestEntry) -> tuple[str, str] | None:
    """Return how a file differs from its entry, or None; a file of unchanged size and time is not read."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return MISSING, "file not found"
    if found.st_size != entry.bytes:
        return DAMAGED, f"it has {found.st_size:,} bytes, {entry.bytes:,} were written"
    key = (str(path), found.st_size, found.st_mtime_ns, entry.crc32)
    if key in _damaged or (found.st_mtime_ns != entry.mtime_ns and not _matches(*key)):
        return DAMAGED, "its checksum differs from the one it was written with"
    return None


#: Files whose content was found damaged although they look unchanged.
_damaged: set[tuple[str, int, int, int]] = set()


@lru_cache(16_384)
def _matches(path: str, size: int, mtime_ns: int, crc32: int) -> bool:
    """Return whether a file's content has this checksum; computed once for each size and time of modification."""
    try:
        return crc32_of(Path(path)) == crc32
    except OSError:  # the disk cannot read it
        return False


def verify(hour: Path) -> bool:
    """Compare the checksums of all files of an hour; return whether one is newly found damaged."""
    entries, before = read(hour) or {}, len(_damaged)
    for file in inspect(hour).files:
        entry = entries.get(file.path.name)
        if entry is not None and not (now := _content(file.path, entry))[0]:
            _damaged.add((str(file.path), *now[1:], entry.crc32))
    return len(_damaged) > before


def _content(path: Path, entry: ManifestEntry) -> tuple[bool, int, int]:
    """Return whether the content is unchanged (or the file no longer exists), and its size and time of modification."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return True, 0, 0
    try:
        return crc32_of(path) == entry.crc32, found.st_size, found.st_mtime_ns
    except OSError:  # the disk cannot read it
        return False, found.st_size, found.st_mtime_ns


def _name(hour: Path) -> str:
    return f"{hour.parent.name}/{hour.name}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def create(hour: Path) -> None:
    """Create the manifest of an hour that an earlier version wrote, without unreadable files."""
    entries = []
    for file in data_files(hour):
        with suppress(OSError, pa.ArrowException, ValueError):
            entries.append(entry_of(file.path))
    write(hour, entries)


def list_files(hour: Path, names: Iterable[str]) -> None:
    """Add files of an hour to its manifest, if they exist and are not listed yet."""
    entries = read(hour)
    if entries is None:
        create(hour)
    elif new := [name for name in names if name not in entries and (hour / name).exists()]:
        add(hour, [entry_of(hour / name) for name in new])


def finish_replacement(hour: Path) -> None:
    """Remove from a manifest the entries of replaced files that an interrupted compaction left."""
    entries = read(hour) or {}
    if any(each.replaces for each in entries.values()):
        present, _ = _listed(hour)
        write(hour, [replace(each, replaces=()) for each in expected_files(entries, present).values()])


def update_times(hour: Path, found: HourInspection) -> None:
    """Store the new times of intact files that were copied or restored, so that they are not read again."""
    entries = read(hour) or {}
    sound = {file.path.name: file.path.stat().st_mtime_ns for file in found.files if file.path.name in entries}
    if any(entries[name].mtime_ns != mtime_ns for name, mtime_ns in sound.items()):
        write(hour, [replace(each, mtime_ns=sound.get(name, each.mtime_ns)) for name, each in entries.items()])
