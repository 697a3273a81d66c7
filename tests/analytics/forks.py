"""Run archivers in forks of one preloaded process, which are killed at a step of their work.

Loading it takes a second, and there are some thirty of them. That the real command does the same is tested once.
"""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recorded_traffic import BROKER

from analytics.archive import archiver
from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.housekeeping import ArchiveLimits, Housekeeping

#: Seconds one may take on a machine that is busy with other things.
PATIENCE = 60

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["analytics.archive.archiver", "analytics.archive.housekeeping"])


def exit_of_archiver(variables: dict[str, str], fault: str) -> int:
    """Run an archiver until it reaches this step, which kills it; its exit code."""
    return _exit_of(archiver.main, variables, fault)


def exit_of_housekeeping(variables: dict[str, str], fault: str, now_us: int, days: float = 0) -> int:
    """Do one step of housekeeping up to this step of it; its exit code."""
    return _exit_of(_keep_house, variables, fault, now_us, days)


def _exit_of(work: Callable[..., Any], variables: dict[str, str], fault: str, *arguments: Any) -> int:
    process = _forks.Process(target=_work, args=(work, variables | {archiver.FAULT_VARIABLE: fault}, arguments))
    process.start()
    process.join(PATIENCE)
    if process.exitcode is None:
        process.kill()
        raise AssertionError(f"after {PATIENCE} s it had not reached {fault!r}")
    return process.exitcode


def _work(work: Callable[..., Any], variables: dict[str, str], arguments: tuple[Any, ...]) -> None:
    os.environ.update(variables)
    work(*arguments)


def _keep_house(now_us: int, days: float) -> None:
    archive = BrokerArchive(Path(os.environ["SLUICE_DATA"]) / "archive", BROKER)
    fault = archiver.fault_injector(os.environ[archiver.FAULT_VARIABLE])
    Housekeeping(archive, ArchiveLimits(days=days), (), fault).step(now_us)
