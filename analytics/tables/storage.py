"""Define where tables are stored: the one interface of paths that all machines of an installation share.

Names are relative, with `/`. A stored file never changes, except those that `replace` replaces as a whole, so that an
object store can take the place of the folder: each method is one request there, and none needs to rename a folder.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from brokerapp.system import atomic_files

#: The lock that a builder holds; its file has this name.
BUILDS = "_lock"


class TableStorage(Protocol):
    """Lists, reads, replaces and deletes files that several machines share."""

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files and folders directly in a folder, sorted."""

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError."""

    def replace(self, name: str, data: bytes) -> None:
        """Write a file atomically and durably: readers see the old content, or all of the new one."""

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""

    def location(self, name: str) -> str:
        """Return the path or URL at which Spark reads a file."""

    def lock(self, name: str = BUILDS) -> AbstractContextManager[bool]:
        """Yield whether the caller alone holds the lock. Two builders would do the same work twice, without harm."""


class FolderStorage:
    """Stores tables in a folder, which all machines mount at the same path."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the files and folders directly in a folder, sorted; hidden ones are not listed."""
        try:
            return sorted(each.name for each in (self._root / prefix).iterdir() if each.name[0] not in "._")
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError."""
        return (self._root / name).read_bytes()

    def replace(self, name: str, data: bytes) -> None:
        """Write a file to a hidden name, sync it and rename it."""
        path = self._root / name
        atomic_files.make_folder(path.parent)
        atomic_files.replace(path, data)

    def delete(self, name: str) -> None:
        """Delete a file, and its folder if it was the last one."""
        path = self._root / name
        path.unlink(missing_ok=True)
        if path.parent != self._root and path.parent.is_dir() and not any(path.parent.iterdir()):
            path.parent.rmdir()

    def location(self, name: str) -> str:
        """Return the path of a file."""
        return str(self._root / name)

    @contextmanager
    def lock(self, name: str = BUILDS) -> Iterator[bool]:
        """Yield whether no other process holds the lock; it ends with the process that holds it."""
        atomic_files.make_folder(self._root)
        with (self._root / name).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
