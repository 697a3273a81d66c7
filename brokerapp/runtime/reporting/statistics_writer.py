"""Write the statistics of destinations that changed to the store."""

from __future__ import annotations

import json

from brokerapp.core.dispatch.counters import DestinationCounters
from brokerapp.core.ports import GaugesPort, Placement
from brokerapp.errors import StoreUnavailable
from brokerapp.store.stats_snapshots import StatisticsStore


class StatisticsWriter:
    """Writes the statistics of destinations. `snapshot` is the version of those that are in the store."""

    def __init__(
        self,
        *,
        counters: DestinationCounters,
        gauges: GaugesPort,
        placement: Placement,
        store: StatisticsStore,
        snapshot: int,
    ) -> None:
        self._counters, self._gauges, self._placement = counters, gauges, placement
        self._store, self._snapshot = store, snapshot

    async def write_all(self) -> None:
        """Write until nothing has changed since. Raises StoreUnavailable."""
        while self._counters.changed:
            await self.write()

    async def write(self) -> None:
        """Write the statistics of destinations that changed. Raises StoreUnavailable."""
        changed, gone = self._counters.take_changes()
        if not changed and not gone:
            return
        placement = self._placement
        placement.stats_aggregation.forget(gone)
        if not placement.is_alone:  # each node writes those of the destinations that it owns
            changed = placement.stats_aggregation.report(changed)
            gone = [each for each in gone if placement.is_local(str(each))]
        for each in changed:
            each.version = self._snapshot + 1
            self._gauges.update(each)
        rows = {
            str(each.destination): json.dumps(placement.stats_aggregation.with_remote_parts(each).to_json())
            for each in changed
        }
        forgotten = self._counters.removals_published_before(self._snapshot)
        try:
            self._snapshot = await self._store.write(rows, list(map(str, gone)), list(map(str, forgotten)))
        except StoreUnavailable:
            self._counters.restore_changes(changed, gone)
            raise
        self._counters.forget_removals(forgotten)
        self._counters.note_removals_published(gone, self._snapshot)
