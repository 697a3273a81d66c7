"""The text functions of ActiveMQ's selectors, with Python's regular expressions (Java's differ in rare constructs).

Some expressions would run practically without end for some texts, and the node does nothing else meanwhile. So each
search has a time limit; when it is exceeded, the function has no result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from brokerapp.selectors.matching.overruns import SlowConditionTracker

#: Seconds a search may take at most. Some microseconds are usual.
SECONDS = 0.02
#: Characters a text may have after a replacement: each match may put in much more than it takes out.
MAX_TEXT = 1 << 20

T = TypeVar("T")

_GROUP = re.compile(r"\$([0-9])")


class RegexPattern:
    """A regular expression. Raises ValueError for what is none, and for a replacement that names a missing group."""

    def __init__(self, expression: str, replacement: str = "") -> None:
        import regex  # here: most selectors have no such function, and brokerctl is to start at once

        try:
            self._compiled = regex.compile(expression)
        except (regex.error, OverflowError, RecursionError) as wrong:
            raise ValueError(str(wrong)) from wrong
        groups = [int(each) for each in _GROUP.findall(replacement)]
        for group in groups:
            if group > self._compiled.groups:
                raise ValueError(f"unknown group {group}")
        self._template = _GROUP.sub(r"\\g<\1>", replacement.replace("\\", "\\\\"))
        self._size = len(replacement), len(groups)
        self._tracker = SlowConditionTracker(f"the regular expression {expression!r}")

    def is_in(self, text: str) -> bool | None:
        """Return whether it matches a part of the text."""
        return self._in_time(lambda moment: self._compiled.search(text, timeout=moment) is not None)

    def replaced(self, text: str) -> str | None:
        """Replace all matches; return None also when the result is too long."""
        letters, groups = self._size
        if letters + groups * len(text) > MAX_TEXT:
            return None
        room = MAX_TEXT - len(text)

        def expand(match: Any) -> str:
            nonlocal room
            expanded: str = match.expand(self._template)
            room -= len(expanded)
            if room < 0:
                raise _TooLongError
            return expanded

        try:
            return self._in_time(lambda moment: self._compiled.sub(expand, text, timeout=moment))
        except _TooLongError:
            return None

    def parts(self, text: str) -> list[str] | None:
        """Split the text at its matches, without empty parts at the end, as Java does."""
        return self._in_time(lambda moment: self._split(text, moment))

    def _split(self, text: str, moment: float) -> list[str]:
        parts, position = [], 0
        for match in self._compiled.finditer(text, timeout=moment):
            if match.end() > 0:
                parts.append(text[position : match.start()])
                position = match.end()
        if not parts:
            return [text]
        parts.append(text[position:])
        while parts and not parts[-1]:
            parts.pop()
        return parts

    def _in_time(self, search: Callable[[float], T]) -> T | None:
        if self._tracker.is_disabled:
            return None
        moment = self._tracker.moment(SECONDS)
        try:
            found = search(moment)
        except TimeoutError:
            self._tracker.happened(moment)
            return None
        self._tracker.record_success()
        return found


class _TooLongError(Exception):
    """A replacement makes too much of a text."""
