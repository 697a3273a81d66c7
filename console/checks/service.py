"""Run the checks for pages and API, and keep what they found last in this process."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from brokerapp.checks.installation import of_environment
from brokerapp.checks.results import CheckResult
from brokerapp.checks.runner import run_checks
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
        done = CheckRun(timezone.now(), tuple(run_checks(INSTALLATION_CHECKS, of_environment(settings.SLUICE))))
        cache.set(_KEY, done, timeout=None)
        return done


def latest() -> CheckRun | None:
    """Return the last results; None where none were taken since the process started."""
    found: CheckRun | None = cache.get(_KEY)
    return found
