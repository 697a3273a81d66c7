"""Port of the counters of destinations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats


class Counters(Protocol):
    """Counts messages, consumers and producers by destination."""

    def __contains__(self, destination: Destination) -> bool: ...

    def of(self, destination: Destination) -> DestinationStats: ...

    def find(self, destination: Destination) -> DestinationStats | None: ...

    def remove(self, destination: Destination) -> None: ...

    def destinations(self) -> list[Destination]: ...

    limit: int

    changed: set[DestinationStats]

    mark_changed: Callable[[DestinationStats], None]
