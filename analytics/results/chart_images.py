"""Draw the charts of a result as images, without a browser, for mail programs, which run no scripts."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import num2date
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from analytics.model.wording import short_name
from analytics.results.charts import COLORWAY
from analytics.results.time_axes import parse_moment, tick_marks, zone_label

#: Size in CSS pixels, and image pixels for each of them, for high-resolution screens.
WIDTH, HEIGHT, SHARPNESS = 600, 260, 2
_INK, _SOFT, _LINE = "#15202b", "#556372", "#e1e6eb"
#: Characters of a name that are shown, and of names of which three fit side by side.
_MAX_LABEL, _SHORT_LABEL = 40, 24
_DPI = 100

#: DejaVu Sans, in which charts are drawn: the files that matplotlib has with it.
FONT_FOLDER = Path(matplotlib.get_data_path()) / "fonts" / "ttf"


def png(
    figure: Mapping[str, Any], zone: str = "UTC", size: tuple[int, int] = (WIDTH, HEIGHT), sharpness: int = SHARPNESS
) -> bytes | None:
    """Draw a chart as a PNG, with times in the zone; None for a type of chart that is not supported.

    `size` is in CSS pixels, each of which is `sharpness` image pixels wide and high.
    """
    traces = [trace for trace in figure["data"] if trace.get("visible", True) is True]
    draw = next((drawn for fits, drawn in _CHART_TYPES if traces and all(map(fits, traces))), None)
    if draw is None:
        return None
    canvas = Figure(
        figsize=(size[0] / _DPI, size[1] / _DPI), dpi=_DPI * sharpness, layout="constrained", facecolor="white"
    )
    FigureCanvasAgg(canvas)
    drawn = canvas.add_subplot()
    layout = figure.get("layout", {})
    drawn.set_prop_cycle(color=list(layout.get("colorway") or COLORWAY))
    draw(drawn, traces, layout)
    _style_axes(drawn, layout, zone, named=[trace["name"] for trace in traces if trace.get("name")])
    out = io.BytesIO()
    canvas.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _areas(axes: Any, traces: Sequence[Mapping[str, Any]], _layout: Mapping[str, Any]) -> None:
    axes.stackplot(
        _values(traces[0]["x"]), *(_numbers(trace["y"]) for trace in traces), labels=_names(traces), alpha=0.85
    )
    axes.margins(x=0)


def _lines(axes: Any, traces: Sequence[Mapping[str, Any]], _layout: Mapping[str, Any]) -> None:
    for number, (trace, name) in enumerate(zip(traces, _names(traces), strict=True)):
        if _is_below(traces, number):
            continue
        if trace.get("fill") == "tonexty":
            ends = (_numbers(each["y"]) for each in traces[number - 1 : number + 1])
            colour = trace.get("line", {}).get("color")
            axes.fill_between(
                _values(trace["x"]), *ends, alpha=0.25, label=_text(trace["legendgroup"]), color=colour, linewidth=0
            )
            continue
        style = "o" if trace.get("mode") == "markers" else "-"
        colour = trace.get("marker" if style == "o" else "line", {}).get("color")
        given = {"color": colour} if isinstance(colour, str) else {}
        axes.plot(_values(trace["x"]), _numbers(trace["y"]), style, label=name, linewidth=1.4, markersize=4, **given)


def _is_below(traces: Sequence[Mapping[str, Any]], number: int) -> bool:
    """Return whether a trace is the low end of a band, which is drawn with the high end after it."""
    return number + 1 < len(traces) and traces[number + 1].get("fill") == "tonexty"


def _bars(axes: Any, traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any]) -> None:
    is_flat = traces[0].get("orientation") == "h"
    names = list(dict.fromkeys(_text(each) for trace in traces for each in _list(trace["y" if is_flat else "x"])))
    place = {name: number for number, name in enumerate(names)}
    is_stacked = layout.get("barmode") in ("stack", "relative")
    thickness = 0.8 if is_stacked else 0.8 / len(traces)
    base = np.zeros(len(names))
    for number, (trace, name) in enumerate(zip(traces, _names(traces), strict=True)):
        values = np.zeros(len(names))
        for label, value in zip(
            _list(trace["y" if is_flat else "x"]), _numbers(trace["x" if is_flat else "y"]), strict=True
        ):
            values[place[_text(label)]] = value
        at = np.arange(len(names)) + (0 if is_stacked else (number - (len(traces) - 1) / 2) * thickness)
        draw, start = (axes.barh, "left") if is_flat else (axes.bar, "bottom")
        draw(at, values, thickness, label=name, **({start: base} if is_stacked else {}))
        base = base + values
    (axes.set_yticks if is_flat else axes.set_xticks)(np.arange(len(names)), names)
    if is_flat:
        axes.invert_yaxis()


def _heatmap(axes: Any, traces: Sequence[Mapping[str, Any]], _layout: Mapping[str, Any]) -> None:
    trace = traces[0]
    rows = np.array(
        [[np.nan if each is None else each for each in _list(row)] for row in _list(trace["z"])], dtype=float
    )
    drawn = axes.imshow(rows, aspect="auto", cmap="Blues", interpolation="nearest")
    for put, values in ((axes.set_xticks, trace.get("x")), (axes.set_yticks, trace.get("y"))):
        if values is not None:
            names = [_text(each) for each in _list(values)]
            step = max(1, len(names) // 8)
            put(range(0, len(names), step), names[::step])
    axes.figure.colorbar(drawn, ax=axes, shrink=0.9).ax.tick_params(labelsize=7, colors=_SOFT)


def _is_scatter(trace: Mapping[str, Any]) -> bool:
    return trace.get("type", "scatter") in ("scatter", "scattergl") and "y" in trace and "x" in trace


#: Types of charts: a predicate for their traces, and the function that draws them.
_CHART_TYPES = (
    (lambda trace: _is_scatter(trace) and bool(trace.get("stackgroup")), _areas),
    (_is_scatter, _lines),
    (lambda trace: trace.get("type") == "bar", _bars),
    (lambda trace: trace.get("type") == "heatmap", _heatmap),
)


def _style_axes(axes: Any, layout: Mapping[str, Any], zone: str, named: Sequence[str]) -> None:
    for side, axis in (("xaxis", axes.xaxis), ("yaxis", axes.yaxis)):
        said = layout.get(side, {})
        if said.get("type") == "log":
            (axes.set_xscale if side == "xaxis" else axes.set_yscale)("log")
        elif side == "xaxis" and (said.get("type") == "date" or axis.get_converter() is not None):
            _mark_times(axis, zone)
            continue
        if said.get("tickvals"):
            shown = axis.get_view_interval()
            marks = [
                each for each in zip(said["tickvals"], said["ticktext"], strict=True) if shown[0] <= each[0] <= shown[1]
            ]
            axis.set_ticks([value for value, _ in marks], [text for _, text in marks])
        elif axis.get_scale() == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        elif not isinstance(axis.get_major_locator(), FixedLocator):  # names of bars have theirs
            axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        title = said.get("title") or {}
        axis.set_label_text(title if isinstance(title, str) else title.get("text", ""), fontsize=8, color=_SOFT)
    axes.tick_params(which="both", labelsize=7.5, colors=_SOFT, length=0)
    axes.grid(color=_LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(named) > 1:
        columns = min(3 if max(map(len, named)) <= _SHORT_LABEL else 2, len(named))
        axes.figure.legend(
            loc="outside lower center", ncols=columns, fontsize=7.5, frameon=False, labelcolor=_INK, handlelength=1.2
        )


def _mark_times(axis: Any, zone: str) -> None:
    first, last = (num2date(each) for each in axis.get_view_interval())
    found = tick_marks(first, last, zone)
    axis.set_ticks([moment for moment, _ in found], [text for _, text in found])
    axis.set_label_text(zone_label(first, last, zone), fontsize=8, color=_SOFT)


def _names(traces: Sequence[Mapping[str, Any]]) -> list[str]:
    return [_text(trace.get("name", "")) for trace in traces]


def _text(value: Any) -> str:
    text = short_name(str(value))
    return text if len(text) <= _MAX_LABEL else f"…{text[1 - _MAX_LABEL :]}"  # names often differ only at their ends


def _list(values: Any) -> list[Any]:
    """Return values as a list; Plotly may encode numbers as {"dtype": "f8", "bdata": base64}."""
    if isinstance(values, Mapping):
        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).tolist()
    return list(values)


def _numbers(values: Any) -> np.ndarray:
    return np.array([np.nan if each is None else each for each in _list(values)], dtype=float)


def _values(values: Any) -> list[Any]:
    """Parse values that are times; return other values unchanged."""
    found = _list(values)
    try:
        return [parse_moment(each) for each in found]
    except (TypeError, ValueError):
        return found
