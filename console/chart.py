"""Charts: what a page's chart of depth and rates draws, as JSON that chart.js reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from brokerapp.destination import Destination
from brokerapp.errors import BrokerError, InvalidDestination
from console import figures, history, past
from console.access import visible
from console.events import events_of
from console.gateway import gateway
from console.live.mirror import mirror
from console.live.picture import Picture
from console.live.topics import chart_mark

#: Points a chart can show beside each other: live ones come no closer.
PLACES = 450
#: Steps without a point that are a gap.
GAP = 2.5


def chart_of(request: HttpRequest, window: history.Window, destination: Destination | None = None) -> dict[str, Any]:
    """The chart of the broker, or of one destination; empty while the store does not answer."""
    if window.is_rolled_up:
        return _chart(past.marks(past.rollups(), window, destination), [], window, destination)
    picture = mirror().current()
    try:
        looked = history.past_of_whole(gateway(), window.resolution)
        marks = _marks(picture, window, looked, destination)
        events = events_of(window, looked, destination)
    except BrokerError:
        marks, events = [], []
    sees = visible(request.user)
    shown = [each.flag for each in events if _may_show(each.about, sees)]
    return _chart(marks, shown, window, destination)


def _chart(
    marks: list[history.Mark], flags: list, window: history.Window, destination: Destination | None
) -> dict[str, Any]:
    return {
        "marks": marks,
        "events": flags,
        "start": window.start * 1000,
        "end": window.end * 1000,
        "seconds": window.seconds,
        "live": window.is_live,
        "gap": round(window.resolution.step * GAP * 1000),
        "thin": round(window.seconds / PLACES * 1000),
        "url": _url(destination) + window.query,
        "summary": summary(marks, window),
    }


def _may_show(about: str, sees: Callable[[Destination], bool]) -> bool:
    """Whether an event is of the whole broker, or of a destination that somebody sees."""
    try:
        return "://" not in about or sees(Destination.parse(about))
    except InvalidDestination:
        return False


def _marks(
    picture: Picture, window: history.Window, looked: list, destination: Destination | None
) -> list[history.Mark]:
    if destination is not None:
        kept = history.past(gateway(), window.resolution, [destination])[0]
        stats = picture.stats.get(destination)
        return history.marks_of(kept, looked, window, stats.QueueSize if stats else None)
    marks = history.marks_of_whole(looked, window)
    if not window.is_live or window.seconds > 3600:
        return marks
    last = marks[-1][0] if marks else 0
    return marks + [each for each in map(chart_mark, picture.past) if each[0] > last]


def _url(destination: Destination | None) -> str:
    if destination is None:
        return reverse("chart")
    return reverse(f"{destination.kind}-chart", kwargs={"name": destination.name})


def summary(marks: list[history.Mark], window: history.Window) -> str:
    """The chart in a sentence, for who cannot see it. Pure."""
    if not marks:
        return "Nothing was recorded in this window."
    depths = [mark[1] for mark in marks]
    span = figures.span(window.seconds)
    return (
        f"Over {span} {figures.counted(int(depths[-1]), 'message')} pending at the end, "
        f"{figures.whole(min(depths))} at least and {figures.whole(max(depths))} at most; "
        f"at most {figures.rate(max(mark[2] for mark in marks))} in and "
        f"{figures.rate(max(mark[3] for mark in marks))} out a second."
    )


def window_of(request: HttpRequest) -> history.Window:
    """The window in a page's URL."""
    return history.Window.read(request.GET, time.time())
