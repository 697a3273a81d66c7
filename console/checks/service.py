"""Run the checks for pages and API, and keep what they found last in this process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from brokerapp.checks import runner
from brokerapp.checks.installation import of_environment
from brokerapp.checks.results import CheckResult, Finding
from brokerapp.checks.table import DISK
from brokerapp.system.environment import Environment
from console.checks.table import INSTALLATION_CHECKS

_KEY = "checks"
#: Who asks while the checks run waits for their results: two runs at once would distort the times that they measure.
_running = threading.Lock()


@dataclass(frozen=True, slots=True)
class CheckRun:
    """Results of all checks, and when they were taken."""

    taken: datetime
    results: tuple[CheckResult, ...]


def run() -> CheckRun:
    """Run all checks now, or wait for those that another request runs; it takes some seconds."""
    before = latest()
    with _running:
        found = latest()
        if found is not None and (before is None or found.taken != before.taken):
            return found
        done = CheckRun(timezone.now(), tuple(_results(settings.SLUICE)))
        cache.set(_KEY, done, timeout=None)
        return done


def _results(environment: Environment) -> list[CheckResult]:
    """Return the results of all checks; a data folder that does not answer, without which none can run, is one."""
    try:
        here = runner.read_within_limit(of_environment, environment)
    except TimeoutError:
        finding = Finding.failure(
            f"{environment.data} did not answer within {runner.LIMIT_SECONDS:g} s: nothing else was checked.",
            "Look for a disk that does not answer.",
        )
        return [CheckResult("data", DISK, "Data folder", (finding,), round(runner.LIMIT_SECONDS * 1000))]
    return runner.run_checks(INSTALLATION_CHECKS, here)


def latest() -> CheckRun | None:
    """Return the last results; None where none were taken since the process started."""
    found: CheckRun | None = cache.get(_KEY)
    return found
