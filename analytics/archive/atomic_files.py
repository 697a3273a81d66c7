"""Files that are there whole or not at all, also when the machine stops in between."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

# Linux's rename with flags, which Python does not offer.
_renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
_HERE, _EXCHANGE = -100, 2


def sync(path: Path) -> None:
    """Make the file, or what a folder lists, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make the folder and those above it, each listed durably in the one above."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put the data in the place of the file; readers see the old or the new."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    staged.rename(path)
    sync(path.parent)


def exchange(one: Path, other: Path) -> None:
    """Let two files or folders change their names, at once: nobody sees one of the names missing."""
    if _renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one), None, str(other))
    for parent in {one.parent, other.parent}:
        sync(parent)
