"""The data folder of a restore: what belongs there is prepared within it and moved into place, and a mark says for what
it was restored. What is started there reads the mark before its store runs.

A folder `.restore` is there while a restore prepares the rest, and locked by it. A restore that was killed before all
was in place leaves it unlocked: the next one removes what the other had put into place, and begins again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brokerapp.errors import BackupRefused, ConfigurationRefused
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system import atomic_files
from brokerapp.system.process_lock import DirectoryInUse, DirectoryLock, lock_directory, make_private_directory

#: The mark, and the folder of the embedded store.
NAME, STORE = "restored.json", "store"
#: The folder in the data folder that a restore works in, and what is in it: what belongs in the data folder, and how
#: far the restore is.
WORK_FOLDER, _PREPARED, _PROGRESS = ".restore", "prepared", "progress.json"
#: What an empty data folder may hold.
HARMLESS = frozenset({"lost+found", "backups"})
#: Seconds for servers of a killed restore to end.
LEFTOVER_SECONDS = 10.0


# -- the mark


def read_mark(data: Path) -> RestoredMark | None:
    """Return the mark of a data folder; None for one that was not restored, or acts as the original."""
    try:
        return RestoredMark.from_json((data / NAME).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BackupRefused(f"{data / NAME} cannot be read: {error}") from None


def check_decided(data: Path) -> None:
    """Raise ConfigurationRefused for a data folder that was not restored completely, or not said yet as what."""
    mark = read_mark(data)
    if mark is not None and mark.refusal:
        raise ConfigurationRefused(mark.refusal)


def write_mark(data: Path, mark: RestoredMark | None) -> None:
    """Replace the mark of a data folder; None: it acts as the original."""
    path = data / NAME
    if mark is None:
        path.unlink(missing_ok=True)
    else:
        atomic_files.replace(path, mark.to_json().encode(), mode=0o600)


# -- a restore into it


@dataclass(frozen=True, slots=True)
class RestoreOwner:
    """One restore, and the mark of what it restores."""

    id: str
    mark: RestoredMark

    def to_json(self) -> dict[str, str]:
        """Return what is noted of it in the data folder."""
        return {"id": self.id, "mark": self.mark.to_json()}


class TargetFolder:
    """The data folder that a restore fills."""

    def __init__(self, data: Path, owner: RestoreOwner, former: RestoreOwner | None) -> None:
        self.data, self._work, self.owner = data, data / WORK_FOLDER, owner
        self.former = former  #: that was killed as it restored into this folder

    @property
    def prepared(self) -> Path:
        """Return the folder for what belongs in the data folder."""
        return self._work / _PREPARED

    def begin(self, harmless: frozenset[str]) -> None:
        """Begin. Raises BackupRefused for a folder that holds something else than a killed restore left."""
        check_data_folder(self.data, harmless)
        _remove(self.prepared)  # of one that was killed before it noted anything
        _note(self._work, self.owner)
        write_mark(self._work, replace(self.owner.mark, role=RestoredRole.INCOMPLETE))
        (self._work / NAME).rename(self.data / NAME)  # if it is killed, nothing half written is left in the data folder
        atomic_files.sync(self.data)
        self.prepared.mkdir(mode=0o700)

    def move_up(self) -> None:
        """Give all that was prepared its place. With the last of it the restore is complete.

        The store is first, and the mark is next: nothing starts on either before the operator has said what it is.
        """
        names = sorted(_names_in(self.prepared), key=lambda each: (each != STORE, each != NAME, each))
        atomic_files.sync_file_system(self.prepared)  # not every part syncs its files
        _note(self._work, self.owner, names)
        *others, last = names
        for name in others:
            (self.prepared / name).rename(self.data / name)
        self._sync()
        (self.prepared / last).rename(self.data / last)
        with suppress(OSError):  # it is complete, and incomplete again if the disk loses this one
            self._sync()

    def _sync(self) -> None:
        atomic_files.sync(self.prepared)
        atomic_files.sync(self.data)


@contextmanager
def restoring(data: Path, owner: RestoreOwner, harmless: frozenset[str]) -> Iterator[TargetFolder]:
    """Lock a data folder for a restore; remove what it did if it fails, with the data folder if that is new.

    Raises BackupRefused.
    """
    if not (data / WORK_FOLDER).exists():
        check_data_folder(data, harmless)
    is_new = not data.exists()
    make_private_directory(data)
    lock = _lock(data)
    try:
        folder = TargetFolder(data, owner, _remove_unfinished(data))
        try:
            folder.begin(harmless)
            yield folder
        except BaseException:
            _remove_unfinished(data)
            raise
        finally:
            shutil.rmtree(data / WORK_FOLDER, ignore_errors=True)
    finally:
        lock.release()
        if is_new:
            with suppress(OSError):  # it is not empty
                data.rmdir()


def check_data_folder(data: Path, harmless: frozenset[str]) -> None:
    """Raise BackupRefused for a data folder that holds something."""
    if not data.exists():
        return
    if not data.is_dir():
        raise BackupRefused(f"{data} is a file: name a folder")
    found = sorted(each.name for each in data.iterdir() if each.name not in {*harmless, WORK_FOLDER})
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise BackupRefused(f"{data} is not empty, it holds {', '.join(found[:3])}{more}: restore into an empty folder")


def check_restored(data: Path) -> None:
    """Raise BackupRefused for a data folder whose restore is under way, or was killed before it was complete."""
    if not (data / WORK_FOLDER).is_dir():
        return
    lock = _lock(data)
    try:
        if not _is_complete(data / WORK_FOLDER, _progress_in(data)):
            raise BackupRefused(f"the restore into {data} did not end: restore the backup again")
        shutil.rmtree(data / WORK_FOLDER, ignore_errors=True)
    finally:
        lock.release()


def _lock(data: Path) -> DirectoryLock:
    work = data / WORK_FOLDER
    work.mkdir(mode=0o700, exist_ok=True)
    try:
        return lock_directory(work)
    except DirectoryInUse as error:
        raise BackupRefused(f"another restore into {data} is under way ({error.owner}): wait for its end") from None


def _remove_unfinished(data: Path) -> RestoreOwner | None:
    """Remove from a data folder what a restore put there that is not complete; return who did it."""
    work, progress = data / WORK_FOLDER, _progress_in(data)
    if not progress or _is_complete(work, progress):
        return None
    left = _names_in(work / _PREPARED)
    moved = {NAME, *progress.get("names", ())} - (left - {NAME})  # an incomplete mark is there from the beginning
    for each in sorted(moved):
        _remove(data / each)
    owner = RestoreOwner(progress["id"], RestoredMark.from_json(progress["mark"]))
    _note(work, owner)  # without names: with none of them left to be moved it would be complete
    _remove(work / _PREPARED)
    return owner


def _names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()} if folder.is_dir() else set()


def _is_complete(work: Path, progress: dict[str, Any]) -> bool:
    return "names" in progress and not _names_in(work / _PREPARED)


def _note(work: Path, owner: RestoreOwner, names: Sequence[str] | None = None) -> None:
    """Note which restore works in the folder, and what it moves into place once it does."""
    progress = owner.to_json() | ({} if names is None else {"names": names})
    atomic_files.replace(work / _PROGRESS, json.dumps(progress).encode(), mode=0o600)


def _progress_in(data: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((data / WORK_FOLDER / _PROGRESS).read_bytes()))
    except (OSError, ValueError):
        return {}


def _remove(path: Path) -> None:
    """Remove a file or a folder. Raises BackupRefused for the folder of a server that does not end."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    try:
        for url in path.rglob("store.url"):
            lock_directory(url.parent, LEFTOVER_SECONDS).release()
    except DirectoryInUse as error:
        raise BackupRefused(f"a restore that was killed left a server: {error}") from None
    shutil.rmtree(path)
