"""Build Plotly figures as plain JSON values. Pages add the theme; the colours of series suit colour-blind readers.

The figures have the format of Plotly's JavaScript. Its Python package would validate them but takes a second to load in
each process: only the tests use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analytics.model.wording import format_duration, short_name
from analytics.results import time_axes

#: Okabe and Ito's colours, those with the most contrast on light and dark backgrounds first.
COLORWAY = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
#: Most series of a chart, as there are no more colours; the rest is summed.
MAX_SERIES = len(COLORWAY) - 1
OTHERS = "others"
#: The unit of delays, which are displayed in suitable units: 240 ms, 3.2 s, 2 h.
MILLISECONDS = "milliseconds"
#: Ticks of a log axis of delays, in milliseconds; and units of a linear one, with the number from which each is used.
_MARKS = (0.01, 0.1, 1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000)
_DELAY_UNITS = ((3_600_000, 3, "hours"), (60_000, 3, "minutes"), (1000, 2, "seconds"))
#: Heights in pixels: of a bar, of the space around the bars, and of the lowest bar chart.
BAR_HEIGHT, CHART_MARGIN, MIN_HEIGHT = 26, 96, 170


def over_time(times: Sequence[str], series: Mapping[str, Sequence[float]], unit: str) -> dict[str, Any]:
    """Draw stacked areas over time, the largest series first, the small ones summed; `times` are ISO 8601."""
    traces = [
        {"type": "scatter", "x": list(times), "y": values, "name": name, "mode": "lines", "stackgroup": "one",
         "line": {"width": 1}, "hovertemplate": _hover_template(f"%{{y:,}} {unit}", _moment(times))}
        for name, values in largest_series(series).items()
    ]  # fmt: skip
    return _over_time(traces, unit)


def lines(
    times: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str, dashed: Sequence[str] = ()
) -> dict[str, Any]:
    """Draw a line for each series over time; None is a gap, and series named in `dashed` are for comparison."""
    drawn = dict(list(series.items())[: len(COLORWAY)])
    size, unit_drawn = _delay_unit(drawn) if unit == MILLISECONDS else (1, unit)
    traces = [
        {"type": "scatter", "x": list(times),
         "y": [each if each is None else each / size for each in values] if size > 1 else list(values),
         "name": name, "mode": "lines", "line": {"width": 2, "dash": "dot" if name in dashed else "solid"},
         **_hover(values, unit, "y", _moment(times))}
        for name, values in drawn.items()
    ]  # fmt: skip
    return _over_time(traces, unit_drawn)


def bars(
    names: Sequence[str], series: Mapping[str, Sequence[float | None]], unit: str, *, log: bool = True,
    stacked: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Draw horizontal bars for each name, the first on top, side by side or stacked, on a log axis for delays."""
    traces = [
        {"type": "bar", "y": list(names), "x": list(values), "name": name, "orientation": "h",
         "showlegend": len(series) > 1, **_hover(values, unit, "x", at="%{y}")}
        for name, values in series.items()
    ]  # fmt: skip
    height = max(MIN_HEIGHT, BAR_HEIGHT * len(names) * (1 if stacked else max(1, len(series) * 0.6)) + CHART_MARGIN)
    layout = {"barmode": "stack" if stacked else "group", "bargap": 0.35, "height": round(height)}
    axis: dict[str, Any] = {"type": "log", "dtick": 1} if log else {"rangemode": "tozero"}
    if log and unit == MILLISECONDS:
        axis |= {"tickvals": list(_MARKS), "ticktext": [format_duration(each * 1000) for each in _MARKS]}
    else:
        axis["title"] = {"text": unit}
    return _figure(traces, layout, x=axis, y={"autorange": "reversed", "automargin": True})


