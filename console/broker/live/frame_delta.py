"""Compute which cells of a channel a tab does not have yet. Pure."""

from __future__ import annotations

from typing import Any

Cells = dict[str, Any]


def delta(before: Cells, now: Cells) -> Cells:
    """Return the cells that are new or differ; of nested cells (the rows of a list) only those that differ."""
    changed: Cells = {}
    for name, value in now.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := delta(old, value):
                changed[name] = inner
        elif name not in before or old != value:
            changed[name] = value
    return changed


def merge_delta(before: Cells, changed: Cells) -> Cells:
    """Merge a delta into the cells that a tab knows."""
    after = dict(before)
    for name, value in changed.items():
        old = after.get(name)
        is_nested = isinstance(value, dict) and isinstance(old, dict)
        after[name] = merge_delta(old, value) if is_nested else value
    return after
