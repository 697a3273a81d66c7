"""A share of one processor for each process: nodes that share a machine are held to it as if each had one of its own.

Control groups of the kernel do it, of version 2 (`cpu.max`) or 1 (`cpu.cfs_quota_us`); to make one takes root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

#: Microseconds over which a share is kept: short, so that a process that has used its own up does not stand still long.
PERIOD_US = 10_000
#: What the kernel gives at least in a period: a smaller share takes a longer one.
MIN_QUOTA_US = 1_000
_VERSION_2, _VERSION_1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu")


@contextmanager
def held_to(share: float, pids: Sequence[int]) -> Iterator[None]:
    """Each of these processes gets this part of one processor, no more. Raises SystemExit where that cannot be had."""
    groups: list[Path] = []
    try:
        for pid in pids:
            groups.append(_group(share, pid))
        yield
    except OSError as error:
        raise SystemExit(f"a share of a processor takes control groups, and the right to make one: {error}") from error
    finally:
        for each in groups:
            _remove(each)


def limits_of(share: float) -> tuple[int, int]:
    """Microseconds that a process may run, and of how many."""
    period_us = max(PERIOD_US, round(MIN_QUOTA_US / share))
    return max(MIN_QUOTA_US, round(share * period_us)), period_us


def _group(share: float, pid: int) -> Path:
    """A group of its own for this process."""
    root, limits = _hierarchy(*limits_of(share))
    folder = root / f"sluice-bench-{pid}"
    folder.mkdir()
    for name, value in limits.items():
        (folder / name).write_text(value)
    (folder / "cgroup.procs").write_text(str(pid))
    return folder


def _hierarchy(quota_us: int, period_us: int) -> tuple[Path, dict[str, str]]:
    """Where groups are made, and the files that bound one."""
    controllers = _VERSION_2 / "cgroup.controllers"
    if controllers.exists() and "cpu" in controllers.read_text().split():
        return _VERSION_2, {"cpu.max": f"{quota_us} {period_us}"}
    return _VERSION_1, {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)}


def _remove(group: Path) -> None:
    """Give what is in it back to the root; a group that still holds a process cannot be removed."""
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(pid)
    group.rmdir()
