"""Lists of destinations: which columns there are, and which rows a query shows. Pure; the URL holds the whole query."""

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
class Column:
    """One number of a destination. `name` is the one JMX gave it, or ours for what JMX has not."""

    name: str
    label: str
    explanation: str
    value: Callable[[DestinationStats, Rates], float]
    text: Callable[[float], str] = number_format.format_integer
    is_jmx: bool = True


def _stat(name: str, label: str, explanation: str) -> Column:
    return Column(name, label, explanation, lambda stats, rates: getattr(stats, name))


def _rate(name: str, label: str, explanation: str, which: str) -> Column:
    return Column(
        name, label, explanation, lambda stats, rates: getattr(rates, which), number_format.format_rate, is_jmx=False
    )


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        _stat("QueueSize", "Pending", "Messages not yet acknowledged, those in flight included"),
        _stat("ConsumerCount", "Consumers", "Subscriptions that receive from here"),
        _stat("ProducerCount", "Producers", "Open connections that sent here"),
        _stat("EnqueueCount", "Enqueued", "Messages that arrived since the node started; copies count where they land"),
        _stat("DequeueCount", "Dequeued", "Messages acknowledged, expired, removed or moved since the node started"),
        _stat("InFlightCount", "In flight", "Messages handed to a consumer and not yet acknowledged"),
        _stat("DispatchCount", "Dispatched", "Messages handed to consumers; redeliveries count again"),
        _stat("ExpiredCount", "Expired", "Messages whose time ran out"),
        _stat("DeadLetterCount", "Dead-lettered", "Messages that left for a dead-letter queue"),
        _rate("EnqueueRate", "In", "Messages a second that arrived, mean of the last five seconds", "enqueue"),
        _rate("DequeueRate", "Out", "Messages a second that left, mean of the last five seconds", "dequeue"),
        _rate("DispatchRate", "Dispatched", "Messages a second handed to consumers, mean of five seconds", "dispatch"),
    )
}

_OF_LISTS: dict[DestinationKind, tuple[str, ...]] = {
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

#: Names of the destinations that a user has starred, in their native form.
Starred = frozenset[str]
NOBODY_STARRED: Starred = frozenset()

#: Chips above a list: name, what it says, whether a destination is in.
_CHIPS: dict[str, tuple[str, Callable[[DestinationStats, Starred], bool]]] = {
    "": ("All", lambda stats, starred: True),
    "starred": ("Starred", lambda stats, starred: str(stats.destination) in starred),
    "non-empty": ("Non-empty", lambda stats, starred: stats.QueueSize > 0),
    "no-consumer": ("No consumer", lambda stats, starred: stats.ConsumerCount == 0),
    "paused": ("Paused", lambda stats, starred: stats.Paused),
    "dlq": ("Dead letters", lambda stats, starred: stats.DLQ),
}
_CHIPS_OF: dict[DestinationKind, tuple[str, ...]] = {
    DestinationKind.QUEUE: ("", "starred", "non-empty", "no-consumer", "paused", "dlq"),
    DestinationKind.TOPIC: ("", "starred", "no-consumer"),
}


def columns_of(kind: DestinationKind) -> list[Column]:
    """The columns of the list of this kind."""
    return [COLUMNS[name] for name in _OF_LISTS[kind]]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a list page shows. `sort` is `name` or the name of a column."""

    kind: DestinationKind
    text: str = ""
    chip: str = ""
    sort: str = "name"
    descending: bool = False
    page: int = 1
    size: int = PAGE_SIZES[1]

    @staticmethod
    def read(kind: DestinationKind, query: Mapping[str, str]) -> ListQuery:
        """The query in a URL; what makes no sense there falls back to its default."""
        sort = query.get("sort", "name")
        descending, sort = sort.startswith("-"), sort.removeprefix("-")
        known = sort == "name" or sort in _OF_LISTS[kind]
        chip = query.get("show", "")
        return ListQuery(
            kind,
            text=query.get("q", "").strip(),
            chip=chip if chip in _CHIPS_OF[kind] else "",
            sort=sort if known else "name",
            descending=descending and known,
            page=max(1, _number(query.get("page"), 1)),
            size=size if (size := _number(query.get("size"), 0)) in PAGE_SIZES else PAGE_SIZES[1],
        )

    def url(self, **changes: Any) -> str:
        """This query with these changes, as a query string; a change of anything but the page goes back to page one."""
        other = replace(self, **({"page": 1} | changes))
        parts = {
            "q": other.text,
            "show": other.chip,
            "sort": "" if other.sort == "name" and not other.descending else "-" * other.descending + other.sort,
            "page": other.page if other.page > 1 else "",
            "size": other.size if other.size != PAGE_SIZES[1] else "",
        }
        return "?" + urlencode({name: value for name, value in parts.items() if value})


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 7 else default


@dataclass(frozen=True, slots=True)
class Row:
    """One destination of a list, with its cells as text."""

    destination: Destination
    stats: DestinationStats
    cells: list[tuple[Column, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """The rows a query shows, of `total` that match out of `existing`."""

    query: ListQuery
    rows: list[Row]
    total: int
    existing: int
    page: int
    pages: int
    chips: list[tuple[str, str, int]]  #: name, label, how many

    @property
    def first(self) -> int:
        """Number of the first row shown, counted from one."""
        return (self.page - 1) * self.query.size + 1

    @property
    def last(self) -> int:
        """Number of the last row shown."""
        return self.first + len(self.rows) - 1


def page_of(
    picture: BrokerSnapshot, query: ListQuery, sees: Sees = everything, starred: Starred = NOBODY_STARRED
) -> Page:
    """The page of the list that this query asks for, for somebody who sees these; rates for its rows only."""
    existing = visible_of(picture, query.kind, sees)
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
    rows = [row_of(picture, stats) for stats in shown]
    return Page(query, rows, len(matching), len(existing), number, pages, chips)


def _sort_key(column: Column, picture: BrokerSnapshot) -> Callable[[DestinationStats], float]:
    """What rows are sorted by; rates are computed only where they are asked for."""
    if column.is_jmx:
        return lambda stats: column.value(stats, Rates())
    return lambda stats: column.value(stats, picture.rates(stats.destination))


def visible_of(picture: BrokerSnapshot, kind: DestinationKind, sees: Sees = everything) -> list[DestinationStats]:
    """All queues, or all topics, of those that somebody sees."""
    of_kind = picture.of_kind(kind)
    return of_kind if sees is everything else [stats for stats in of_kind if sees(stats.destination)]


def row_of(picture: BrokerSnapshot, stats: DestinationStats) -> Row:
    """One destination as a row of its list."""
    rates = picture.rates(stats.destination)
    cells = [(column, column.text(column.value(stats, rates))) for column in columns_of(stats.destination.kind)]
    return Row(stats.destination, stats, cells)