def largest_series(series: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Return the series with the largest sums, and the rest summed; at most as many as there are colours."""
    ordered = sorted(series, key=lambda name: (-sum(series[name]), name))
    shown = {name: list(series[name]) for name in ordered[:MAX_SERIES]}
    if rest := [series[name] for name in ordered[MAX_SERIES:]]:
        shown[OTHERS] = [sum(values) for values in zip(*rest, strict=True)]
    return shown


def before_and_after(
    times: Sequence[str], pairs: Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]], unit: str
) -> dict[str, Any]:
    """Draw two lines of one colour for each name: dotted for before, solid for after; None is a gap."""
    traces = []
    for number, (name, (before, after)) in enumerate(pairs.items()):
        colour = COLORWAY[number % len(COLORWAY)]
        for values, words, dash in ((before, f"{name} (recorded)", "dot"), (after, name, "solid")):
            traces.append(
                {"type": "scatter", "x": list(times), "y": list(values), "name": words, "mode": "lines",
                 "legendgroup": name, "line": {"width": 1.5, "dash": dash, "color": colour},
                 **_hover(values, unit, "y", _moment(times))}
            )  # fmt: skip
    return _over_time(traces, unit)


def forecast(
    times: Sequence[str],
    observed: Sequence[float | None],
    expected: Sequence[float | None],
    bands: Mapping[str, tuple[Sequence[float | None], Sequence[float | None]]],
    marked: Sequence[float | None],
    unit: str,
) -> dict[str, Any]:
    """Draw observed figures, a forecast, bands between low and high ends, and marks; all have a value for each time."""
    observed_colour, forecast_colour, mark_colour, *band_colours = (COLORWAY[each] for each in (0, 1, 5, 7, 4, 2))
    traces: list[dict[str, Any]] = []
    for colour, (name, ends) in zip(band_colours, bands.items(), strict=False):
        for end, values in zip(("from", "to"), ends, strict=True):
            traces.append(
                {"type": "scatter", "x": list(times), "y": list(values), "name": f"{name}, {end}", "mode": "lines",
                 "legendgroup": name, "line": {"width": 0, "color": colour},
                 **({"fill": "tonexty"} if end == "to" else {}), **_hover(values, unit, "y", _moment(times))}
            )  # fmt: skip
    for name, values, colour, mode in (
        ("observed", observed, observed_colour, "lines"),
        ("forecast", expected, forecast_colour, "lines"),
        ("anomalies", marked, mark_colour, "markers"),
    ):
        if all(each is None for each in values):
            continue
        style = (
            {"marker": {"size": 8, "color": colour}} if mode == "markers" else {"line": {"width": 2, "color": colour}}
        )
        traces.append(
            {"type": "scatter", "x": list(times), "y": list(values), "name": name, "mode": mode, **style,
             **_hover(values, unit, "y", _moment(times))}
        )  # fmt: skip
    return _over_time(traces, unit)


def assign_colours(figures: Sequence[dict[str, Any]]) -> None:
    """Assign colours so that series of the same name have one colour in all figures, and differ within a figure.

    Figures that set a colour themselves, and those of a single series, are not changed.
    """
    known: dict[str, str] = {}
    for figure in figures:
        traces = [each for each in figure["data"] if each.get("name")]
        if len(traces) < 2 or any("color" in _styled_part(each) for each in traces):
            continue
        names = [short_name(each["name"]) for each in traces]
        kept = dict(zip((known.get(each) for each in names), names, strict=True))  # of two with one colour the last
        for name, trace in zip(names, traces, strict=True):
            colour = known.get(name)
            if colour is None or kept[colour] != name:
                free = [each for each in COLORWAY if each not in kept]
                colour = next((each for each in free if each not in known.values()), free[0] if free else COLORWAY[-1])
                kept[colour] = name
                known.setdefault(name, colour)
            _styled_part(trace)["color"] = colour


def _styled_part(trace: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a trace that has its colour: line or bars."""
    return trace.setdefault("marker" if trace["type"] == "bar" else "line", {})


def _hover(values: Sequence[float | None], unit: str, axis: str, at: str) -> dict[str, Any]:
    """Return the tooltip of a trace: value with unit, position and name."""
    if unit != MILLISECONDS:
        return {"hovertemplate": _hover_template(f"%{{{axis}:,}} {unit}", at)}
    words = [None if each is None else format_duration(each * 1000) for each in values]
    return {"customdata": words, "hovertemplate": _hover_template("%{customdata}", at)}


def _hover_template(value: str, at: str) -> str:
    return f"%{{fullData.name}}<br>{value}<br>{at}<extra></extra>"


def _moment(times: Sequence[str]) -> str:
    return f"%{{x|{time_axes.hover_format(times)}}}"


def _delay_unit(series: Mapping[str, Sequence[float | None]]) -> tuple[int, str]:
    """Return the length in milliseconds and the name of the unit in which delays of this size are drawn."""
    greatest = max((each for values in series.values() for each in values if each is not None), default=0)
    return next(((size, name) for size, least, name in _DELAY_UNITS if greatest >= least * size), (1, MILLISECONDS))


def _over_time(traces: list[dict[str, Any]], unit: str) -> dict[str, Any]:
    return _figure(traces, {}, x={"type": "date"}, y={"title": {"text": unit}, "rangemode": "tozero"})


def _figure(traces: list[dict[str, Any]], layout: dict[str, Any], *, x: Mapping, y: Mapping) -> dict[str, Any]:
    common = {
        "colorway": list(COLORWAY),
        "xaxis": x,
        "yaxis": y,
        "legend": {"orientation": "h", "traceorder": "normal"},
        "margin": {"t": 16, "r": 16},
        "hovermode": "closest",
    }
    return {"data": traces, "layout": layout | common}
