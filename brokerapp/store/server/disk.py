"""StoreDisk: measures the file system of an embedded store, reserves space there for its append-only file, and keeps
that file out of the system's page cache.
"""

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
#: Written bytes from which to release their pages: less is not worth a call. Nobody reads the file before the next
#: start, and the next bytes then take the same pages again. For a message with a body of 64 KiB the server spent 135 us
#: of CPU in the kernel where it got pages that had not been in use before, and 81 us with this.
_RELEASED_AT_ONCE = 1024 * 1024
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class StoreDisk:
    """Measures the file system of a store's folder. Calls block, for some microseconds on a healthy disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cached: tuple[Path | None, int, int] = None, 0, 0  # file, its size at the last look, bytes released

    def measure(self, before: DiskSpace, needed: int, wanted: int = 0) -> DiskSpace:
        """Measure free space, after allocating what is to be reserved. Raises OSError.

        `needed`: bytes of a commit that waits for space; `wanted`: see `DiskSpace.after`.
        """
        file = newest_file(self.folder)
        if file is not None:
            self._release_pages(file)
        space = self._space(file)
        missing = space.reserve - space.reserved
        if file is not None and space.is_scarce and missing >= max(_LEAST, space.reserve // 8) and space.free:
            _allocate(file, space.reserved + min(missing, space.free))
            space = self._space(file)
        return space.assess(before.level, needed, max(wanted, before.wanted))

    def _release_pages(self, file: Path) -> None:
        """Release the pages of what the file held at the last look, which is on the disk by now."""
        known, size, released = self._cached
        if known != file:
            size = released = 0
        if size - released >= _RELEASED_AT_ONCE:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.posix_fadvise(descriptor, released, size - released, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
            released = size
        self._cached = file, file.stat().st_size, released

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
