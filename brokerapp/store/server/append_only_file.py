"""Checks the append-only file of an embedded store before a server reads it: cuts an incomplete last write, refuses
other damage.

After a crash the last write may be incomplete: the file ends within a command or a transaction or, where a file system
had extended it before it wrote the data, in NULs. The server does not start with NULs, and silently cuts everything
that follows a wrong length. So it is configured to cut nothing, and this module cuts instead: only data that no receipt
can have been sent for, or of which nothing is left. What is cut is kept beside the file.
"""

from __future__ import annotations

import logging
import mmap
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brokerapp.errors import StoreUnavailable

logger = logging.getLogger(__name__)

#: How long the server's own check of a file may take: it reads some 450 MB a second.
CHECK_SECONDS = 600.0
#: A line with a number, and a command's name, are short: what is longer is none.
MAX_LINE_BYTES = 20
MAX_NAME_BYTES = 20
#: How many words a command has, the length of a word, and either of them cut short.
_COUNT, _LENGTH = re.compile(rb"\*(\d{1,17})\r\n"), re.compile(rb"\$(\d{1,17})\r\n")
_CUT_LINE = re.compile(rb"|[*$]\d{0,17}\r?")
#: What a command begins with: how many words it has, and the length of the first.
_COMMAND = re.compile(rb"\*[1-9]\d{0,8}\r\n\$[1-9]\d{0,3}\r\n[A-Za-z]")
#: Where the server's check says how far the file is whole: complete commands, outside of a transaction.
_WHOLE = re.compile(r"ok_up_to=(\d+)")
#: What the server writes last when it was told to end.
_CLEAN_END = b"bye bye"


class MalformedFile(Exception):
    """Content that cannot be part of a file of commands; `offset` is where."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class RemovedTail:
    """The part that was cut off a file, and where it is kept."""

    file: Path
    offset: int
    size: int
    kept: Path

    def __str__(self) -> str:
        return (
            f"{self.file} ended in an incomplete write: {self.size} bytes from byte {self.offset} on were cut; "
            f"they are kept in {self.kept}"
        )


def repair_file(folder: Path, binary: str | os.PathLike[str]) -> RemovedTail | None:
    """Cut an incomplete last write off the newest append-only file of this store's folder; None: it is whole.

    Raises StoreUnavailable when it is damaged elsewhere, or what would be cut can't be kept. `binary` is the server.
    """
    file = newest_file(folder)
    if file is None or not file.stat().st_size or ended_cleanly(folder, file):
        return None  # one that is empty, as after a rewrite, is no file to the server's check
    size, whole = file.stat().st_size, _whole_bytes(file, binary)
    if whole >= size:
        return None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            check_incomplete(content, whole)
        except MalformedFile as damage:
            raise StoreUnavailable(
                f"the append-only file {file} is damaged at byte {damage.offset} of {size}: {damage}. Complete data "
                f"ends at byte {whole}. Nothing was cut, because what follows may be confirmed messages: restore the "
                f"file from a backup, or discard what follows with `truncate -s {whole} {file}`"
            ) from damage
        kept = _keep(folder, file, whole, content)
    with file.open("r+b") as writable:
        writable.truncate(whole)
        os.fsync(writable.fileno())
    cut = RemovedTail(file, whole, size - whole, kept)
    logger.warning("%s", cut)
    return cut


def newest_file(folder: Path) -> Path | None:
    """Return the append-only file that the server of this folder appends to; None when there is none yet."""
    files = {int(each.name.split(".")[-3]): each for each in (folder / "appendonlydir").glob("*.incr.aof")}
    return files[max(files)] if files else None


def check_incomplete(content: bytes | mmap.mmap, start: int) -> None:
    """Check that what stands from `start` on is the beginning of a write, and nothing else but NULs behind it.

    Raises MalformedFile: what follows is damage, or complete commands stand behind it.
    """
    end, begin = _without_nuls(content, start), start
    for name, ends in _complete_commands(content, start, end):
        if (begin == start) is not (name == b"MULTI") or name == b"EXEC":
            raise MalformedFile(begin, f"the server does not accept the command {name!r} there")
        begin = ends
    # A wrong length makes all that follows look like the rest of one command; the commands there prove that it is not.
    for found in _COMMAND.finditer(content, begin + 1, end):
        if _has_commands(content, found.start(), end):
            raise MalformedFile(begin, f"the command there has a wrong length: another one follows at {found.start()}")


def _has_commands(content: bytes | mmap.mmap, at: int, end: int) -> bool:
    """Return whether only commands follow up to the end: a message may contain what looks like one, but continues."""
    try:
        return sum(1 for _ in _complete_commands(content, at, end)) > 0
    except MalformedFile:
        return False


def _complete_commands(content: bytes | mmap.mmap, at: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield the name of each complete command and where it ends, until one that `end` cuts short."""
    while (words := _number(_COUNT, content, at, end)) is not None:
        (count, at), name = words, b""
        for word in range(count):
            length = _number(_LENGTH, content, at, end)
            if length is None or sum(length) + 2 > end:
                return
            at, begin = sum(length) + 2, length[1]
            if content[at - 2 : at] != b"\r\n":
                raise MalformedFile(at - 2, "a word does not end where its length says")
            if word == 0:
                name = bytes(content[begin : min(at - 2, begin + MAX_NAME_BYTES)]).upper()
        yield name, at


