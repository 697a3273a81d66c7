"""Two results of one kind side by side: what differs, row by row. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analytics.model.wording import MINUS

#: Rows of a table that a comparison shows: those that differ most.
SHOWN = 200
#: Units of columns (see ResultColumn) that are no amounts: moments, and changes, which are differences already.
NO_AMOUNTS = ("time", "change")


@dataclass(frozen=True, slots=True)
class ValuePair:
    """A number before and after; None where the row is missing."""

    before: float | None
    after: float | None

    @property
    def difference(self) -> float:
        """Return by how much the value grew; a missing row counts as 0."""
        return (self.after or 0) - (self.before or 0)

    @property
    def share(self) -> float | None:
        """Return the difference relative to the earlier value; None if that is 0."""
        return self.difference / self.before if self.before else None

    @property
    def css_class(self) -> str:
        """Return the CSS class for the direction of the difference."""
        return "more-than" if self.difference > 0 else "less-than" if self.difference < 0 else "muted"

    @property
    def percent(self) -> str:
        """Format the relative difference: `+12%`, or `new` and `removed`."""
        if self.before is None and self.after is not None:
            return "new"
        if self.after is None and self.before is not None:
            return "removed"
        if self.share is None or not self.difference:
            return ""
        digits = 0 if abs(self.share) >= 0.01 else 2
        return f"{self.share:+.{digits}%}".replace("-", MINUS)


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A row of the comparison: what it is about, and its numbers."""

    key: tuple[str, ...]
    pairs: tuple[ValuePair, ...]


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """Comparison of one table of two results, row by row."""

    title: str
    keys: tuple[Mapping[str, str], ...]
    numbers: tuple[Mapping[str, str], ...]
    lines: tuple[ComparisonRow, ...]
    total: int  #: lines that differ
    same: int  #: lines that do not


def comparable_columns(table: Mapping[str, Any]) -> tuple[list[Mapping[str, str]], list[Mapping[str, str]]] | None:
    """Return the key columns and the number columns of a stored table; None if it cannot be compared.

    A table by time has other rows in every window, and moments have no difference worth a column.
    """
    columns = table["columns"]
    keys = [column for column in columns if not column["unit"]]
    numbers = [column for column in columns if column["unit"] and column["unit"] not in NO_AMOUNTS]
    if not keys or not numbers or columns[0]["unit"] == "time" or columns[0]["name"] == "minute":
        return None
    return keys, numbers


def compare(
    table: Mapping[str, Any], before: Iterable[tuple[Any, ...]], after: Iterable[tuple[Any, ...]]
) -> ResultComparison | None:
    """Return a table with its rows before and after: the values of its keys, then those of its numbers."""
    if (columns := comparable_columns(table)) is None:
        return None
    keys, numbers = columns
    old, new = _by_key(before, len(keys)), _by_key(after, len(keys))
    none = (None,) * len(numbers)
    lines = [
        ComparisonRow(key, tuple(ValuePair(*pair) for pair in zip(old.get(key, none), new.get(key, none), strict=True)))
        for key in {**old, **new}
    ]
    different = [line for line in lines if any(pair.before != pair.after for pair in line.pairs)]
    different.sort(key=lambda line: [-abs(pair.difference) for pair in line.pairs])
    shown = tuple(different[:SHOWN])
    return ResultComparison(
        table["title"], tuple(keys), tuple(numbers), shown, len(different), len(lines) - len(different)
    )


def _by_key(rows: Iterable[tuple[Any, ...]], width: int) -> dict[tuple[str, ...], tuple[Any, ...]]:
    return {tuple(str("" if each is None else each) for each in row[:width]): row[width:] for row in rows}
