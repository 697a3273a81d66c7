"""Read the recorded traffic and depths of each hour, from which forecasts are made."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from analytics.jobs.common.recorded_depths import read_recorded_depths
from analytics.jobs.common.tables import Collect, total
from analytics.model.recording_gaps import HOUR, RecordingCoverage, find_gaps
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from analytics.tables.counts import read_counts
from analytics.tables.definitions import HOUR_US, TRAFFIC
from analytics.transforms import aggregates
from analytics.transforms.event_filters import of_destination
from analytics.transforms.traffic import traffic_of

#: Frames that are collected.
STEPS = 2
#: Destinations that have a forecast of their own: those with most traffic, or the deepest.
MAX_DESTINATIONS = 20


@dataclass(frozen=True, slots=True)
class HourlyHistory:
    """Hourly figures; NaN where nothing was recorded."""

    end: int  #: start of the first hour after them, in hours since the epoch
    whole: np.ndarray
    destinations: dict[str, np.ndarray] = field(default_factory=dict)  #: those with the largest figures first
    rows_read: int = 0


def read_traffic(question: RunQuestion, collect: Collect) -> HourlyHistory:
    """Read the messages that arrived in each hour at each destination, and of all that were sent.

    Where none was sent to the chosen destinations, since all were copied there, the stored copies are summed.
    """
    hours, counts = _whole_hours(question), read_counts(question, HOUR, _whole(question))
    chosen = counts.where(lambda each: of_destination(each, question.parameters.get("destination", "")))
    by_hour = chosen.messages(TRAFFIC, "destination", aggregates.slot(HOUR).alias("slot"))
    rows = collect("traffic by destination and hour", traffic_of(by_hour))
    noted = counts.depth_notes(HOUR).groupBy("slot")
    notes = collect(
        "recorded hours",
        noted.agg(F.sum("depth").alias("waiting"), F.max("whole").alias("whole"), F.max("started").alias("started")),
    )
    is_sent = total(rows, "sent") > 0
    series = _series(rows, "arrived", hours)
    sent = _series(rows, "sent" if is_sent else "stored", hours)
    whole = np.sum(list(sent.values()), axis=0) if sent else np.zeros(len(hours))
    unknown = _unrecorded(question, hours, whole > 0, notes)
    for each in (whole, *series.values()):
        each[unknown] = np.nan
    return HourlyHistory(hours.stop, whole, _largest(series), total(rows, "events"))


def read_depths(question: RunQuestion, collect: Collect) -> HourlyHistory:
    """Read the depth at the end of each hour of each queue and subscription, and of all together."""
    hours = _whole_hours(question)
    found = read_recorded_depths(question, HOUR, collect, question.parameters.get("destination", ""))
    skipped = hours.start - found.begins[0] // HOUR if found.begins else 0
    series: dict[str, np.ndarray] = {}
    for (_broker, name), course in found.courses.items():
        if name.startswith("topic://"):
            continue
        depths = np.array(course.depths, float)
        depths[np.array(course.gaps, bool)] = np.nan
        depths = depths[skipped : skipped + len(hours)]
        series[name] = series[name] + depths if name in series else depths
    whole = np.sum(list(series.values()), axis=0) if series else np.zeros(len(hours))
    return HourlyHistory(hours.stop, whole, _largest(series), found.rows_read)


def _whole(question: RunQuestion) -> TimeWindow:
    hours = _whole_hours(question)
    return TimeWindow(hours.start * HOUR_US, max(hours.stop, hours.start + 1) * HOUR_US)


def _whole_hours(question: RunQuestion) -> range:
    """Return the hours, since the epoch, that the recorded part of the time range has as a whole."""
    covered = question.covered
    return range(-(-covered.since_us // HOUR_US), covered.until_us // HOUR_US)


def _series(rows: pa.Table, column: str, hours: range) -> dict[str, np.ndarray]:
    """Return the values of a column by destination, 0 in hours without a row."""
    found: dict[str, np.ndarray] = {}
    at = pc.divide(rows["slot"].cast(pa.int64()), HOUR_US).to_numpy() - hours.start
    for name, hour, value in zip(rows["destination"].to_pylist(), at, rows[column].to_pylist(), strict=True):
        if value and 0 <= hour < len(hours):
            found.setdefault(name, np.zeros(len(hours)))[hour] += value
    return found


def _largest(series: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    sums = {name: float(np.nansum(values)) for name, values in series.items()}
    names = sorted((name for name in sums if sums[name]), key=lambda name: (-sums[name], name))
    return {name: series[name] for name in names[:MAX_DESTINATIONS]}


def _unrecorded(question: RunQuestion, hours: range, has_traffic: np.ndarray, notes: pa.Table) -> np.ndarray:
    """Return for each hour whether nothing is known of it. An hour without traffic is usually one of silence."""
    noted = {int(each["slot"].timestamp()) // HOUR - hours.start: each for each in notes.to_pylist()}
    waiting, depth = [], 0
    for hour in range(len(hours)):
        depth = (noted[hour]["waiting"] or 0) if hour in noted else depth
        waiting.append(depth)
    coverage = RecordingCoverage(
        slots={*np.flatnonzero(has_traffic).tolist(), *(hour for hour in noted if 0 <= hour < len(hours))},
        started={hour for hour, each in noted.items() if each["started"]},
        hours={(hours.start + hour) * HOUR for hour, each in noted.items() if each["whole"]},
    )
    begins = [hour * HOUR for hour in hours]
    return np.array(find_gaps(begins, HOUR, question.window.until_us / 1e6, coverage, waiting), bool)
