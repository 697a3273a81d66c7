"""Write files and folders atomically and durably: after a crash they are there as a whole or not at all."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

# Linux's rename with flags, and its sync of one file system, which Python does not offer.
_libc = ctypes.CDLL(None, use_errno=True)
_renameat2, _syncfs = _libc.renameat2, _libc.syncfs
_CURRENT_FOLDER, _EXCHANGE = -100, 2


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: Path) -> None:
    """Sync all files of the file system of a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create the folder and its parents, and sync each to disk."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace the content of a file; readers see the old or the new one."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.rename(path)
    except OSError:  # as on a full disk
        staged.unlink(missing_ok=True)
        raise
    sync(path.parent)


def exchange(one: Path, other: Path) -> None:
    """Exchange the names of two files or folders atomically: neither name is ever missing."""
    if _renameat2(_CURRENT_FOLDER, os.fsencode(one), _CURRENT_FOLDER, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))
    for parent in {one.parent, other.parent}:
        sync(parent)
