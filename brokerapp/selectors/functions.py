"""The text functions of ActiveMQ's selectors, on Python's regular expressions (Java's differ in rare constructs)."""

from __future__ import annotations

import re

_GROUP = re.compile(r"\$([0-9])")


def template(pattern: re.Pattern[str], replacement: str) -> str:
    """A replacement with `$1` for the first group, as Python's `sub` wants it; re.error if there is no such group."""
    for group in map(int, _GROUP.findall(replacement)):
        if group > pattern.groups:
            raise re.error(f"there is no group {group}")
    return _GROUP.sub(r"\\g<\1>", replacement.replace("\\", "\\\\"))


def split(pattern: re.Pattern[str], text: str) -> list[str]:
    """The parts of the text between what the pattern matches, empty ones at the end left out, as Java has it."""
    parts, position = [], 0
    for match in pattern.finditer(text):
        if match.end() > 0:
            parts.append(text[position : match.start()])
            position = match.end()
    if not parts:
        return [text]
    parts.append(text[position:])
    while parts and not parts[-1]:
        parts.pop()
    return parts
