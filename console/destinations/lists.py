"""Columns and tables of the lists of queues and topics. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.roles import Sees, everything
from console.broker.snapshot import BrokerSnapshot, Rates
from console.ui.formatting import number_format
from console.ui.formatting.tables import Table, TableColumn

PAGE_SIZES = (25, 50, 100)


@dataclass(frozen=True)
class DestinationRow:
    """A destination at the time of a snapshot; its rates are computed when they are needed."""

    picture: BrokerSnapshot
    stats: DestinationStats

    @property
    def destination(self) -> Destination:
        """Return the destination."""
        return self.stats.destination

    @cached_property
    def rates(self) -> Rates:
        """Return the rates of the destination."""
        return self.picture.rates(self.stats.destination)

    @property
    def cells(self) -> list[tuple[DestinationColumn, str]]:
        """Return the columns of its list with their texts."""
        return [(each, each.format(self)) for each in columns_for(self.stats.destination.kind)]


@dataclass(frozen=True, slots=True)
class DestinationColumn:
    """A metric of a destination. `name` is its JMX name, or ours where JMX has none."""

    name: str
    label: str
    explanation: str
    value: Callable[[DestinationRow], float]
    text: Callable[[float], str] = number_format.format_integer
    is_jmx: bool = True

    def format(self, row: DestinationRow) -> str:
        """Return the value of a destination as text."""
        return self.text(self.value(row))


def _count_column(name: str, label: str, explanation: str) -> DestinationColumn:
    return DestinationColumn(name, label, explanation, attrgetter(f"stats.{name}"))


def _rate_column(name: str, label: str, explanation: str, which: str) -> DestinationColumn:
    value = attrgetter(f"rates.{which}")
    return DestinationColumn(name, label, explanation, value, number_format.format_rate, is_jmx=False)


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
        "QueueSize", "InFlightCount", "ConsumerCount", "EnqueueRate", "DequeueRate", "EnqueueCount", "DequeueCount",
        "DispatchCount",
    ),
    DestinationKind.TOPIC: (
        "ConsumerCount", "ProducerCount", "EnqueueRate", "DispatchRate", "EnqueueCount", "DequeueCount",
        "DispatchCount",
    ),
}  # fmt: skip

_NO_CONSUMER: dict[str, tuple[str, Callable[[DestinationRow], bool]]] = {
    "no-consumer": ("No consumers", lambda row: row.stats.ConsumerCount == 0)
}
_CHIPS: dict[DestinationKind, dict[str, tuple[str, Callable[[DestinationRow], bool]]]] = {
    DestinationKind.QUEUE: {
        "non-empty": ("Non-empty", lambda row: row.stats.QueueSize > 0),
        **_NO_CONSUMER,
        "paused": ("Paused", lambda row: row.stats.Paused),
        "dlq": ("Dead letters", lambda row: row.stats.DLQ),
    },
    DestinationKind.TOPIC: _NO_CONSUMER,
}


def columns_for(kind: DestinationKind) -> list[DestinationColumn]:
    """Return the columns of the list of this kind of destination."""
    return [COLUMNS[name] for name in _COLUMNS_OF_KIND[kind]]


def _table_column(column: DestinationColumn) -> TableColumn[DestinationRow]:
    explanation, unit = f"{column.name}: {column.explanation}", column.name if column.is_jmx else "msg/s"
    return TableColumn(column.name, column.label, column.value, explanation, is_number=True, unit=unit)


#: The tables of queues and of topics.
DESTINATION_TABLES = {
    kind: Table[DestinationRow](
        columns=(
            TableColumn("name", "Name", lambda row: row.stats.destination.name.lower()),
            *map(_table_column, columns_for(kind)),
        ),
        chips=chips,
        text=lambda row: row.stats.destination.name,
        subject=lambda row: str(row.stats.destination),
        sizes=PAGE_SIZES,
    )
    for kind, chips in _CHIPS.items()
}


def visible_rows(picture: BrokerSnapshot, kind: DestinationKind, sees: Sees = everything) -> list[DestinationRow]:
    """Return the rows of all destinations of a kind that the user may see."""
    return [DestinationRow(picture, stats) for stats in picture.of_kind(kind) if sees(stats.destination)]
