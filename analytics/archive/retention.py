"""Remove the oldest hours of an archive that are past its retention or beyond its size limit."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from analytics.archive import manifest
from analytics.archive.data_files import HOUR_US, REMOVED, data_files, start_us
from brokerapp.system import atomic_files

_DAY_US = 24 * HOUR_US


@dataclass(frozen=True, slots=True)
class ArchiveHour:
    """The folder, start and size of one hour in the archive."""

    folder: Path
    start_us: int
    size: int  #: bytes


def expired_hours(hours: list[ArchiveHour], now_us: int, days: float, limit: int) -> list[ArchiveHour]:
    """Return the hours to remove: older than `days`, or beyond a limit in bytes; 0: no limit.

    The hour that is being written stays.
    """
    size = sum(each.size for each in hours)
    gone = []
    for each in hours:
        over = each.start_us + HOUR_US <= now_us
        too_old = bool(days) and each.start_us + HOUR_US < now_us - days * _DAY_US
        if not (over and (too_old or (limit and size > limit))):
            break
        gone.append(each)
        size -= each.size
    return gone


def hours_of(broker: Path) -> list[ArchiveHour]:
    """Return the hours of a broker, oldest first; an hour with only a manifest has size 0."""
    return [ArchiveHour(each, start_us(each), _size(each)) for each in manifest.hours_of(broker)]


def remove(hour: Path, work: Path) -> None:
    """Remove an hour from the archive atomically, then delete its files."""
    if not hour.is_dir():
        manifest.remove(hour)
        return
    note, last = hour.parent.parent / REMOVED, max((each.last for each in data_files(hour)), default=0)
    before = int(note.read_text()) if note.exists() else 0
    atomic_files.replace(note, str(max(before, last)).encode())  # first: a reader that continues there must learn of it
    gone = work / "gone"
    shutil.rmtree(gone, ignore_errors=True)
    atomic_files.make_folder(work)
    manifest.remove(hour)  # first: a manifest without its folder means that files are missing
    hour.rename(gone)
    atomic_files.sync(hour.parent)
    shutil.rmtree(gone)
    if not any(hour.parent.iterdir()):
        hour.parent.rmdir()


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0
