"""Port of the routing table in force."""

from __future__ import annotations

from typing import Protocol

from brokerapp.engine.routing.routing_table import RoutingTable


class RoutingPort(Protocol):
    """Gives access to the compiled definitions that are in force; they may be replaced at any time."""

    @property
    def table(self) -> RoutingTable: ...
