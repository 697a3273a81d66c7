"""Read charts over days, latencies and past depths from the rollups of the archive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from analytics.model.wording import format_signed
from analytics.rollups.counters import CounterCell
from analytics.rollups.log_histogram import negative_durations, percentile
from analytics.rollups.queries import WHOLE_BROKER, RollupPoint, RollupQueries
from analytics.rollups.store import MINUTE, OTHERS, TEMPORARY
from brokerapp.model.destination import Destination
from console.broker.rollups import rollups as rollups
from console.metrics.charts_history import ChartWindow, Mark

#: Destinations that are summed for users who do not see all: each takes some milliseconds.
MOST_TOGETHER = 50
#: Seconds without a note of any depth after which one wonders whether the broker ran: each full hour has one unless all
#: queues are empty.
QUIET_SECONDS = 3700
PARTS = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def marks(
    past: RollupQueries, window: ChartWindow, destination: Destination | None, is_gone: bool = False
) -> list[Mark]:
    """Return the points of a chart from the rollups, each at the end of its period.

    The current period ends now. A period in which the broker recorded nothing is a gap. A deleted destination has no
    points after its last event.
    """
    return _marks(past, window, [WHOLE_BROKER if destination is None else str(destination)], is_gone)


def summed_marks(past: RollupQueries, window: ChartWindow, destinations: Sequence[Destination]) -> list[Mark]:
    """Return the summed points of the first MOST_TOGETHER of these destinations."""
    return _marks(past, window, [str(each) for each in destinations[:MOST_TOGETHER]])


def _marks(past: RollupQueries, window: ChartWindow, names: list[str], is_gone: bool = False) -> list[Mark]:
    begin, end, width = window.start, window.end, window.resolution.step
    levels = past.depths_before(begin, names)
    level, last = sum(levels.values()), 0
    together = {start: [0, 0, 0] for start, *_ in past.flows(begin, end, width, [WHOLE_BROKER])}  # came, left, rose
    for start, name, came, left, depth in past.flows(begin, end, width, names):
        sums, last = together.setdefault(start, [0, 0, 0]), start
        sums[0] += came
        sums[1] += left
        if depth is not None:
            sums[2] += depth - levels.get(name, 0)
            levels[name] = depth
    now = int(time.time())
    found: list[Mark] = []
    for start, (came, left, rose) in together.items():
        passed = min(width, now - start)
        if (is_gone and start > last) or passed < MINUTE:  # of a minute that runs too little is counted yet
            break
        level += rose
        found.append([(start + passed) * 1000, level, round(came / passed, 2), round(left / passed, 2)])
    return found if names else []


@dataclass(frozen=True, slots=True)
class DelayPercentiles:
    """Percentiles of the acknowledgement latency of one consumer or of all, in milliseconds."""

    consumer: str  #: "": all
    acked: int
    p50: float | None
    p95: float | None
    p99: float | None
    early: int = 0  #: of these, so many bear a time before the message's arrival, and no percentile counts them
    early_ms: float = 0.0  #: by how much at most: so much the clocks of nodes differ


def delays(past: RollupQueries, start: int, end: int, width: int, destination: Destination) -> list[DelayPercentiles]:
    """Return the latencies of all consumers of a destination together, then of each, the slowest first."""
    name = str(destination)
    found = [_delays(past.points(start, end, width, name, each), each) for each in past.consumers(name)]
    consumers = sorted((each for each in found if each.acked), key=lambda each: each.p95 or 0, reverse=True)
    together = _delays(past.points(start, end, width, name), "")
    return [together, *consumers] if together.acked else []


def _delays(points: Iterable[RollupPoint], consumer: str) -> DelayPercentiles:
    cell = CounterCell()
    for each in points:
        cell.add(each.cell)
    latency = cell.latency
    parts = {name: percentile(latency.items(), part) for name, part in PARTS.items()}
    in_ms = {name: None if us is None else us / 1000 for name, us in parts.items()}
    before = negative_durations(latency.items())
    return DelayPercentiles(
        consumer, sum(latency.values()), **in_ms, early=before.count, early_ms=before.most_us / 1000
    )


def delays_over_time(points: Iterable[RollupPoint]) -> dict[str, list]:
    """Return times and percentiles of the periods with acks, as series of a chart."""
    series: dict[str, list] = {"at": [], **{name: [] for name in PARTS}}
    for point in points:
        latency = point.cell.latency.items()
        if percentile(latency, 1) is not None:
            series["at"].append(datetime.fromtimestamp(point.start, UTC).isoformat())
            for name, part in PARTS.items():
                series[name].append(round(percentile(latency, part) / 1000, 3))
    return series


@dataclass(frozen=True, slots=True)
class PastDepth:
    """One queue or subscription at a past moment."""

    destination: Destination
    depth: int
    now: int | None  #: what it holds now; None when it is gone

    @property
    def change(self) -> str:
        """Return the change of the depth since then, with a sign."""
        return format_signed((self.now or 0) - self.depth)


def past_depths(
    noted: dict[str, int], now: Callable[[Destination], int | None], sees: Callable[[Destination], bool]
) -> list[PastDepth]:
    """Return the past depths of destinations that the user may see and that held messages, the deepest first."""
    found = []
    for name, depth in noted.items():
        if name in (OTHERS, TEMPORARY):  # they are not told apart
            continue
        destination = Destination.parse(name)
        if sees(destination):
            found.append(PastDepth(destination, depth, now(destination)))
    return sorted(found, key=lambda each: (-each.depth, str(each.destination)))
