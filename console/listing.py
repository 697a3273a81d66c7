"""Lists of destinations: which columns there are, and which rows a query shows. Pure; the URL holds the whole query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from brokerapp.destination import Destination, Kind
from brokerapp.snapshot import DestinationStats
from console import figures
from console.live.picture import PAST, Picture, Rates

PAGE_SIZES = (25, 50, 100)


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a destination. `name` is the one JMX gave it, or ours for what JMX has not."""

    name: str
    label: str
    explanation: str
    value: Callable[[DestinationStats, Rates], float]
    text: Callable[[float], str] = figures.whole
    is_jmx: bool = True


def _stat(name: str, label: str, explanation: str) -> Column:
    return Column(name, label, explanation, lambda stats, rates: getattr(stats, name))


def _rate(name: str, label: str, explanation: str, which: str) -> Column:
    return Column(name, label, explanation, lambda stats, rates: getattr(rates, which), figures.rate, is_jmx=False)


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

_OF_LISTS: dict[Kind, tuple[str, ...]] = {
    Kind.QUEUE: (
        "QueueSize",
        "InFlightCount",
        "ConsumerCount",
        "EnqueueRate",
        "DequeueRate",
        "EnqueueCount",
        "DequeueCount",
        "DispatchCount",
    ),
    Kind.TOPIC: (
        "ConsumerCount",
        "ProducerCount",
        "EnqueueRate",
        "DispatchRate",
        "EnqueueCount",
        "DequeueCount",
        "DispatchCount",
    ),
}

#: Chips above a list: name, what it says, whether a destination is in.
_CHIPS: dict[str, tuple[str, Callable[[DestinationStats], bool]]] = {
    "": ("All", lambda stats: True),
    "non-empty": ("Non-empty", lambda stats: stats.QueueSize > 0),
    "no-consumer": ("No consumer", lambda stats: stats.ConsumerCount == 0),
    "dlq": ("Dead letters", lambda stats: stats.DLQ),
}
_CHIPS_OF: dict[Kind, tuple[str, ...]] = {
    Kind.QUEUE: ("", "non-empty", "no-consumer", "dlq"),
    Kind.TOPIC: ("", "no-consumer"),
}


def columns_of(kind: Kind) -> list[Column]:
    """The columns of the list of this kind."""
    return [COLUMNS[name] for name in _OF_LISTS[kind]]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a list page shows. `sort` is `name` or the name of a column."""

    kind: Kind
    text: str = ""
    chip: str = ""
    sort: str = "name"
    descending: bool = False
    page: int = 1
    size: int = PAGE_SIZES[1]

    @staticmethod
    def read(kind: Kind, query: Mapping[str, str]) -> ListQuery:
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
    spark: str


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


def page_of(picture: Picture, query: ListQuery) -> Page:
    """The page of the list that this query asks for; rates and sparklines for its rows only."""
    everything = picture.of_kind(query.kind)
    text = query.text.lower()
    named = [stats for stats in everything if text in stats.destination.name.lower()]
    chips = [(name, _CHIPS[name][0], sum(map(_CHIPS[name][1], named))) for name in _CHIPS_OF[query.kind]]
    matching = sorted(filter(_CHIPS[query.chip][1], named), key=lambda stats: stats.destination.name.lower())
    if query.sort == "name":
        matching.sort(key=lambda stats: stats.destination.name.lower(), reverse=query.descending)
    else:
        value = COLUMNS[query.sort].value
        matching.sort(key=lambda stats: value(stats, picture.rates(stats.destination)), reverse=query.descending)
    pages = max(1, -(-len(matching) // query.size))
    number = min(query.page, pages)
    shown = matching[(number - 1) * query.size : number * query.size]
    rows = [row_of(picture, stats) for stats in shown]
    return Page(query, rows, len(matching), len(everything), number, pages, chips)


def row_of(picture: Picture, stats: DestinationStats) -> Row:
    """One destination as a row of its list."""
    rates = picture.rates(stats.destination)
    cells = [(column, column.text(column.value(stats, rates))) for column in columns_of(stats.destination.kind)]
    return Row(stats.destination, stats, cells, spark_of(picture, stats.destination))


#: The box of a sparkline, in its own units.
SPARK_WIDTH, SPARK_HEIGHT = 100, 24


def spark_of(picture: Picture, destination: Destination) -> str:
    """The recent past as points of an SVG polyline: the depth of a queue, the rate of a topic."""
    trail = picture.trails.get(destination, ())
    stats = picture.stats[destination]
    is_queue = destination.kind is Kind.QUEUE
    now = stats.QueueSize if is_queue else picture.rates(destination).enqueue
    values = [(mark.at, mark.pending if is_queue else mark.enqueue) for mark in trail] + [(picture.at, now)]
    if len(values) == 1:  # it did not move while anybody looked
        values.insert(0, (picture.at - PAST, now if is_queue else 0))
    top = max(value for _, value in values) * 1.15 or 1
    points = (
        (SPARK_WIDTH * (1 - (picture.at - at) / PAST), (SPARK_HEIGHT - 2) * (1 - value / top) + 1)
        for at, value in values
    )
    # The corners beyond the box close the area below the line; their own edges are out of sight.
    line = " ".join(f"{max(0.0, x):.0f},{y:.1f}" for x, y in points)
    first, right, below = line.partition(" ")[0].split(","), line.rpartition(",")[2], SPARK_HEIGHT + 9
    begin = "-9" if first[0] == "0" else first[0]  # what is not known of the past is left empty
    return f"{begin},{below} {begin},{first[1]} {line} {SPARK_WIDTH + 9},{right} {SPARK_WIDTH + 9},{below}"
