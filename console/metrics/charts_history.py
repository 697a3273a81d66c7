"""The history as pages show it: a window of time, marks for a chart, a line in a table's cell. Pure but for `past`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlencode

from analytics.rollups.queries import width_for
from analytics.rollups.store import HOUR, RETENTION_SECONDS
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.time_series import (
    COARSE,
    FINE,
    BrokerPoint,
    DestinationPoint,
    Resolution,
    unpack_broker_points,
    unpack_destination_points,
)
from brokerapp.store.history_rings import BROKER_RING
from console.broker.gateway import Gateway

#: The windows a page offers: what the URL calls them, what the page does, and how many seconds they are.
WINDOWS: dict[str, tuple[str, int]] = {
    "15m": ("15 min", 900), "1h": ("1 h", 3600), "24h": ("24 h", 86400), "7d": ("7 d", 7 * 86400),
    "30d": ("30 d", 30 * 86400),
}  # fmt: skip
DEFAULT = "15m"
#: Parameters of a URL that say it.
OF_WINDOW = frozenset({"window", "from", "to"})
#: Destinations with a history in the store: about 36 KB each when they move all the time, at most 54 MB together.
MAX_DESTINATIONS = 1_500
#: The shortest window that a brush may choose, seconds.
SHORTEST = 60


@dataclass(frozen=True, slots=True)
class ChartWindow:
    """The time a chart shows: the last so many seconds, or from one moment to another."""

    name: str  #: of WINDOWS; "" for one of its own
    start: int  #: seconds since the epoch
    end: int
    resolution: Resolution  #: how finely it is shown: as finely as what is kept reaches

    @staticmethod
    def read(query: Mapping[str, str], now: float) -> ChartWindow:
        """Return the window in a URL; what makes no sense there falls back to the default."""
        start, end = (_moment(query.get(name, "")) for name in ("from", "to"))
        oldest = int(now) - RETENTION_SECONDS[HOUR]
        if start is not None and end is not None and oldest <= start and start + SHORTEST <= end <= now + FINE.step:
            return ChartWindow("", start, end, _resolution(start, end, now))
        name = query.get("window", DEFAULT)
        name = name if name in WINDOWS else DEFAULT
        start = int(now) - WINDOWS[name][1]
        return ChartWindow(name, start, int(now), _resolution(start, int(now), now))

    @property
    def is_rolled_up(self) -> bool:
        """Return whether the range reaches further back than the store's history, so that rollups are needed."""
        return self.resolution not in (FINE, COARSE)

    def rolled_up(self, now: float) -> ChartWindow:
        """Return the same range in the resolution of rollups, for destinations without a history in the store."""
        return replace(self, resolution=_rollups(self.start, self.end, now))

    @property
    def is_live(self) -> bool:
        """Return whether the range ends now."""
        return bool(self.name)

    @property
    def choices(self) -> list[tuple[str, str, bool]]:
        """Return the time ranges to choose from: name, label, and whether it is this one."""
        return [(name, label, name == self.name) for name, (label, _) in WINDOWS.items()]

    @property
    def seconds(self) -> int:
        """Return the length in seconds."""
        return self.end - self.start

    @property
    def query(self) -> str:
        """Return the time range as the query of a URL; "" for the default."""
        if not self.is_live:
            return "?" + urlencode({"from": self.start, "to": self.end})
        return "" if self.name == DEFAULT else f"?window={self.name}"

    @property
    def carried(self) -> str:
        """Return the range as a parameter for other URLs, so that it is kept from page to page."""
        return self.query.removeprefix("?")

    @property
    def link_query(self) -> str:
        """Return the range as the query of links to pages with other defaults: always named."""
        return self.carried or f"window={self.name}"

    @property
    def start_text(self) -> str:
        """Return the start as pages of messages read it, in UTC."""
        return f"{datetime.fromtimestamp(self.start, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _resolution(start: int, end: int, now: float) -> Resolution:
    for each in (FINE, COARSE):
        if int(now) - start <= each.span:  # windows begin at whole seconds: a fraction reaches no further back
            return each
    return _rollups(start, end, now)


