"""Build the data of charts of depth and rates, as JSON for chart.js."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from analytics.rollups.store import HOUR
from brokerapp.errors import BrokerError, InvalidDestination
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.stats_records import DestinationStats
from console.access.permissions import visible
from console.access.roles import Sees, everything
from console.broker.gateway import gateway
from console.broker.live.channels import chart_mark
from console.broker.mirror import mirror
from console.broker.snapshot import BrokerSnapshot, visible_snapshot
from console.metrics import charts_history, rollup_history
from console.metrics.charts.chart_events import events_of
from console.traffic_ranges.comparisons import expected_course
from console.ui.formatting import number_format

#: Points a chart can show beside each other: live ones come no closer.
PLACES = 450
#: Queues that are summed for somebody who does not see all: the history keeps no more.
MAX_SUMMED = 1_500
#: The shortest chart with the expected ranges of hours.
LEAST_EXPECTED_SECONDS = 12 * HOUR
#: Steps without a point that are a gap.
GAP = 2.5


def chart_of(
    request: HttpRequest, window: charts_history.ChartWindow, destination: Destination | None = None
) -> dict[str, Any]:
    """Return the chart of the broker, or of one destination; empty while the store does not answer."""
    sees = visible(request.user)
    picture = visible_snapshot(mirror().current(), sees)
    if destination is not None and destination not in picture.stats and not _is_kept(window, destination):
        window = window.rolled_up(time.time())
    if window.is_rolled_up:
        return _chart(_rolled_up(picture, window, destination, sees), [], window, destination)
    try:
        looked = charts_history.read_broker_points(gateway(), window.resolution)
        marks = _marks(picture, window, looked, destination, sees)
        events = events_of(window, looked, destination)
    except BrokerError:
        marks, events = [], []
    shown = [each.flag for each in events if _may_show(each.about, sees)]
    return _chart(marks, shown, window, destination)


def _is_kept(window: charts_history.ChartWindow, destination: Destination) -> bool:
    """Return whether the store has the history; of a deleted destination only the archive may have it."""
    try:
        return window.is_rolled_up or bool(charts_history.read_points(gateway(), window.resolution, [destination])[0])
    except BrokerError:
        return False


def _chart(
    marks: list[charts_history.Mark], flags: list, window: charts_history.ChartWindow, destination: Destination | None
) -> dict[str, Any]:
    return {
        "marks": marks,
        "events": flags,
        "start": window.start * 1000,
        "end": window.end * 1000,
        "seconds": window.seconds,
        "live": window.is_live,
        "keeps": destination is None or destination.kind is DestinationKind.QUEUE,  # a topic has rates and no depth
        "gap": round(window.resolution.step * GAP * 1000),
        "thin": round(window.seconds / PLACES * 1000),
        "url": _url(destination) + window.query,
        "summary": summary(marks, window),
        "quiet": not any(mark[2] or mark[3] for mark in marks),
        **_expected(window, destination),
    }


def _expected(window: charts_history.ChartWindow, destination: Destination | None) -> dict[str, list]:
    """Return the expected ranges of the hours of a chart, and the hours outside theirs, as messages a second.

    `expected` has start, low and high end of each hour; `outside` has start, rate and a description. Shorter charts
    have neither: the traffic of seconds is not that of an hour.
    """
    if destination is None or window.seconds < LEAST_EXPECTED_SECONDS:
        return {"expected": [], "outside": []}
    found = expected_course(str(destination), window.start, window.end)
    return {
        "expected": [
            [start * 1000, round(each.low / HOUR, 3), round(each.high / HOUR, 3)]
            for start, each in found.ranges.items()
        ],
        "outside": [[each.start * 1000, round(each.observed / HOUR, 3), str(each)] for each in found.outside],
    }


def _may_show(about: str, sees: Callable[[Destination], bool]) -> bool:
    """Return whether an event concerns the whole broker, or a destination that the user may see."""
    try:
        return "://" not in about or sees(Destination.parse(about))
    except InvalidDestination:
        return False


def _marks(
    picture: BrokerSnapshot,
    window: charts_history.ChartWindow,
    looked: list,
    destination: Destination | None,
    sees: Sees,
) -> list[charts_history.Mark]:
    if destination is not None:
        kept = charts_history.read_points(gateway(), window.resolution, [destination])[0]
        stats = picture.stats.get(destination)
        marks = charts_history.destination_marks(kept, looked, window, stats.QueueSize if stats else None)
        return marks if stats or not kept else [each for each in marks if each[0] <= kept[-1].at * 1000]  # it is gone
    if sees is everything:
        marks = charts_history.broker_marks(looked, window)
    else:
        marks = _marks_of_seen(picture, window, looked)
    if not window.is_live or window.seconds > 3600:
        return marks
    last = marks[-1][0] if marks else 0
    return marks + [each for each in map(chart_mark, picture.past) if each[0] > last]


def _rolled_up(
    picture: BrokerSnapshot, window: charts_history.ChartWindow, destination: Destination | None, sees: Sees
) -> list[charts_history.Mark]:
    if destination is not None or sees is everything:
        is_gone = destination is not None and destination not in picture.stats
        return rollup_history.marks(rollup_history.rollups(), window, destination, is_gone)
    queues = sorted((each for each in picture.stats.values() if each.destination.is_queue), key=_busy)
    return rollup_history.summed_marks(rollup_history.rollups(), window, [each.destination for each in queues])


def _marks_of_seen(
    picture: BrokerSnapshot, window: charts_history.ChartWindow, looked: list
) -> list[charts_history.Mark]:
    """Sum the points of the queues that the user may see, as those of the broker include all others.

    Dead letters do not count as pending, as for the broker.
    """
    queues = [stats for stats in picture.stats.values() if stats.destination.is_queue]
    queues = sorted(queues, key=_busy)
    kept = charts_history.read_points(gateway(), window.resolution, [each.destination for each in queues[:MAX_SUMMED]])
    moved = [pair for pair in zip(kept, queues, strict=False) if pair[0]]
    still = sum(map(_pending, queues)) - sum(_pending(stats) for _, stats in moved)
    of_each = [charts_history.destination_marks([], looked, window, still)]
    for points, stats in moved:
        marks = charts_history.destination_marks(points, looked, window, stats.QueueSize)
        of_each.append([[at, 0 if stats.DLQ else depth, *rates] for at, depth, *rates in marks])
    return [
        [at[0][0], sum(each[1] for each in at), *(round(sum(each[n] for each in at), 2) for n in (2, 3))]
        for at in zip(*of_each, strict=True)
    ]


def _pending(stats: DestinationStats) -> int:
    return 0 if stats.DLQ else stats.QueueSize


def _busy(stats: DestinationStats) -> int:
    return -stats.EnqueueCount


def _url(destination: Destination | None) -> str:
    if destination is None:
        return reverse("chart")
    return reverse(f"{destination.kind}-chart", kwargs={"name": destination.name})


def summary(marks: list[charts_history.Mark], window: charts_history.ChartWindow) -> str:
    """Return the chart in a sentence, for who cannot see it. Pure."""
    if not marks:
        return "No data in this time range."
    depths = [mark[1] for mark in marks]
    span = number_format.format_duration(window.seconds)
    return (
        f"Over {span}: final depth {number_format.pluralize_count(int(depths[-1]), 'message')} "
        f"(minimum {number_format.format_integer(min(depths))}, maximum {number_format.format_integer(max(depths))}). "
        f"Maximum enqueue rate {number_format.format_rate(max(mark[2] for mark in marks))} msg/s, "
        f"maximum dequeue rate {number_format.format_rate(max(mark[3] for mark in marks))} msg/s."
    )


def window_of(request: HttpRequest) -> charts_history.ChartWindow:
    """Return the window in a page's URL."""
    return charts_history.ChartWindow.read(request.GET, time.time())
