"""Write results of checks as text for a terminal, or as JSON for programs. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from brokerapp.checks.results import CheckResult, Finding, Level, exit_code, summary

WIDTH = 110
_MARKS = {Level.OK: "OK", Level.WARNING: "WARNING", Level.FAILURE: "FAILURE", Level.SKIPPED: "skipped"}
_INDENT = " " * 32


def text_report(results: Sequence[CheckResult], about: Mapping[str, str]) -> str:
    """Return the report: a line of what is checked, a section for each kind of checks, and the sums."""
    lines = [", ".join(f"{name} {value}" for name, value in about.items())]
    for section, in_section in groupby(results, lambda each: each.section):
        lines += ["", section]
        for _, alike in groupby(in_section, _findings_alike):
            lines += _lines(list(alike))
    return "\n".join([*lines, "", summary(results)])


def _findings_alike(result: CheckResult) -> tuple[Finding, ...] | str:
    """Return by what results are shown as one: those that follow each other and were skipped for the same reason."""
    return result.findings if result.level is Level.SKIPPED else result.id


def _lines(results: Sequence[CheckResult]) -> Iterator[str]:
    title = results[0].title if len(results) == 1 else f"{len(results)} checks"
    for finding in results[0].findings:
        yield from _finding_lines(title, finding)
        title = ""


def _finding_lines(title: str, finding: Finding) -> Iterator[str]:
    head = f"  {title:<19} {_MARKS[finding.level]:<9} "
    yield textwrap.fill(finding.text, WIDTH, initial_indent=head, subsequent_indent=_INDENT, break_long_words=False)
    if finding.action:
        yield textwrap.fill(
            finding.action, WIDTH, initial_indent=f"{_INDENT}-> ", subsequent_indent=_INDENT + "   ",
            break_long_words=False,
        )  # fmt: skip


def json_report(results: Sequence[CheckResult], about: Mapping[str, str]) -> dict[str, Any]:
    """Return the report as values that JSON can hold."""
    return {
        **about,
        "level": "failure" if exit_code(results) else "ok",
        "summary": summary(results),
        "checks": [result_json(each) for each in results],
    }


def result_json(result: CheckResult) -> dict[str, Any]:
    """Return one result as values that JSON can hold."""
    return {
        "id": result.id,
        "section": result.section,
        "title": result.title,
        "level": result.level.value,
        "milliseconds": result.milliseconds,
        "findings": [{"level": each.level.value, "text": each.text, "action": each.action} for each in result.findings],
    }