def _rollups(start: int, end: int, now: float) -> Resolution:
    width = width_for(start, end, now)
    return Resolution("rollups", width, RETENTION_SECONDS[width] // width)


def _moment(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 12 else None


Mark = list[float | None]  #: milliseconds, pending, messages a second in and out


def broker_marks(kept: Iterable[BrokerPoint], window: ChartWindow) -> list[Mark]:
    """Return the broker's points as a chart's. A step without a point is a gap, which the chart leaves open."""
    step = window.resolution.step
    return [
        [each.at * 1000, each.pending, round(each.arrived / step, 2), round(each.left / step, 2)]
        for each in kept
        if window.start <= each.at <= window.end + step
    ]


def destination_marks(
    kept: Sequence[DestinationPoint], looked: Sequence[BrokerPoint], window: ChartWindow, pending: int | None
) -> list[Mark]:
    """Return a destination's points for a chart; without a point it did not change, while samples were taken.

    `pending`: what it holds now; None when it is gone.
    """
    step = window.resolution.step
    by_time = {each.at: each for each in kept}
    before = next((each for each in reversed(kept) if each.at < window.start), None)
    first = next((each for each in kept if each.at >= window.start), None)
    level = _level_before(first, before, pending)
    marks: list[Mark] = []
    for moment in (each.at for each in looked if window.start <= each.at <= window.end + step):
        point = by_time.get(moment)
        if point is not None:
            level = point.pending
        rates = (point.arrived / step, point.left / step) if point else (0.0, 0.0)
        marks.append([moment * 1000, level, *(round(each, 2) for each in rates)])
    return marks


def _level_before(first: DestinationPoint | None, before: DestinationPoint | None, pending: int | None) -> int:
    """Return the depth before the first point of a time range."""
    if before is not None:
        return before.pending
    if first is not None:
        return max(0, first.pending - first.arrived + first.left)
    return pending or 0


#: The box of a sparkline, in its own units, the seconds it shows and the places it has.
SPARK_WIDTH, SPARK_HEIGHT = 100, 24
SPARK_SECONDS, SPARK_PLACES = 3600, 50


def spark(
    kept: Sequence[DestinationPoint], looked: Sequence[BrokerPoint], now: float, kind: DestinationKind, level: float
) -> str:
    """Return the last hour as an SVG path's line: the depth of a queue, what came to a topic. `level`: it is now.

    A place in which nobody looked is a gap, as in a chart: the broker stood, or nothing was recorded yet.
    """
    values = _levels(kept, now, int(level)) if kind is DestinationKind.QUEUE else _arrivals(kept, now)
    seen = {*_places(looked, now), SPARK_PLACES - 1}  # the present is always looked at
    top = max(values[place] for place in seen) * 1.15 or 1
    step = SPARK_WIDTH / (SPARK_PLACES - 1)
    heights = {place: (SPARK_HEIGHT - 2) * (1 - values[place] / top) + 1 for place in seen}

    def is_corner(place: int) -> bool:
        return not heights.get(place - 1) == heights[place] == heights.get(place + 1)

    stretches = ["M" + " ".join(f"{place * step:.0f},{heights[place]:.0f}" for place in run if is_corner(place))
                 for run in _runs(sorted(seen))]  # fmt: skip
    return "".join(each if " " in each else f"{each}h0" for each in stretches)  # one place alone is a dot


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Ascending numbers in stretches without a gap."""
    stretches: list[list[int]] = []
    for place in places:
        if not stretches or place != stretches[-1][-1] + 1:
            stretches.append([])
        stretches[-1].append(place)
    return stretches


def spark_area(line: str) -> str:
    """Return the path of the area below a sparkline, closing each stretch at the base. live_socket.js does the same."""
    return re.sub(r"M(\d+),[^M]*", rf"\g<0>V{SPARK_HEIGHT}H\1Z", line)


def _places(kept: Sequence[DestinationPoint] | Sequence[BrokerPoint], now: float) -> dict[int, list]:
    """Points of the last hour by the place of a sparkline that they are in, ascending."""
    start, width = now - SPARK_SECONDS, SPARK_SECONDS / SPARK_PLACES
    places: dict[int, list] = {}
    for each in kept:
        if each.at >= start:
            places.setdefault(min(SPARK_PLACES - 1, int((each.at - start) / width)), []).append(each)
    return places


def _levels(kept: Sequence[DestinationPoint], now: float, level: int) -> list[float]:
    places = _places(kept, now)
    before = next((each for each in reversed(kept) if each.at < now - SPARK_SECONDS), None)
    first = next((points[0] for points in places.values()), None)
    current = _level_before(first, before, level)
    values: list[float] = []
    for place in range(SPARK_PLACES):
        current = places[place][-1].pending if place in places else current
        values.append(current)
    values[-1] = level
    return values


def _arrivals(kept: Sequence[DestinationPoint], now: float) -> list[float]:
    places = _places(kept, now)
    return [float(sum(point.arrived for point in places.get(place, ()))) for place in range(SPARK_PLACES)]


def read_points(
    door: Gateway, resolution: Resolution, destinations: Sequence[Destination]
) -> list[list[DestinationPoint]]:
    """Read the history of these destinations."""
    found = door.run(door.admin.rings.read(resolution, [str(each) for each in destinations])) if destinations else []
    return [unpack_destination_points(each) for each in found]


def read_broker_points(door: Gateway, resolution: Resolution) -> list[BrokerPoint]:
    """Read the history of the broker."""
    return unpack_broker_points(door.run(door.admin.rings.read(resolution, [BROKER_RING]))[0])
