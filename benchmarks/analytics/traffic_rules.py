"""Measure how often rules on expected traffic fire over generated weeks: python -m benchmarks.analytics.traffic_rules

Replays the last four of eight weeks as the console tests a rule: every day is expected from the hours before it, and
each hour is judged at its end. "Quiet" weeks have no incidents, so each alert is false. The other weeks have holidays,
bursts, outages and hours without records; alerts beyond the known bursts and outages are false alarms or holidays.
"""

from __future__ import annotations

import time

import numpy as np

from analytics.model.traffic_comparison import TrafficHour
from analytics.rollups.expected_traffic import replay_days
from analytics.rollups.store import HOUR
from benchmarks.analytics.generated_weeks import KINDS, MONDAY, WEEK, GeneratedSeries, traffic
from console.alerts.backtest import AlertEpisode, replay_hours
from console.alerts.metrics import AlertMetric
from console.alerts.rules import AlertCondition

WEEKS, REPLAYED_WEEKS, SERIES = 8, 4, 10
#: Rules: their thresholds as shares of a usual hour, and how many seconds they must hold.
RULES = (("0", 0.0, 0), ("0, for 1 h", 0.0, HOUR), ("10% of a usual hour", 0.1, 0))


def hours_of(series: GeneratedSeries) -> list[TrafficHour]:
    """Return the replayed hours, each with what was expected."""
    return replay_days(series.values, MONDAY + len(series.values), REPLAYED_WEEKS * 7)


def episodes(hours: list[TrafficHour], threshold: float, hold: int) -> list[AlertEpisode]:
    """Return when a rule on either side of the range would have fired."""
    return replay_hours(AlertCondition(AlertMetric.TRAFFIC_ANOMALY, threshold, hold=hold), {"queue://x": hours})


def is_about(episode: AlertEpisode, first: int, hours: int) -> bool:
    """Return whether an alert began in an incident, or within the hour after it."""
    return MONDAY + first <= episode.fired // HOUR <= MONDAY + first + hours + 1


def main() -> None:
    """Print alerts a week for each kind of traffic and rule."""
    began = time.perf_counter()
    print(f"{'traffic':14} {'rule':20} {'quiet: alerts a week':>21} {'others: beyond incidents':>25} {'detected':>9}")
    for kind in KINDS:
        quiet, others = [], []
        for number in range(SERIES):
            rng = np.random.default_rng((9, number, len(kind.name)))
            quiet.append(hours_of(traffic(kind, WEEKS, rng, dirty=False)))
            series = traffic(kind, WEEKS, rng)
            late = [each for each in series.incidents if each.first >= (WEEKS - REPLAYED_WEEKS) * WEEK]
            others.append((hours_of(series), late))
        weeks, known = SERIES * REPLAYED_WEEKS, sum(len(late) for _, late in others)
        for name, share, hold in RULES:
            threshold = share * kind.per_hour
            false = sum(len(episodes(hours, threshold, hold)) for hours in quiet)
            beyond = found = 0
            for hours, late in others:
                alerts = episodes(hours, threshold, hold)
                beyond += sum(not any(is_about(each, of.first, of.hours) for of in late) for each in alerts)
                found += sum(any(is_about(each, of.first, of.hours) for each in alerts) for of in late)
            print(
                f"{kind.name:14} {name:20} {false / weeks:21.2f} {beyond / weeks:25.2f} {found:5}/{known}", flush=True
            )
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
