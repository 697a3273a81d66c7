"""Prepare charts of results for pages: descriptions in words, and links of their marks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from analytics.model.wording import join_names, short_name
from analytics.results import time_axes
from console.analyses import result_tables
from console.ui.formatting import number_format
from console.ui.preferences import timezones

#: Series, or bars, that are told one by one.
MAX_DESCRIBED = 4
#: What a table's column may be about so that a mark with one of its texts leads there.
LINKED_KINDS = ("destination", "client")


@dataclass(frozen=True, slots=True)
class Plot:
    """One chart: its figure as Plotly takes it."""

    id: str
    title: str
    figure: Mapping[str, Any]
    opens: Mapping[str, str] = field(default_factory=dict)  #: addresses, by what a mark is called; "": of all others
    zone: str = ""  #: by whose clock it tells times; "": that of whoever reads

    @property
    def drawn(self) -> dict[str, Any]:
        """Return the data from which the script of the page draws the chart."""
        time = time_axes.for_page([self.figure], self.zone or timezones.current_zone_name())
        return {"figure": self.figure, "opens": self.opens, "time": time}

    @property
    def words(self) -> str:
        """Return the chart in a sentence or two."""
        return describe_chart(self.figure)


def plots(result: Mapping[str, Any], prefix: str = "figure", zone: str = "") -> list[Plot]:
    """Return the charts of a result; their marks link to what its tables name, or to the overview, in its time range.

    Times are in `zone`, by default that of the reader.
    """
    opens = link_targets(linked_names(result["tables"]), result["window"])
    return [
        Plot(f"{prefix}-{number}", each["title"], each["figure"], opens, zone)
        for number, each in enumerate(result["charts"])
    ]


def linked_names(tables: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each thing in the tables that has a page of its own."""
    for table in tables:
        for place, column in enumerate(table["columns"]):
            if column.get("about") in LINKED_KINDS:
                yield from ((column["about"], row[place]) for row in table["rows"] if isinstance(row[place], str))


def link_targets(named: Iterable[tuple[str, str]], window: Mapping[str, int]) -> dict[str, str]:
    """Addresses of live pages at a window, by names as charts have them: whole, or without the kind of a queue."""
    found = {name: result_tables.link_to(about, name, window) for about, name in named}
    known = {name: url for name, url in found.items() if url}
    return (
        {"": reverse("overview") + result_tables.window_query(window)}
        | known
        | {short_name(name): url for name, url in known.items()}
    )


def describe_chart(figure: Mapping[str, Any]) -> str:
    """Describe a figure in words: number of lines or bars, their names, and the values of the first ones."""
    traces = [each for each in figure["data"] if _values(each)]
    if not traces:
        return "No data."
    if traces[0].get("type") == "bar":
        return _of_bars(traces, _unit(figure, "xaxis"))
    unit = _unit(figure, "yaxis")
    told = [f"{short_name(each.get('name')) or 'line'} {_range(each)}" for each in traces]
    return f"{number_format.pluralize_count(len(traces), 'line')} over time{unit}: {_listed(told)}."


def _of_bars(traces: Sequence[Mapping[str, Any]], unit: str) -> str:
    first = traces[0]
    told = [f"{name} {value}" for name, value in zip(first.get("y", ()), _texts(first), strict=False)]
    series = f", {first['name']}" if len(traces) > 1 and first.get("name") else ""
    more = f" It has {number_format.pluralize_count(len(traces), 'bar')} for each." if len(traces) > 1 else ""
    return f"Bars of {number_format.pluralize_count(len(told), 'name')}{unit}{series}: {_listed(told)}.{more}"


def _listed(told: Sequence[str]) -> str:
    return join_names(told, MAX_DESCRIBED)


def _unit(figure: Mapping[str, Any], axis: str) -> str:
    title = (figure.get("layout", {}).get(axis) or {}).get("title") or {}
    return f" in {title['text']}" if title.get("text") else ""


def _values(trace: Mapping[str, Any]) -> list[float]:
    """Return the numbers of a trace: along x for lying bars, else along y."""
    found = trace.get("x" if trace.get("orientation") == "h" else "y") or ()
    return [each for each in found if isinstance(each, int | float)]


def _texts(trace: Mapping[str, Any]) -> list[str]:
    """Format the values of a trace; delays contain their units."""
    found = trace.get("x" if trace.get("orientation") == "h" else "y") or ()
    said = trace.get("customdata") or [None] * len(found)
    return [text or ("none" if value is None else _number(value)) for value, text in zip(found, said, strict=False)]


def _number(value: float) -> str:
    return number_format.format_integer(value) if float(value).is_integer() else f"{value:,.1f}"


def _range(trace: Mapping[str, Any]) -> str:
    found = _values(trace)
    texts = dict(zip(trace.get("y") or (), _texts(trace), strict=False))
    least, most = texts[min(found)], texts[max(found)]
    return least if least == most else f"from {least} to {most}"
