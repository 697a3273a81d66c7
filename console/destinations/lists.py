"""Columns and rows of the lists of queues and topics. No I/O; the URL holds the whole query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.roles import Sees, everything
from console.broker.snapshot import BrokerSnapshot, Rates
from console.ui.formatting import number_format

PAGE_SIZES = (25, 50, 100)


@dataclass(frozen=True, slots=True)
class DestinationColumn:
    """A metric of a destination. `name` is its JMX name, or ours where JMX has none."""

    name: str
    label: str
    explanation: str
    value: Callable[[DestinationStats, Rates], float]
    text: Callable[[float], str] = number_format.format_integer
    is_jmx: bool = True


def _count_column(name: str, label: str, explanation: str) -> DestinationColumn:
    return DestinationColumn(name, label, explanation, lambda stats, rates: getattr(stats, name))


def _rate_column(name: str, label: str, explanation: str, which: str) -> DestinationColumn:
    return DestinationColumn(
        name, label, explanation, lambda stats, rates: getattr(rates, which), number_format.format_rate, is_jmx=False
    )


COLUMNS: dict[str, DestinationColumn] = {
    column.name: column
    for column in (
        _count_column("QueueSize", "Depth", "Messages not yet acknowledged (ready + in flight)"),
        _count_column("ConsumerCount", "Consumers", "Active consumers"),
        _count_column("ProducerCount", "Producers", "Open connections that sent messages"),
        _count_column(
            "EnqueueCount", "Enqueued", "Messages enqueued since the node started; routed copies count at their target"
        ),
        _count_column(
            "DequeueCount", "Dequeued", "Messages acknowledged, expired, deleted or moved since the node started"
        ),
        _count_column("InFlightCount", "In flight", "Messages dispatched and not yet acknowledged"),
        _count_column("DispatchCount", "Dispatched", "Messages dispatched to consumers, redeliveries included"),
        _count_column("ExpiredCount", "Expired", "Messages that expired (TTL elapsed)"),
        _count_column("DeadLetterCount", "Dead-lettered", "Messages moved to a dead-letter queue"),
        _rate_column(
            "EnqueueRate", "Enqueue rate", "Messages enqueued per second, averaged over five seconds", "enqueue"
        ),
        _rate_column(
            "DequeueRate", "Dequeue rate", "Messages dequeued per second, averaged over five seconds", "dequeue"
        ),
        _rate_column(
            "DispatchRate", "Dispatch rate", "Messages dispatched per second, averaged over five seconds", "dispatch"
        ),
    )
}

_COLUMNS_OF_KIND: dict[DestinationKind, tuple[str, ...]] = {
    DestinationKind.QUEUE: (
        "QueueSize",
        "InFlightCount",
        "ConsumerCount",
        "EnqueueRate",
        "DequeueRate",
        "EnqueueCount",
        "DequeueCount",
        "DispatchCount",
    ),
    DestinationKind.TOPIC: (
        "ConsumerCount",
        "ProducerCount",
        "EnqueueRate",
        "DispatchRate",
        "EnqueueCount",
        "DequeueCount",
        "DispatchCount",
    ),
}

#: Names of a user's favorite destinations, in native form.
Favorites = frozenset[str]
NO_FAVORITES: Favorites = frozenset()

#: Filters above a list: name, label, whether a destination matches.
_CHIPS: dict[str, tuple[str, Callable[[DestinationStats, Favorites], bool]]] = {
    "": ("All", lambda stats, starred: True),
    "starred": ("Favorites", lambda stats, starred: str(stats.destination) in starred),
    "non-empty": ("Non-empty", lambda stats, starred: stats.QueueSize > 0),
    "no-consumer": ("No consumers", lambda stats, starred: stats.ConsumerCount == 0),
    "paused": ("Paused", lambda stats, starred: stats.Paused),
    "dlq": ("Dead letters", lambda stats, starred: stats.DLQ),
}
_CHIPS_OF: dict[DestinationKind, tuple[str, ...]] = {
    DestinationKind.QUEUE: ("", "starred", "non-empty", "no-consumer", "paused", "dlq"),
    DestinationKind.TOPIC: ("", "starred", "no-consumer"),
}


def columns_for(kind: DestinationKind) -> list[DestinationColumn]:
    """Return the columns of the list of this kind of destination."""
    return [COLUMNS[name] for name in _COLUMNS_OF_KIND[kind]]


@dataclass(frozen=True, slots=True)
class DestinationQuery:
    """Filter, order and page of a list of destinations. `sort` is `name` or the name of a column."""

    kind: DestinationKind
    text: str = ""
    chip: str = ""
    sort: str = "name"
    descending: bool = False
    page: int = 1
    size: int = PAGE_SIZES[1]

    @staticmethod
    def read(kind: DestinationKind, query: Mapping[str, str]) -> DestinationQuery:
        """Parse a URL's query; invalid values fall back to their defaults."""
        sort = query.get("sort", "name")
        descending, sort = sort.startswith("-"), sort.removeprefix("-")
        known = sort == "name" or sort in _COLUMNS_OF_KIND[kind]
        chip = query.get("show", "")
        return DestinationQuery(
            kind,
            text=query.get("q", "").strip(),
            chip=chip if chip in _CHIPS_OF[kind] else "",
            sort=sort if known else "name",
            descending=descending and known,
            page=max(1, _parse_number(query.get("page"), 1)),
            size=size if (size := _parse_number(query.get("size"), 0)) in PAGE_SIZES else PAGE_SIZES[1],
        )

    def url(self, **changes: Any) -> str:
        """Return this query with changes as a query string. Any change except of the page returns to page one."""
        other = replace(self, **({"page": 1} | changes))
        parts = {
            "q": other.text,
            "show": other.chip,
            "sort": "" if other.sort == "name" and not other.descending else "-" * other.descending + other.sort,
            "page": other.page if other.page > 1 else "",
            "size": other.size if other.size != PAGE_SIZES[1] else "",
        }
        return "?" + urlencode({name: value for name, value in parts.items() if value})


