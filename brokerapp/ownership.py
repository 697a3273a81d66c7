"""Who owns what among processes: a child is its parent's and ends with it; a folder is one process's at a time."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOCK_FILE = "lock"
LOCK_POLL_SECONDS = 0.05

_PR_SET_PDEATHSIG = 1
# Loaded at import: between fork and exec nothing may be imported or looked up.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class FolderTaken(Exception):
    """The folder belongs to another process; `pid` is None when it has not said which."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{folder} is in use by {owner}: stop it, or choose another folder")
        self.folder, self.pid = folder, pid


def dying_with_parent(death_signal: int = signal.SIGTERM) -> Callable[[], None]:
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


def claim(folder: Path, patience: float = 0.0) -> int:
    """Make this process the folder's only owner; the descriptor that holds it, for as long as it is open anywhere.

    A child that inherits the descriptor keeps the folder claimed after its parent's death. Waits up to `patience`
    seconds for the present owner to go, then raises FolderTaken.
    """
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(LOCK_POLL_SECONDS)
                continue
            text = os.pread(descriptor, 32, 0).strip()
            os.close(descriptor)
            raise FolderTaken(folder, int(text) if text.isdigit() else None) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return descriptor
