"""Plotly figures as plain JSON values. Pages bring the theme; the colours of series are safe for the colour-blind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

#: Okabe and Ito's colours, those with the most contrast on light and dark ground first.
COLORWAY = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
#: More series than colours cannot be told apart; the rest is summed.
MAX_SERIES = len(COLORWAY) - 1
OTHERS = "all others"


def over_time(times: Sequence[str], series: Mapping[str, Sequence[float]], unit: str) -> dict[str, Any]:
    """Stacked areas over time, the greatest series first, the small ones summed; `times` are ISO 8601."""
    figure = go.Figure()
    for name, values in _greatest(series).items():
        figure.add_scatter(x=list(times), y=values, name=name, mode="lines", stackgroup="one", line={"width": 1})
    return _plain(figure, x={"type": "date"}, y={"title": {"text": unit}, "rangemode": "tozero"})


def bars(names: Sequence[str], series: Mapping[str, Sequence[float]], unit: str) -> dict[str, Any]:
    """Horizontal bars side by side for each name, the first name on top; a log axis, since delays span decades."""
    figure = go.Figure()
    for name, values in series.items():
        figure.add_bar(y=list(names), x=list(values), name=name, orientation="h")
    figure.update_layout(barmode="group")
    return _plain(
        figure, x={"title": {"text": unit}, "type": "log"}, y={"autorange": "reversed", "automargin": True}
    )  # fmt: skip


def _greatest(series: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    ordered = sorted(series, key=lambda name: (-sum(series[name]), name))
    shown = {name: list(series[name]) for name in ordered[:MAX_SERIES]}
    if rest := [series[name] for name in ordered[MAX_SERIES:]]:
        shown[OTHERS] = [sum(values) for values in zip(*rest, strict=True)]
    return shown


def _plain(figure: go.Figure, *, x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    figure.update_layout(
        colorway=COLORWAY, xaxis=x, yaxis=y, legend={"orientation": "h"}, margin={"t": 16, "r": 16}, hovermode="closest"
    )
    plain = json.loads(figure.to_json())
    plain["layout"].pop("template", None)  # its colours would fight the page's
    return plain


def before_and_after(
    times: Sequence[str], pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], unit: str
) -> dict[str, Any]:
    """For each name two lines of one colour: dotted as it is, solid as it would be."""
    figure = go.Figure()
    for number, (name, (before, after)) in enumerate(pairs.items()):
        colour = COLORWAY[number % len(COLORWAY)]
        for values, words, dash in ((before, f"{name}, today", "dot"), (after, name, "solid")):
            figure.add_scatter(
                x=list(times), y=list(values), name=words, mode="lines", legendgroup=name,
                line={"width": 1.5, "dash": dash, "color": colour},
            )  # fmt: skip
    return _plain(figure, x={"type": "date"}, y={"title": {"text": unit}, "rangemode": "tozero"})