def _parse_number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 7 else default


@dataclass(frozen=True, slots=True)
class DestinationRow:
    """A destination in a list, with the text of its cells."""

    destination: Destination
    stats: DestinationStats
    cells: list[tuple[DestinationColumn, str]]


@dataclass(frozen=True, slots=True)
class DestinationPage:
    """The rows of a query's page, of `total` that match out of `existing`."""

    query: DestinationQuery
    rows: list[DestinationRow]
    total: int
    existing: int
    page: int
    pages: int
    chips: list[tuple[str, str, int]]  #: name, label, count

    @property
    def first(self) -> int:
        """Return the position of the first row, counted from one."""
        return (self.page - 1) * self.query.size + 1

    @property
    def last(self) -> int:
        """Return the position of the last row."""
        return self.first + len(self.rows) - 1


def list_page(
    picture: BrokerSnapshot, query: DestinationQuery, sees: Sees = everything, starred: Favorites = NO_FAVORITES
) -> DestinationPage:
    """Return the page of a query, of the destinations that the user may see. Rates are computed for its rows only."""
    existing = visible_destinations(picture, query.kind, sees)
    text = query.text.lower()
    named = [stats for stats in existing if text in stats.destination.name.lower()] if text else existing
    chips = []
    for name in _CHIPS_OF[query.kind]:
        label, is_in = _CHIPS[name]
        chips.append((name, label, sum(is_in(stats, starred) for stats in named) if name else len(named)))
    is_in = _CHIPS[query.chip][1]
    matching = [stats for stats in named if is_in(stats, starred)] if query.chip else list(named)
    matching.sort(key=lambda stats: stats.destination.name.lower(), reverse=query.sort == "name" and query.descending)
    if query.sort != "name":
        matching.sort(key=_sort_key(COLUMNS[query.sort], picture), reverse=query.descending)
    pages = max(1, -(-len(matching) // query.size))
    number = min(query.page, pages)
    shown = matching[(number - 1) * query.size : number * query.size]
    rows = [build_row(picture, stats) for stats in shown]
    return DestinationPage(query, rows, len(matching), len(existing), number, pages, chips)


def _sort_key(column: DestinationColumn, picture: BrokerSnapshot) -> Callable[[DestinationStats], float]:
    """Return the sort key of a column; rates are computed only when sorted by."""
    if column.is_jmx:
        return lambda stats: column.value(stats, Rates())
    return lambda stats: column.value(stats, picture.rates(stats.destination))


def visible_destinations(
    picture: BrokerSnapshot, kind: DestinationKind, sees: Sees = everything
) -> list[DestinationStats]:
    """Return the statistics of all destinations of a kind that the user may see."""
    of_kind = picture.of_kind(kind)
    return of_kind if sees is everything else [stats for stats in of_kind if sees(stats.destination)]


def build_row(picture: BrokerSnapshot, stats: DestinationStats) -> DestinationRow:
    """Build the list row of a destination."""
    rates = picture.rates(stats.destination)
    cells = [(column, column.text(column.value(stats, rates))) for column in columns_for(stats.destination.kind)]
    return DestinationRow(stats.destination, stats, cells)
