"""Reports the counters of destinations as this node has them at the moment."""

from __future__ import annotations

from collections.abc import Callable

from brokerapp.core.ports import Counters, GaugesPort, StatsAggregationPort
from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination


class DestinationStatistics:
    """Reads counters before the node publishes them."""

    def __init__(
        self, *, counters: Counters, gauges: GaugesPort, is_local: Callable[[str], bool], totals: StatsAggregationPort
    ) -> None:
        self._counters, self._gauges, self._is_local, self._totals = counters, gauges, is_local, totals

    async def numbers(self, destination: str) -> JsonObject | None:
        """Return the counters of a destination, and whether this node publishes them; None: there are none here."""
        found = self._counters.find(Destination.parse(destination))
        if found is None:
            return None
        self._gauges.update(found)
        total = self._totals.with_remote_parts(found)
        return {"owner": self._is_local(destination), "numbers": total.to_json()}
