"""Check what the operating system allows: open files, and the memory settings that Valkey warns of."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brokerapp.checks.results import Finding

#: Open files below which a node with many clients may refuse some: each connection is one.
ENOUGH_FILES = 4096
#: Files that a process needs besides its clients' connections.
OWN_FILES = 200


@dataclass(frozen=True, slots=True)
class SystemLimits:
    """Limits and settings of this machine; None: they cannot be read."""

    open_files: int | None
    is_of_running: bool  #: whether these are the limits of the installation that runs, or of this command
    overcommit: int | None
    huge_pages: str | None  #: the mode of transparent huge pages
    has_store: bool  #: whether a server of the store runs on this machine


def measure_system(running_process: int | None, has_store: bool) -> SystemLimits:
    """Return the limits of a running process, or else of this one, and settings of the kernel."""
    open_files = _open_files_of(running_process) if running_process is not None else None
    is_of_running = open_files is not None
    return SystemLimits(
        open_files if is_of_running else resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        is_of_running,
        _overcommit(),
        _huge_pages(),
        has_store,
    )


def judge_files(found: SystemLimits) -> Iterator[Finding]:
    """Judge how many connections the limit of open files leaves."""
    if found.open_files is None or found.open_files < 0:
        yield Finding.ok("The number of open files is not limited.")
        return
    whose = "Sluice may open" if found.is_of_running else "Programs that are started like this check may open"
    text = f"{whose} {found.open_files:,} files"
    if found.open_files < ENOUGH_FILES:
        clients = max(0, found.open_files - OWN_FILES)
        yield Finding.warning(
            f"{text}: a node serves about {clients:,} clients.",
            f"Raise the limit to {ENOUGH_FILES:,} or more: LimitNOFILE= in the systemd unit, or ulimit -n.",
        )
    else:
        yield Finding.ok(f"{text}.")


def judge_overcommit(found: SystemLimits) -> Iterator[Finding]:
    """Judge whether the store can fork to rewrite its append-only file."""
    if not found.has_store:
        yield Finding.skipped("The store runs on another machine: check its settings there.")
    elif found.overcommit is None:
        yield Finding.skipped("vm.overcommit_memory cannot be read here.")
    elif found.overcommit == 1:
        yield Finding.ok("vm.overcommit_memory is 1.")
    else:
        yield Finding.warning(
            f"vm.overcommit_memory is {found.overcommit}: the store may be unable to rewrite its append-only file, or "
            "to serve a new replica, when it uses more than half of the memory.",
            "Set vm.overcommit_memory = 1 in /etc/sysctl.d/sluice.conf, then run sysctl --system.",
        )


def judge_huge_pages(found: SystemLimits) -> Iterator[Finding]:
    """Judge whether transparent huge pages make the store slow."""
    if not found.has_store:
        yield Finding.skipped("The store runs on another machine: check its settings there.")
    elif found.huge_pages is None:
        yield Finding.skipped("Transparent huge pages cannot be read here.")
    elif found.huge_pages != "always":
        yield Finding.ok(f"Transparent huge pages: {found.huge_pages}.")
    else:
        yield Finding.warning(
            "Transparent huge pages are always used: the store takes more memory and answers late after a fork.",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and at each boot.",
        )


def _open_files_of(process: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{process}/limits").read_text().splitlines():
            if line.startswith("Max open files"):
                return int(line.split()[3])
    return None


def _overcommit() -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/proc/sys/vm/overcommit_memory").read_text())
    return None


def _huge_pages() -> str | None:
    """Return the chosen mode, which stands in brackets."""
    with contextlib.suppress(OSError):
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
        return text.partition("[")[2].partition("]")[0] or None
    return None
