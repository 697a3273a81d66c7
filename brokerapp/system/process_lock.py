"""Lock directories for one process at a time, and end child processes with their parent."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OWNER_LOCK = "owner.lock"  # held by the owner alone; holds its process id, and what it does if that is said
FAMILY_LOCK = "family.lock"  # held by the owner and by every child that inherits it
LOCK_POLL_SECONDS = 0.05
#: The umask of what is written into a folder of ours: what messages hold is nobody else's on this machine.
OWNER_UMASK = 0o077
#: The mode of such a folder.
OWNER_ONLY = 0o700

_PR_SET_PDEATHSIG = 1
# Loaded at import: between fork and exec nothing may be imported or looked up.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def make_private_directory(folder: Path) -> None:
    """Make a folder that only its owner may enter, or close one of ours that others may enter.

    A folder of another user, which that user opened to us, is left as it is.
    """
    folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid == os.geteuid() and found.st_mode & OWNER_UMASK:
        folder.chmod(OWNER_ONLY)


class DirectoryInUse(Exception):
    """The folder belongs to a live process, or to children that a dead one left behind."""

    def __init__(self, folder: Path, owner: str) -> None:
        super().__init__(f"{folder} is in use by {owner}: stop it, or choose another folder")
        self.folder, self.owner = folder, owner


@dataclass(frozen=True, slots=True)
class DirectoryLock:
    """A claimed folder, until `release` or the death of this process and of all children that inherited `family`."""

    owner: int
    family: int

    def release(self) -> None:
        """Give the folder back, as far as this process is concerned."""
        os.close(self.family)
        os.close(self.owner)


def end_with_parent(death_signal: int = signal.SIGTERM) -> Callable[[], None]:
    """A `preexec_fn` after which the child gets `death_signal` as soon as the thread that started it ends.

    The kernel watches that *thread*, not the process: start children from a thread that lives as long as they may.
    Linux only; elsewhere the child outlives a killed parent, and the folder lock keeps a second one out.
    """
    parent = os.getpid()

    def in_child() -> None:
        if _libc is None:
            return
        _libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl: no signal would come any more
            os._exit(1)

    return in_child


def lock_directory(folder: Path, patience: float = 0.0, purpose: str = "") -> DirectoryLock:
    """Make this process the folder's only owner; others that ask for it are told its `purpose`.

    Raises DirectoryInUse: at once when another owner lives, and after `patience` seconds when one is dead but children
    that inherited its `family` descriptor have not ended by then.
    """
    owner = os.open(folder / OWNER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(owner):
        holder = _holder_in(owner)
        os.close(owner)
        raise DirectoryInUse(folder, f"process {holder}")
    family = os.open(folder / FAMILY_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    while not _locked(family):
        if time.monotonic() > deadline:
            holder = _holder_in(owner)
            os.close(family)
            os.close(owner)
            raise DirectoryInUse(folder, f"processes that process {holder} left behind")
        time.sleep(LOCK_POLL_SECONDS)
    lock = DirectoryLock(owner, family)
    try:
        os.ftruncate(owner, 0)
        os.pwrite(owner, f"{os.getpid()} {purpose}".strip().encode(), 0)
    except OSError:  # as on a full disk
        lock.release()
        raise
    return lock


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder_in(descriptor: int) -> str:
    """Return the process id of the owner, with its purpose in brackets."""
    pid, _, purpose = os.pread(descriptor, 100, 0).decode().strip().partition(" ")
    return f"{pid or '(unknown)'}{f' ({purpose})' if purpose else ''}"
