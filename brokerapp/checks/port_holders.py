"""Find the process that listens on a port, and whether it belongs to a data directory, as /proc shows it."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path

from brokerapp.system.process_lock import OWNER_LOCK

_TCP_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
#: Value of their column for the state: a socket that listens.
_LISTENING = "0A"
#: The option of `runbroker` that names the data folder.
_DATA_OPTION = b"--data"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def listening_processes() -> dict[int, int]:
    """Return processes by the port that they listen on, as far as this user may see them. Empty without /proc."""
    ports = {inode: port for table in _TCP_TABLES for port, inode in _listening_sockets(table)}
    found: dict[int, int] = {}
    for process in _process_ids():
        for target in _open_files(process):
            if (socket_id := _SOCKET.fullmatch(target)) and (port := ports.get(socket_id[1])) is not None:
                # A child inherits sockets of its parent: the one that began first is meant.
                found[port] = min(process, found.get(port, process))
    return found


def _listening_sockets(table: Path) -> Iterator[tuple[int, str]]:
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        columns = line.split()
        if columns[3] == _LISTENING:
            yield int(columns[1].rpartition(":")[2], 16), columns[9]


def _process_ids() -> Iterator[int]:
    try:
        yield from (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    except OSError:
        return


def _open_files(process: int) -> Iterator[str]:
    """Yield what a process has open; nothing for one of another user."""
    try:
        found = list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return
    for each in found:
        with contextlib.suppress(OSError):  # closed meanwhile
            yield str(each.readlink())


def program_of(process: int) -> str:
    """Return the beginning of the command line of a process."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "unknown"
    return " ".join(word.decode(errors="replace") for word in words[:3] if word)


def listens_for(data: Path, ports: Collection[int]) -> bool:
    """Return whether a process of a data directory listens on one of these ports."""
    holders = listening_processes()
    return any(belongs_to(holders[port], data) for port in ports if port in holders)


def belongs_to(process: int, data: Path) -> bool:
    """Return whether a process or one of its parents has files of the data directory open, or is told its path."""
    inside = f"{data}/"
    while process > 1:
        if any(target.startswith(inside) for target in _open_files(process)) or _is_told(process, data):
            return True
        try:
            status = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return False
        process = int(status.rpartition(")")[2].split()[1])
    return False


def _is_told(process: int, path: Path) -> bool:
    """Return whether this path is the data folder in the arguments of a process, a relative one from where it runs."""
    try:
        folder = Path(f"/proc/{process}/cwd").readlink()
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    named = [word.removeprefix(_DATA_OPTION + b"=") for word in words if word.startswith(_DATA_OPTION + b"=")]
    named += [word for option, word in pairwise(words) if option == _DATA_OPTION]
    return any((folder / os.fsdecode(word)).resolve() == path for word in named)


def is_locked(folder: Path) -> bool:
    """Return whether a live process owns a data directory, without locking it, which would keep one from starting."""
    try:
        inode = (folder / OWNER_LOCK).stat().st_ino
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    return any(word.endswith(f":{inode}") for line in locks if "FLOCK" in line for word in line.split())


def seconds_owned(folder: Path) -> float:
    """Return for how long a data directory has been locked: its owner wrote its id into the file then."""
    try:
        return max(0.0, time.time() - (folder / OWNER_LOCK).stat().st_mtime)
    except OSError:
        return 0.0


def owner_of(folder: Path) -> int | None:
    """Return the id of the process that locked a data directory last."""
    try:
        return int((folder / OWNER_LOCK).read_text().partition(" ")[0])
    except (OSError, ValueError):
        return None
