"""Check the disk of the data directory: space, inodes, and how long it takes until data is on it."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brokerapp.checks.results import Finding, size_in_words
from brokerapp.store.server.disk_space import DiskSpace

#: Writes that are timed, each of so many bytes: a small message with what the store adds.
FSYNCS, FSYNC_BYTES = 30, 1024
#: Milliseconds of the median above which receipts are slow, and of the slowest above which they stutter. A solid-state
#: disk takes 0.1 to 2 ms, a rotating one 5 to 15 ms, a disk over the network 2 to 20 ms.
SLOW_MS, STUTTER_MS = 20.0, 250.0
#: Share of the space, and of the inodes, below which to act before messages are refused.
SCARCE_SHARE = 0.15
#: Free bytes that are enough whatever share they are.
ENOUGH_BYTES = 50 * 1024**3


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The file system of a folder. `inodes` is 0 where it does not count them, as btrfs."""

    folder: Path
    total: int
    free: int
    inodes: int
    free_inodes: int
    is_read_only: bool = False


def measure_disk(folder: Path) -> DiskUse:
    """Return the space of the file system that a folder is on, or will be. Raises OSError."""
    existing = _existing(folder)
    found = os.statvfs(existing)
    return DiskUse(
        existing, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, found.f_files, found.f_favail,
        bool(found.f_flag & os.ST_RDONLY),
    )  # fmt: skip


def judge_space(found: DiskUse) -> Iterator[Finding]:
    """Judge free space by the limit below which an embedded store accepts no messages."""
    space = DiskSpace(found.total, found.free)
    percent = 100 * found.free / found.total if found.total else 0
    free, total = size_in_words(found.free), size_in_words(found.total)
    text = f"{free} of {total} free ({percent:.0f}%) on the disk of {found.folder}"
    if found.is_read_only:
        yield Finding.failure(f"The disk of {found.folder} is mounted read-only.", "Mount it for reading and writing.")
    elif found.free < space.limit:
        yield Finding.failure(
            f"{text}: messages are not accepted below {size_in_words(space.limit)}.",
            "Free space, enlarge the disk, or reduce SLUICE_ARCHIVE_GB.",
        )
    elif percent < 100 * SCARCE_SHARE and found.free < ENOUGH_BYTES:
        yield Finding.warning(f"{text}.", "Enlarge the disk, or reduce SLUICE_ARCHIVE_DAYS or SLUICE_ARCHIVE_GB.")
    else:
        yield Finding.ok(f"{text}.")


def judge_inodes(found: DiskUse) -> Iterator[Finding]:
    """Judge how many more files can be created."""
    if not found.inodes:
        yield Finding.skipped("The file system has no fixed number of inodes.")
        return
    percent = 100 * found.free_inodes / found.inodes
    text = f"{found.free_inodes:,} of {found.inodes:,} inodes free ({percent:.0f}%)"
    if percent < 1:
        yield Finding.failure(f"{text}: files can hardly be created.", "Delete files, or create a larger file system.")
    elif percent < 100 * SCARCE_SHARE:
        yield Finding.warning(f"{text}.", "Delete files, or create the file system with more inodes.")
    else:
        yield Finding.ok(f"{text}.")


@dataclass(frozen=True, slots=True)
class FsyncTimes:
    """Milliseconds until written data was on the disk of a folder, for each write."""

    folder: Path
    milliseconds: tuple[float, ...]


def measure_fsync(folder: Path) -> FsyncTimes:
    """Time writes to a temporary file, which is deleted. Raises OSError."""
    existing, content, times = _existing(folder), os.urandom(FSYNC_BYTES), []
    with tempfile.TemporaryFile(dir=existing, prefix="check-") as file:
        for _ in range(FSYNCS):
            began = time.perf_counter()
            os.write(file.fileno(), content)
            os.fdatasync(file.fileno())
            times.append(1000 * (time.perf_counter() - began))
    return FsyncTimes(existing, tuple(times))


def judge_fsync(found: FsyncTimes) -> Iterator[Finding]:
    """Judge how long receipts wait for the disk."""
    median, slowest = statistics.median(found.milliseconds), max(found.milliseconds)
    text = f"An fsync takes {median:.2g} ms, the slowest of {len(found.milliseconds)} took {slowest:.2g} ms"
    if median > SLOW_MS:
        yield Finding.warning(
            f"{text}: receipts of persistent messages wait for it.",
            "Use a solid-state disk, or a volume with a higher rate of write operations.",
        )
    elif slowest > STUTTER_MS:
        yield Finding.warning(
            f"{text}: receipts are delayed now and then.",
            "See whether other programs write to the same disk, or whether its volume is throttled.",
        )
    else:
        yield Finding.ok(f"{text}.")


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest parent that exists: an installation may be checked before its first start."""
    return next(each for each in (folder, *folder.parents) if each.exists())
