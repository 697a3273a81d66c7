"""Open the rollups of this broker, and read from them when consumers left."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from analytics.archive.broker_archive import BrokerArchive
from analytics.rollups.queries import RollupQueries
from brokerapp.model.destination import Destination


def rollups() -> RollupQueries:
    """Return the rollups of this broker."""
    return RollupQueries(BrokerArchive(settings.SLUICE.archive, settings.SLUICE.broker_name).folder)


def last_consumers_left(past: RollupQueries, destinations: Sequence[Destination] | None = None) -> dict[str, int]:
    """Return when the last consumer left, in seconds since the epoch, of destinations (None: all) that have none now.

    Those that had no consumers while traffic was recorded are missing.
    """
    found = past.consumers_since(None if destinations is None else list(map(str, destinations)))
    return {name: each.since for name, each in found.items() if not each.clients}
