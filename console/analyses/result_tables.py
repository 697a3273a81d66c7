"""Show the tables of a result: sorted and paged by the URL, with names linked to live pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.urls import reverse

from analytics.results import table_pages
from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import NAMED_KINDS, Destination
from console.ui.formatting import number_format
from console.ui.formatting.tables import sort_header
from console.ui.formatting.url_query import parse_integer, query_string

#: Rows of a table that a page shows.
SIZE = 25
#: What stands below the heading of a column in this unit.
UNITS = {"messages": "messages", "bytes": "size", "rate": "msg/s"}
_TEXTS = ("", "time")


@dataclass(frozen=True, slots=True)
class ResultCell:
    """One value: as it reads, where it leads to, and what it is beside it."""

    text: str
    url: str
    label: str
    is_number: bool
    is_time: bool
    kind: str = ""  #: queue or topic, where the text is the name of one


@dataclass(frozen=True, slots=True)
class ColumnHeader:
    """The head of a column, with the link that sorts by it."""

    label: str
    unit: str
    is_number: bool
    url: str
    sort: str  #: of aria-sort


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of a result's table, with links to sort and to turn the page."""

    id: str
    title: str
    heads: list[ColumnHeader]
    rows: list[list[ResultCell]]
    total: int
    first: int
    previous: str
    next: str

    @property
    def last(self) -> int:
        """Number of the last row shown."""
        return self.first + len(self.rows) - 1


def result_pages(result: Mapping[str, Any], folder: Path, query: Mapping[str, str]) -> list[ResultPage]:
    """Return the tables of a result, at the pages and in the orders of the URL's query."""
    return [_page(result, table, number, folder, query) for number, table in enumerate(result["tables"])]


def _page(result: Mapping[str, Any], table: Mapping[str, Any], number: int, folder: Path, query: Mapping) -> ResultPage:
    id, columns = f"t{number}", table["columns"]
    names = [each["name"] for each in columns]
    sort, at = query.get(f"{id}.sort", ""), max(1, parse_integer(query.get(f"{id}.page"), 1))
    sort = sort if sort.removeprefix("-") in names else ""
    start = (at - 1) * SIZE
    try:
        rows, total = table_pages.read_page(folder / table.get("file", ""), names, sort, start, SIZE)
    except table_pages.UNREADABLE:  # the first rows are in the result itself
        rows, total = table["rows"][start : start + SIZE], len(table["rows"])

    def url(**changes: Any) -> str:
        ours = {f"{id}.sort": sort, f"{id}.page": at if at > 1 else ""}
        ours |= {f"{id}.{name}": value for name, value in changes.items()}
        others = {name: value for name, value in query.items() if re.fullmatch(r"t\d+\.(sort|page)|from|to", name)}
        return query_string(**(others | ours)) + f"#{id}"

    return ResultPage(
        id=id,
        title=table["title"],
        heads=[_head(each, sort, url) for each in columns],
        rows=[cells(row, columns, result["window"]) for row in rows],
        total=total,
        first=start + 1,
        previous=url(page=at - 1 if at > 2 else "") if at > 1 else "",
        next=url(page=at + 1) if start + SIZE < total else "",
    )


def _head(column: Mapping[str, str], sort: str, url: Any) -> ColumnHeader:
    name, number = column["name"], column["unit"] not in _TEXTS
    next_sort, order = sort_header(name, sort, number)
    return ColumnHeader(column["label"], UNITS.get(column["unit"], ""), number, url(sort=next_sort, page=""), order)


def cells(row: Sequence[Any], columns: Sequence[Mapping[str, str]], window: Mapping[str, int]) -> list[ResultCell]:
    """Build the cells of a row of a result's table."""
    return [_cell(value, column, window) for value, column in zip(row, columns, strict=True)]


def _cell(value: Any, column: Mapping[str, str], window: Mapping[str, int]) -> ResultCell:
    text = number_format.format_cell(value, column)
    link = link_to(column.get("about", ""), value, window) if isinstance(value, str) else ""
    named = re.fullmatch("(queue|topic)://(.+)", text) if link else None
    kind, text = named.groups() if named else ("", text)
    return ResultCell(text, link, column["label"], column["unit"] not in _TEXTS, column["unit"] == "time", kind)


def link_to(about: str, name: str, window: Mapping[str, int]) -> str:
    """Return the live page of what a text names, at the same window; "" where there is none."""
    match about:
        case "destination":
            return _destination(name, window)
        case "client":
            return reverse("connections") + query_string(q=name)
        case "message":
            return reverse("message-page", kwargs={"id": name})
    return ""


def _destination(name: str, window: Mapping[str, int]) -> str:
    url = destination_url(name)
    return url + window_query(window) if url and url != reverse("subscribers") else url


def destination_url(name: str) -> str:
    """Return the live page of a destination in native form; "" where there is none, and for other names."""
    if "://" not in name:
        return ""
    try:
        found = Destination.parse(name)
    except InvalidDestination:
        return ""
    if found.kind not in NAMED_KINDS or found.is_pattern:
        return reverse("subscribers") if name.startswith("subscription://") else ""
    return reverse(found.kind, kwargs={"name": found.name})


def window_query(window: Mapping[str, int]) -> str:
    """Return the query by which pages show the window of a result."""
    since, until = window["since_us"] // 1_000_000, -(-window["until_us"] // 1_000_000)
    return query_string(**{"from": since, "to": until})
