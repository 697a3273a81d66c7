"""Find damaged, missing and foreign files of an archive, move them out of it, and report them.

    archive.work/broker=B/set-aside/day=D.hour=H/part-<id>.parquet    damaged and foreign files, moved there
    archive/broker=B/_set_aside.json                                  files that are not read, and why, for the console

To restore a file, for example from a backup, put it back into the archive under its name: it is read again if it
matches the manifest.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from analytics.archive import manifest
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import hour_folders
from analytics.archive.manifest import FOREIGN, NOT_OURS, SetAside
from analytics.archive.read_locks import exclusive_lock
from brokerapp.system import atomic_files

NAME = "_set_aside.json"
#: Seconds between two computations of the checksums of an hour. One hour is read a minute, at about 3 GB a second.
VERIFY_SECONDS = 86_400
#: Seconds between two comparisons of all hours with their manifests: half a second for a month of 3,000 files.
CHECK_SECONDS = 300

log = logging.getLogger(__name__)


class Integrity:
    """Checks the archive of one broker; used by the archiver only."""

    def __init__(self, archive: BrokerArchive) -> None:
        self._archive = archive
        self._reported = {each.path for each in set_aside(archive.folder)}
        self._checked = 0.0
        self._verified: dict[Path, float] = {}  # when the checksums of an hour were computed last

    def step(self, now: float) -> bool:
        """Create the manifest of one hour of an earlier version; else check all hours, and the checksums of one.

        Return whether there may be more to do at once. `now` is in seconds since the epoch.
        """
        for hour in hour_folders(self._archive.folder):
            if not manifest.path_of(hour).exists():
                manifest.create(hour)
                return True
        if self._verify(now) or now >= self._checked + CHECK_SECONDS:
            self.check()
            self._checked = now
        return False

    def check(self) -> list[SetAside]:
        """Compare all hours with their manifests, move damaged and foreign files, and report all that are not read."""
        committed = {Path(each).name for each in self._archive.commit.files}
        found: list[SetAside] = []
        for hour in manifest.hours_of(self._archive.folder):
            manifest.finish_replacement(hour)
            inspected = manifest.inspect(hour, committed)
            manifest.update_times(hour, inspected)
            self._move([each for each in inspected.set_aside if (hour / each.file).exists()], hour)
            found += inspected.set_aside
        found += _moved_foreign(self._archive.folder, found)
        self._report(sorted(found, key=lambda each: each.path))
        return found

    def _verify(self, now: float) -> bool:
        """Verify the checksums of the hour that was verified longest ago; return whether a file is damaged."""
        hours = hour_folders(self._archive.folder)
        self._verified = {hour: self._verified.get(hour, 0.0) for hour in hours}
        due = min(hours, key=self._verified.__getitem__, default=None)
        if due is None or self._verified[due] > now - VERIFY_SECONDS:
            return False
        self._verified[due] = now
        return manifest.verify(due)

    def _move(self, files: list[SetAside], hour: Path) -> None:
        if not files:
            return
        with exclusive_lock(self._archive.folder) as free:
            if not free:  # next time
                return
            folder = manifest.set_aside_folder(hour)
            atomic_files.make_folder(folder)
            for each in files:
                (hour / each.file).rename(folder / each.file)
            atomic_files.sync(hour)
            atomic_files.sync(folder)

    def _report(self, found: list[SetAside]) -> None:
        """Write the list of files for the console if it changed, and log each file once."""
        for each in found:
            if each.path not in self._reported:
                log.warning("%s is not read: %s, %s", each.path, each.reason, each.detail)
        if {each.path for each in found} != self._reported:
            data = json.dumps([asdict(each) for each in found]).encode()
            atomic_files.replace(self._archive.folder / NAME, data)
        self._reported = {each.path for each in found}


def set_aside(broker: Path) -> list[SetAside]:
    """Read which files the archiver found damaged, missing or foreign in a broker's folder."""
    try:
        return [SetAside(**each) for each in json.loads((broker / NAME).read_bytes())]
    except (FileNotFoundError, ValueError, TypeError):
        return []


def _moved_foreign(broker: Path, found: list[SetAside]) -> Iterator[SetAside]:
    """Yield the foreign files that were moved earlier; a file in a manifest is damaged, or was restored since."""
    known = {each.path for each in found}
    work = manifest.set_aside_folder(broker / "day=" / "hour=").parent
    for file in sorted(work.glob("day=*/*")):
        day, _, hour = file.parent.name.partition(".")
        is_ours = file.name in (manifest.read(broker / day / hour) or {})
        if not is_ours and f"{day}/{hour}/{file.name}" not in known:
            yield SetAside(f"{day}/{hour}", file.name, FOREIGN, f"{NOT_OURS}; it was moved to {file}", 0)
