"""StoreDisk: measures the file system of an embedded store, and reserves space there for its append-only file."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import replace
from pathlib import Path

from brokerapp.store.server.append_only_file import newest_file
from brokerapp.store.server.disk_space import DiskSpace

#: Allocate without making the file longer: what is read of it stays as it is.
_KEEP_SIZE = 1
#: Allocating less than this is not worth a call.
_LEAST = 64 * 1024
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class StoreDisk:
    """Measures the file system of a store's folder. Calls block, for some microseconds on a healthy disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def measure(self, before: DiskSpace, needed: int, wanted: int = 0) -> DiskSpace:
        """Measure free space, after allocating what is to be reserved. Raises OSError.

        `needed`: bytes of a commit that waits for space; `wanted`: see `DiskSpace.after`.
        """
        file = newest_file(self.folder)
        space = self._space(file)
        missing = space.reserve - space.reserved
        if file is not None and space.is_scarce and missing >= max(_LEAST, space.reserve // 8) and space.free:
            _allocate(file, space.reserved + min(missing, space.free))
            space = self._space(file)
        return space.assess(before.level, needed, max(wanted, before.wanted))

    def _space(self, file: Path | None) -> DiskSpace:
        found = os.statvfs(self.folder)
        space = DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)
        if file is None:
            return space
        status = file.stat()
        return replace(space, reserved=max(0, status.st_blocks * 512 - status.st_size))


def _allocate(file: Path, size: int) -> None:
    """Allocate so many bytes behind the end of a file, as far as its file system can do that."""
    if _libc is None:
        return
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        end = os.fstat(descriptor).st_size
        _libc.fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(end), ctypes.c_int64(size))
    finally:
        os.close(descriptor)
