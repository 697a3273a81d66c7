"""Sort, search, filter and page tables of rows in memory, as the URL says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

T = TypeVar("T")

#: Rows a page shows.
SIZE = 50
#: The chip that shows what a user has starred.
STARRED = "starred"


@dataclass(frozen=True)
class TableColumn(Generic[T]):
    """Describe a column: its name in the URL, its label, and the sort key of rows."""

    name: str
    label: str
    key: Callable[[T], Any]
    explanation: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Table(Generic[T]):
    """Describe a table: columns, filter chips, searchable text and favorites of rows."""

    columns: tuple[TableColumn[T], ...]
    chips: Mapping[str, tuple[str, Callable[[T], bool]]]  #: beside those for all rows, and for those with a star
    text: Callable[[T], str]
    subject: Callable[[T], str]

    def page(
        self,
        rows: Iterable[T],
        query: Mapping[str, str],
        starred: frozenset[str] = frozenset(),
        kept: Mapping[str, str] | None = None,
    ) -> TablePage[T]:
        """The rows a URL's query shows; what makes no sense in it falls back to its default. What is `kept` stands in
        all its links."""
        of_all = {"": ("All", lambda row: True), STARRED: ("Starred", lambda row: self.subject(row) in starred)}
        all_chips = {**of_all, **self.chips}
        text, chip = query.get("q", "").strip(), query.get("show", "")
        chip = chip if chip in all_chips else ""
        sort = query.get("sort", "")
        names = {each.name for each in self.columns}
        sort = sort if sort.removeprefix("-") in names else self.columns[0].name
        rows = list(rows)
        found = [row for row in rows if text.lower() in self.text(row).lower()] if text else rows
        chips = [(name, label, sum(map(is_in, found))) for name, (label, is_in) in all_chips.items()]
        found = [row for row in found if all_chips[chip][1](row)]
        found.sort(key=self.columns[0].key)
        column = next(each for each in self.columns if each.name == sort.removeprefix("-"))
        found.sort(key=column.key, reverse=sort.startswith("-"))
        pages = max(1, -(-len(found) // SIZE))
        asked = query.get("page", "1")
        number = min(max(1, int(asked)), pages) if asked.isdecimal() and len(asked) < 7 else 1
        shown = found[(number - 1) * SIZE : number * SIZE]
        marked = [(row, subject := self.subject(row), subject in starred) for row in shown]
        return TablePage(
            self, shown, marked, len(found), len(rows), number, pages, chips, text, chip, sort, kept or {}
        )  # fmt: skip


@dataclass(frozen=True)
class TablePage(Generic[T]):
    """Hold the rows shown, the totals, and the state that its links are made of."""

    table: Table[T]
    rows: list[T]
    marked: list[tuple[T, str, bool]]  #: the rows, each with what its star is of, and whether it has one
    total: int
    existing: int
    number: int
    pages: int
    counts: list[tuple[str, str, int]]  #: of the chips
    text: str
    chip: str
    sort: str
    kept: Mapping[str, str]  #: what else their address says

    def url(self, **changes: Any) -> str:
        """Return the query string with these changes; all but a page number go to the first page."""
        values = {**self.kept, "q": self.text, "show": self.chip, "sort": self.sort, "page": 1} | changes
        default = self.table.columns[0].name
        shown = {
            name: value
            for name, value in values.items()
            if value and (name, value) not in (("page", 1), ("sort", default))
        }
        return "?" + urlencode(shown)

    @property
    def header_cells(self) -> list[tuple[TableColumn[T], str, str]]:
        """Return columns, each with its sort link and aria-sort."""
        return [(each, self.url(sort=self._next_sort(each)), self._aria_sort(each)) for each in self.table.columns]

    def _next_sort(self, column: TableColumn[T]) -> str:
        if self.sort.removeprefix("-") == column.name:
            return column.name if self.sort.startswith("-") else f"-{column.name}"
        return f"-{column.name}" if column.is_number else column.name  # numbers: the largest first

    def _aria_sort(self, column: TableColumn[T]) -> str:
        if self.sort.removeprefix("-") != column.name:
            return "none"
        return "descending" if self.sort.startswith("-") else "ascending"

    @property
    def chips(self) -> list[tuple[str, int, str, bool]]:
        """Return filter chips: label, count, link, and whether it is selected."""
        return [(label, count, self.url(show=name), name == self.chip) for name, label, count in self.counts]

    @property
    def first(self) -> int:
        """Return the number of the first row shown, from 1."""
        return (self.number - 1) * SIZE + 1

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
