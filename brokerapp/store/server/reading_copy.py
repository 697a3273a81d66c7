"""Read an embedded store without changing a file of it: a server of its own loads the same append-only file.

The files are linked into a folder of temporary files, and an empty one is listed behind them, to which that server
appends. After a crash, when the end of the newest file may be incomplete, a copy of that file is repaired instead.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokerapp.errors import StoreUnavailable
from brokerapp.store.server.append_only_file import ended_cleanly, newest_file
from brokerapp.store.server.embedded import EmbeddedStore, is_answering

FILES, MANIFEST = "appendonlydir", "appendonly.aof.manifest"
_NUMBERS = re.compile(r"seq (\d+) type i")


def has_data(folder: Path) -> bool:
    """Return whether an embedded store was ever started in this folder."""
    return (folder / FILES / MANIFEST).exists()


@contextmanager
def open_for_reading(url: str | None, folder: Path) -> Iterator[str | None]:
    """Yield the URL of a store to read from; `url` None: the embedded one of the folder, None where it has no data.

    Raises StoreUnavailable where the data cannot be loaded.
    """
    if url is not None:
        yield url
    elif is_answering(folder):
        yield (folder / "store.url").read_text()
    elif not has_data(folder):
        yield None
    else:
        with tempfile.TemporaryDirectory(prefix="sluice-read-") as created:
            store = EmbeddedStore(Path(created))
            _link_files(folder, store.folder)
            try:
                url = store.start()
            except StoreUnavailable as error:  # about files that the operator finds in the folder itself
                raise StoreUnavailable(str(error).replace(str(store.folder), str(folder))) from error
            try:
                yield url
            finally:
                store.stop()


def _link_files(folder: Path, copy: Path) -> None:
    """Make the folder of a server that loads the data of another folder and appends to a file of its own."""
    source, target = folder.resolve() / FILES, copy / FILES
    target.mkdir()
    newest = newest_file(folder)
    is_whole = newest is None or not newest.stat().st_size or ended_cleanly(folder, newest)
    try:
        for each in source.glob("appendonly.aof.*"):
            if each.name == MANIFEST or (newest is not None and each.name == newest.name and not is_whole):
                shutil.copyfile(each, target / each.name)
            else:
                (target / each.name).symlink_to(each)
    except OSError as error:
        raise StoreUnavailable(f"the store in {folder} cannot be read: {error.strerror or error}") from error
    if is_whole:
        numbers = _NUMBERS.findall((target / MANIFEST).read_text())
        number = max(map(int, numbers), default=0) + 1
        name = f"appendonly.aof.{number}.incr.aof"
        (target / name).touch(mode=0o600)
        with (target / MANIFEST).open("a") as manifest:
            manifest.write(f"file {name} seq {number} type i\n")
