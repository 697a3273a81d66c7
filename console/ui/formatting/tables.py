"""Sort, search, filter and page tables of rows in memory, as the URL says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from console.ui.formatting.url_query import parse_integer, query_string

T = TypeVar("T")

#: Rows of a page.
SIZE = 50
#: The filter chip that shows the user's favorites.
STARRED = "starred"


@dataclass(frozen=True)
class TableColumn(Generic[T]):
    """Describe a column: its name in the URL, its label, and the sort key of rows."""

    name: str
    label: str
    key: Callable[[T], Any]
    explanation: str = ""
    is_number: bool = False
    unit: str = ""  #: the second line of its head


@dataclass(frozen=True)
class Table(Generic[T]):
    """Describe a table: columns, filter chips, searchable text and favorites of rows."""

    columns: tuple[TableColumn[T], ...]
    chips: Mapping[str, tuple[str, Callable[[T], bool]]]  #: besides those for all rows and for favorites
    text: Callable[[T], str]
    subject: Callable[[T], str]
    sizes: tuple[int, ...] = ()  #: rows of a page to choose from

    def page(
        self,
        rows: Iterable[T],
        query: Mapping[str, str],
        starred: frozenset[str] = frozenset(),
        kept: Mapping[str, str] | None = None,
    ) -> TablePage[T]:
        """Return the rows that a URL's query selects; invalid values fall back to their defaults.

        The parameters `kept` are part of every link.
        """
        of_all = {"": ("All", lambda row: True), STARRED: ("Favorites", lambda row: self.subject(row) in starred)}
        all_chips = {**of_all, **self.chips}
        by_name = {each.name: each for each in self.columns}
        default = self.columns[0]
        text, chip, sort = query.get("q", "").strip(), query.get("show", ""), query.get("sort", "")
        chip = chip if chip in all_chips else ""
        column = by_name.get(sort.removeprefix("-"))
        rows = list(rows)
        found = [row for row in rows if text.lower() in self.text(row).lower()] if text else rows
        chips = [(name, label, sum(map(is_in, found)) if name else len(found))
                 for name, (label, is_in) in all_chips.items()]  # fmt: skip
        found = [row for row in found if all_chips[chip][1](row)]
        found.sort(key=default.key)
        if column is not None:
            found.sort(key=column.key, reverse=sort.startswith("-"))
        size = size if (size := parse_integer(query.get("size"))) in self.sizes else SIZE
        pages = max(1, -(-len(found) // size))
        number = min(max(1, parse_integer(query.get("page"), 1)), pages)
        shown = found[(number - 1) * size : number * size]
        marked = [(row, subject := self.subject(row), subject in starred) for row in shown]
        return TablePage(
            self, shown, marked, len(found), len(rows), number, pages, size, chips, text, chip,
            sort if column else default.name, kept or {},
        )  # fmt: skip


@dataclass(frozen=True)
class TablePage(Generic[T]):
    """Hold the rows shown, the totals, and the state that its links are made of."""

    table: Table[T]
    rows: list[T]
    marked: list[tuple[T, str, bool]]  #: the rows, each with the subject of its favorite, and whether it is one
    total: int  #: rows that match
    existing: int
    number: int
    pages: int
    size: int
    counts: list[tuple[str, str, int]]  #: of the chips: name, label, rows
    text: str
    chip: str
    sort: str
    kept: Mapping[str, str]  #: further parameters of the URL

    def url(self, **changes: Any) -> str:
        """Return the query string with these changes; all but a page number go to the first page."""
        values = {**self.kept, "q": self.text, "show": self.chip, "sort": self.sort, "page": 1, "size": self.size}
        defaults = (("page", 1), ("sort", self.table.columns[0].name), ("size", SIZE))
        return query_string(**{name: each for name, each in (values | changes).items() if (name, each) not in defaults})

    @property
    def header_cells(self) -> list[tuple[TableColumn[T], str, str]]:
        """Return columns, each with its sort link and aria-sort."""
        heads = ((each, *sort_header(each.name, self.sort, each.is_number)) for each in self.table.columns)
        return [(column, self.url(sort=wanted), order) for column, wanted, order in heads]

    @property
    def chips(self) -> list[tuple[str, int, str, bool]]:
        """Return filter chips: label, count, link, and whether it is selected."""
        return [(label, count, self.url(show=name), name == self.chip) for name, label, count in self.counts]

    @property
    def sizes(self) -> list[tuple[int, str, bool]]:
        """Return page sizes: rows, link, and whether it is selected."""
        return [(size, self.url(size=size), size == self.size) for size in self.table.sizes]

    @property
    def first(self) -> int:
        """Return the number of the first row shown, from 1."""
        return (self.number - 1) * self.size + 1

    @property
    def last(self) -> int:
        """Return the number of the last row shown."""
        return self.first + len(self.rows) - 1

    @property
    def previous(self) -> str:
        """Return the link to the previous page; "" on the first one."""
        return self.url(page=self.number - 1) if self.number > 1 else ""

    @property
    def next(self) -> str:
        """Return the link to the next page; "" on the last one."""
        return self.url(page=self.number + 1) if self.number < self.pages else ""


def sort_header(name: str, sort: str, is_number: bool) -> tuple[str, str]:
    """Return what a click on a column's head sorts by, and its aria-sort. Numbers begin with the largest."""
    if sort.removeprefix("-") != name:
        return f"-{name}" if is_number else name, "none"
    return (name, "descending") if sort.startswith("-") else (f"-{name}", "ascending")
