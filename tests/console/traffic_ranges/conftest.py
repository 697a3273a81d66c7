"""Share weeks of recorded traffic in rollups, and the console that reads them."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.archive.broker_archive import BrokerArchive
from analytics.rollups.counters import NUMBERS, CounterCell, DepthNote, EventCounts
from analytics.rollups.store import HOUR, MINUTE, RollupStore
from benchmarks.analytics.generated_weeks import KINDS, MONDAY, traffic
from console.traffic_ranges import comparisons

WEEK_HOURS = 168
#: Of office hours, five weeks without holidays, bursts and outages.
OFFICE = traffic(KINDS[0], 5, np.random.default_rng(20), dirty=False).values
#: The first hour that is not complete: Thursday 12:00 in the fifth week.
END = MONDAY + 4 * WEEK_HOURS + 3 * 24 + 12
OFFICE_TO_END = OFFICE[: END - MONDAY]


def arrivals(count: float) -> CounterCell:
    """Return a cell of messages that were enqueued."""
    found = CounterCell()
    found.numbers[NUMBERS.index("enqueue")] = int(count)
    return found


@pytest.fixture
def recorded(settings, tmp_path, monkeypatch):
    """A function that stores hourly arrivals by destination, each from MONDAY on, and depths by their hour.

    `minutes`: for how long the hour END has been recorded.
    """
    comparisons._compared.cache_clear()

    def store(hourly, depths=(), minutes=10):
        settings.SLUICE = replace(settings.SLUICE, data=tmp_path)
        archive = BrokerArchive(settings.SLUICE.archive, settings.SLUICE.broker_name)
        archive.folder.mkdir(parents=True, exist_ok=True)
        kept = RollupStore(archive.folder)
        cells = {
            (name, "", (MONDAY + hour) * HOUR // MINUTE): arrivals(count)
            for name, values in hourly.items()
            for hour, count in enumerate(values)
            if count
        }
        notes = [DepthNote(hour * HOUR * 1_000_000, name, depth, "all") for name, hour, depth in depths]
        kept.add([EventCounts(cells, notes)], kept.position + 1)
        kept.close()
        archive.write_freshness((END * HOUR + minutes * MINUTE) * 1_000_000)
        comparisons._compared.cache_clear()

    yield store
    comparisons._compared.cache_clear()
