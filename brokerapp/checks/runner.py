"""Run checks: each has a time limit, and one that hangs or fails does not stop the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from brokerapp.checks.results import Check, CheckResult, Finding

#: Seconds that a measurement may take. The longest ones wait for servers, at most 5 s for each.
LIMIT_SECONDS = 15.0


class _Measurement:
    """What a function returned, or raised, in a thread of its own, which is left behind when it takes too long."""

    def __init__(self, measure: Callable[[Any], Any], subject: Any) -> None:
        self._measure, self._subject = measure, subject
        self._value: Any = None
        self._problem = ""
        self._seconds = 0.0
        self._began = time.monotonic()
        # A daemon: a process may end while it hangs, as a mounted disk may.
        self._thread = threading.Thread(target=self._run, name=f"check {measure.__name__}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._measure(self._subject)
        except Exception as error:  # whatever it is, it must not hide what the other checks found
            self._problem = f"{type(error).__name__}: {error}"
        self._seconds = time.monotonic() - self._began

    def wait(self, limit: float) -> None:
        """Wait until it is done, for no longer than so many seconds since it began."""
        self._thread.join(max(0.0, self._began + limit - time.monotonic()))

    def judged(self, check: Check, limit: float) -> CheckResult:
        """Return the result of a check that needs this measurement."""
        if self._thread.is_alive():
            text = f"The check did not finish within {limit:g} seconds."
            return _result(check, [Finding.failure(text, "Look for a server or disk that does not answer.")], limit)
        if self._problem:
            text = f"The check could not be carried out: {self._problem}."
            return _result(check, [Finding.failure(text, "Correct this, then check again.")], self._seconds)
        return _result(check, check.judge(self._value), self._seconds)


def _result(check: Check, findings: Iterable[Finding], seconds: float) -> CheckResult:
    return CheckResult(check.id, check.section, check.title, tuple(findings), round(seconds * 1000))


def run_checks(checks: Sequence[Check], subject: Any, limit: float = LIMIT_SECONDS) -> list[CheckResult]:
    """Return the results of these checks, in their order. Those that measure times come first, one after another."""
    measurements: dict[Callable[[Any], Any], _Measurement] = {}
    for check in checks:
        if check.is_timed and check.measure not in measurements:
            measurements[check.measure] = _Measurement(check.measure, subject)
            measurements[check.measure].wait(limit)
    for check in checks:
        if check.measure not in measurements:
            measurements[check.measure] = _Measurement(check.measure, subject)
    for each in measurements.values():
        each.wait(limit)
    return [measurements[check.measure].judged(check, limit) for check in checks]
