"""Draw the chart that a statement's author chose from the rows of its result. Pure.

A column of times along x makes lines or areas, any other column bars; with a series there is one for each of its
values. All columns of numbers that are chosen share one axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from analytics.results import charts
from brokerapp.errors import RequestRefused

#: Kinds of charts and what pages call them.
KINDS = {"": "No chart", "line": "Lines", "area": "Stacked areas", "bar": "Bars", "stacked": "Stacked bars"}
#: Points along x: more would be closer than pixels; and bars, which a reader can still compare.
MAX_POINTS, MAX_BARS = 2_000, 50


@dataclass(frozen=True, slots=True)
class ChartChoice:
    """What is drawn: the kind, and the names of columns."""

    kind: str
    x: str
    y: str
    series: str = ""

    @staticmethod
    def from_parameters(given: Mapping[str, str]) -> ChartChoice | None:
        """Return the choice of a request; None for no chart."""
        if not given.get("chart"):
            return None
        return ChartChoice(given["chart"], given.get("x", ""), given.get("y", ""), given.get("series", ""))

    @property
    def title(self) -> str:
        """Return the heading of the chart."""
        of = f", by {self.series}" if self.series else ""
        return f"{self.y} by {self.x}{of}"


def draw(choice: ChartChoice, rows: pa.Table) -> dict[str, Any]:
    """Return the figure of a result. Raises RequestRefused, which names the column that does not fit."""
    for name in filter(None, (choice.x, choice.y, choice.series)):
        if name not in rows.schema.names:
            raise RequestRefused(f"the result has no column {name!r}")
    for label, name in (("x", choice.x), ("y", choice.y)):
        if not name:
            raise RequestRefused(f"no column is chosen for {label}")
    if not _is_number(rows.schema.field(choice.y).type):
        raise RequestRefused(f"the column {choice.y!r} has no numbers")
    is_time = pa.types.is_timestamp(rows.schema.field(choice.x).type) or pa.types.is_date(
        rows.schema.field(choice.x).type
    )
    if choice.kind in ("line", "area") and not is_time:
        raise RequestRefused(f"{KINDS[choice.kind].lower()} need a column of times for x, and {choice.x!r} has none")
    names, series = _series(choice, rows, MAX_POINTS if is_time else MAX_BARS)
    if choice.kind == "line":
        return charts.lines(names, series, choice.y)
    if choice.kind == "area":
        return charts.over_time(names, {name: [each or 0 for each in row] for name, row in series.items()}, choice.y)
    return charts.bars(names, series, choice.y, log=False, stacked=choice.kind == "stacked")


def _series(choice: ChartChoice, rows: pa.Table, most: int) -> tuple[list[str], dict[str, list[float | None]]]:
    """Return the texts along x, and the values of each series there; of several at one place their sum."""
    along, values = rows[choice.x].to_pylist(), rows[choice.y].to_pylist()
    named = rows[choice.series].to_pylist() if choice.series else [choice.y] * len(along)
    places = list(dict.fromkeys(along))
    if choice.kind in ("line", "area"):
        places = sorted(each for each in places if each is not None)
    number = {each: at for at, each in enumerate(places[:most])}
    sums: dict[str, list[float | None]] = {}
    for x, y, name in zip(along, values, named, strict=True):
        if x in number and y is not None:
            row = sums.setdefault(_text(name), [None] * len(number))
            row[number[x]] = (row[number[x]] or 0) + y
    largest = sorted(sums, key=lambda name: (-sum(each or 0 for each in sums[name]), name))
    return [_text(each) for each in number], {name: sums[name] for name in largest[: len(charts.COLORWAY)]}


def _is_number(type: pa.DataType) -> bool:
    return pa.types.is_integer(type) or pa.types.is_floating(type)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else str(value)
