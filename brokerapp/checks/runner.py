"""Run checks: each has a time limit, and one that hangs or fails does not stop the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from brokerapp.checks.results import Check, CheckResult, Finding

S, T = TypeVar("S"), TypeVar("T")
#: Seconds that a measurement may take. The longest ones wait for servers, at most 5 s for each.
LIMIT_SECONDS = 15.0

#: Measurements that took too long, and may still hang: they are not begun a second time meanwhile.
_hanging: list[_Measurement] = []
_hanging_lock = threading.Lock()


class _Measurement:
    """What a function returned, or raised, in a thread of its own, which is left behind when it takes too long."""

    def __init__(self, measure: Callable[[Any], Any], subject: Any) -> None:
        self._measure, self._subject = measure, subject
        self._value: Any = None
        self._error: Exception | None = None
        self._seconds = 0.0
        self._began = time.monotonic()
        # A daemon: a process may end while it hangs, as a mounted disk may.
        self._thread = threading.Thread(target=self._run, name=f"check {measure.__name__}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._measure(self._subject)
        except Exception as error:  # whatever it is, it must not hide what the other checks found
            self._error = error
        self._seconds = time.monotonic() - self._began

    @property
    def is_running(self) -> bool:
        """Return whether it has not finished yet."""
        return self._thread.is_alive()

    def is_of(self, measure: Callable[[Any], Any], subject: Any) -> bool:
        """Return whether it measures this of this subject."""
        return self._measure is measure and self._subject == subject

    def wait(self, limit: float) -> None:
        """Wait until it is done, for no longer than so many seconds since it began."""
        self._thread.join(max(0.0, self._began + limit - time.monotonic()))

    def result(self) -> Any:
        """Return what was measured, once it is done. Raises what the function raised."""
        if self._error is not None:
            raise self._error
        return self._value

    def judged(self, check: Check, limit: float) -> CheckResult:
        """Return the result of a check that needs this measurement."""
        if self.is_running:
            waited = max(limit, time.monotonic() - self._began)
            text = f"The check did not answer within {round(waited, 1):g} s."
            return _result(check, [Finding.failure(text, "Look for a server or disk that does not answer.")], waited)
        problem = _described(self._error) if self._error is not None else ""
        if not problem:
            try:
                return _result(check, check.judge(self._value), self._seconds)
            except Exception as error:  # as a value that a server of another kind answered with
                problem = _described(error)
        text = f"The check could not be carried out: {problem}."
        return _result(check, [Finding.failure(text, "Correct this, then check again.")], self._seconds)


def read_within_limit(read: Callable[[S], T], subject: S) -> T:
    """Return what a function returns, whose files may be on a disk that does not answer.

    Raises TimeoutError where it takes too long, and what the function raises. While it hangs it is not called again for
    the same subject.
    """
    reading = _begun(read, subject)
    reading.wait(LIMIT_SECONDS)
    if reading.is_running:
        _remember_hanging([reading])
        raise TimeoutError(f"not within {LIMIT_SECONDS:g} s")
    value: T = reading.result()
    return value


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _begun(measure: Callable[[Any], Any], subject: Any) -> _Measurement:
    """Return the measurement that still hangs since it was begun earlier, or else begin one."""
    with _hanging_lock:
        _hanging[:] = [each for each in _hanging if each.is_running]
        earlier = next((each for each in _hanging if each.is_of(measure, subject)), None)
    return earlier or _Measurement(measure, subject)


def _remember_hanging(measurements: Iterable[_Measurement]) -> None:
    with _hanging_lock:
        _hanging.extend(each for each in measurements if each.is_running and each not in _hanging)


def _result(check: Check, findings: Iterable[Finding], seconds: float) -> CheckResult:
    return CheckResult(check.id, check.section, check.title, tuple(findings), round(seconds * 1000))


def run_checks(checks: Sequence[Check], subject: Any, limit: float = LIMIT_SECONDS) -> list[CheckResult]:
    """Return the results of these checks, in their order. Those that measure times come first, one after another."""
    measurements: dict[Callable[[Any], Any], _Measurement] = {}
    for check in checks:
        if check.is_timed and check.measure not in measurements:
            measurements[check.measure] = _begun(check.measure, subject)
            measurements[check.measure].wait(limit)
    for check in checks:
        if check.measure not in measurements:
            measurements[check.measure] = _begun(check.measure, subject)
    for each in measurements.values():
        each.wait(limit)
    _remember_hanging(measurements.values())
    return [measurements[check.measure].judged(check, limit) for check in checks]
