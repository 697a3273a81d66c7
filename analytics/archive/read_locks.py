"""Lock the files of an archive: shared for readers, exclusive for compaction and retention.

The lock is on a file, so it ends with the process that holds it. Appending new events needs no lock.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from brokerapp.system import atomic_files

NAME = "_readers"


@contextmanager
def read_lock(root: Path) -> Iterator[None]:
    """Keep the files of this archive, of all its brokers, while the context is open."""
    with ExitStack() as held:
        for broker in sorted(root.glob("broker=*")):
            lock = held.enter_context((broker / NAME).open("a"))
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def exclusive_lock(broker: Path) -> Iterator[bool]:
    """Yield whether no process reads from this broker's folder; if so, none can begin to while the context is open."""
    atomic_files.make_folder(broker)
    with (broker / NAME).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
