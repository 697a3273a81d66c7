"""Findings of checks: what was found, how serious it is, and what to do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How serious a finding is, from the least to the most serious."""

    SKIPPED = "skipped"
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


_ORDER = list(Level)
#: What to do about what an installation does not have yet that was started just now.
CHECK_LATER = "Check again in a minute."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, as a sentence; `action` says what to do where it is not in order."""

    level: Level
    text: str
    action: str = ""

    @staticmethod
    def ok(text: str) -> Finding:
        """Return a finding that is in order."""
        return Finding(Level.OK, text)

    @staticmethod
    def warning(text: str, action: str) -> Finding:
        """Return a finding that works, but should be changed."""
        return Finding(Level.WARNING, text, action)

    @staticmethod
    def failure(text: str, action: str) -> Finding:
        """Return a finding by which something does not work, or messages may be lost."""
        return Finding(Level.FAILURE, text, action)

    @staticmethod
    def skipped(text: str) -> Finding:
        """Return that something was not checked, and why."""
        return Finding(Level.SKIPPED, text)


def worst(levels: Iterable[Level]) -> Level:
    """Return the most serious of these levels; OK where there are none."""
    return max(levels, key=_ORDER.index, default=Level.OK)


@dataclass(frozen=True, slots=True)
class Check:
    """A row of a table of checks: measures with I/O, then judges what was measured without.

    Checks with the same `measure` share what it returns. `is_timed`: it measures times, so nothing else runs meanwhile.
    """

    id: str
    section: str
    title: str
    measure: Callable[[Any], Any]
    judge: Callable[[Any], Iterable[Finding]]
    is_timed: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found."""

    id: str
    section: str
    title: str
    findings: tuple[Finding, ...]
    milliseconds: int = 0

    @property
    def level(self) -> Level:
        """Return the most serious level of its findings."""
        return worst(each.level for each in self.findings)


def exit_code(results: Sequence[CheckResult]) -> int:
    """Return 1 where a check failed, else 0: warnings alone are no failure."""
    return int(any(each.level is Level.FAILURE for each in results))


def summary(results: Sequence[CheckResult]) -> str:
    """Return how many findings there are of each level, as in `2 failures, 1 warning, 20 OK, 3 skipped`."""
    counts = Counter(each.level for result in results for each in result.findings)
    failures, warnings = counts[Level.FAILURE], counts[Level.WARNING]
    parts = [
        f"{failures} failure{'s' * (failures != 1)}",
        f"{warnings} warning{'s' * (warnings != 1)}",
        f"{counts[Level.OK]} OK",
    ]
    if counts[Level.SKIPPED]:
        parts.append(f"{counts[Level.SKIPPED]} skipped")
    return ", ".join(parts)


def size_in_words(count: int) -> str:
    """Return a number of bytes as findings show it, such as 1.5 GiB or 12 MiB."""
    return f"{count / 1024**3:.1f} GiB" if count >= 1024**3 else f"{count / 1024**2:.0f} MiB"