def _number(line: re.Pattern[bytes], content: bytes | mmap.mmap, at: int, end: int) -> tuple[int, int] | None:
    """Return the number in this line and where the next line begins; None when the line is cut short."""
    if found := line.match(content, at, end):
        return int(found[1]), found.end()
    rest = bytes(content[at : min(at + MAX_LINE_BYTES, end)])
    if at + len(rest) == end and _CUT_LINE.fullmatch(rest):
        return None
    raise MalformedFile(at, f"{rest[:8]!r} is not a length")


def _without_nuls(content: bytes | mmap.mmap, start: int) -> int:
    """Return where the trailing NULs of the content begin, not before `start`."""
    end, step = len(content), 1 << 16
    while end > start:
        part = content[max(start, end - step) : end]
        rest = part.rstrip(b"\0")
        end -= len(part) - len(rest)
        if rest:
            break
    return end


def _whole_bytes(file: Path, binary: str | os.PathLike[str]) -> int:
    """Return how many bytes of a file are complete commands, as the server's own check reads it."""
    try:
        checked = subprocess.run(
            ["valkey-check-aof", os.fspath(file)], executable=binary, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=CHECK_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreUnavailable(f"the append-only file {file} could not be checked: {error}") from error
    found = _WHOLE.search(checked.stdout)
    if found is None:
        raise StoreUnavailable(f"the append-only file {file} could not be checked: {checked.stdout.strip()}")
    return int(found[1])


def ended_cleanly(folder: Path, file: Path) -> bool:
    """Return whether the last server stopped cleanly, so that the file need not be checked."""
    return _tail(folder / "valkey.log", 200).count(_CLEAN_END) > 0 and _tail(file, 2) in (b"", b"\r\n")


def _tail(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read()
    except FileNotFoundError:
        return b""


def _keep(folder: Path, file: Path, start: int, content: mmap.mmap) -> Path:
    """Write what stands from `start` on into a file of its own, and where that is."""
    kept = folder / f"{file.name}.cut-at-{start}"
    number = 1
    while kept.exists():
        number += 1
        kept = folder / f"{file.name}.cut-at-{start}.{number}"
    try:
        with kept.open("xb") as opened:
            opened.write(memoryview(content)[start:])
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        kept.unlink(missing_ok=True)
        raise StoreUnavailable(
            f"the append-only file {file} ends in an incomplete write of {len(content) - start} bytes, and no "
            f"space is left to keep them in {folder}: {error.strerror}"
        ) from error
    return kept
