"""Measure forecasts and anomalies on generated weeks: python -m benchmarks.analytics.forecast [--statsmodels]

Prints errors and coverage of forecasts beside those of other methods, and false alarms and detected incidents of the
expected range. `--statsmodels` needs that package, which the project does not install. All is generated from a seed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from analytics.model.seasonal_forecast import LOW, MIDDLE, QUANTILES, UPPER, fit
from benchmarks.analytics.generated_weeks import DAY, KINDS, MONDAY, WEEK, Incident, TrafficKind, depths, traffic

#: A method: history and hours to the quantiles of each hour.
Method = Callable[[np.ndarray, int], np.ndarray]
HISTORIES = (2, 3, 4, 8)
#: Horizons that are reported: the first hour, the first day, and the week.
HORIZONS = (("1 h", slice(0, 1)), ("24 h", slice(0, DAY)), ("7 d", slice(0, WEEK)))
SERIES, ORIGINS = 6, 4
DEVIATIONS = (3.0, 4.0, 5.0, 6.0)
INCIDENTS = (("silence, 1 h", 1, 0.0), ("silence, 3 h", 3, 0.0), ("30%, 3 h", 3, 0.3), ("threefold, 2 h", 2, 3.0))
#: Weeks without incidents in which false alarms are counted, and incidents of each sort, for each kind of traffic.
QUIET_WEEKS, TRIALS = 60, 60
#: Incidents that could be noticed: those in hours with at least so many messages expected.
NOTICEABLE = 10


def seasonal(history: np.ndarray, hours: int) -> np.ndarray:
    """Forecast as the analysis does."""
    return fit(history, MONDAY + len(history)).forecast(hours)


def last_week(history: np.ndarray, hours: int) -> np.ndarray:
    """Repeat the last week, with the errors of the weeks before."""
    logs = np.log1p(history)
    errors = (logs[WEEK:] - logs[:-WEEK])[-4 * WEEK :]
    quantiles = np.nanquantile(errors, QUANTILES)
    week = logs[-WEEK:]
    week = np.where(np.isnan(week), np.nanmedian(week), week)[:hours]
    return np.maximum(np.expm1(week[:, None] + quantiles), 0)


def mstl(history: np.ndarray, hours: int) -> np.ndarray:
    """Decompose with MSTL, and forecast the rest with exponential smoothing."""
    import pandas as pd
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel
    from statsmodels.tsa.seasonal import MSTL

    logs = pd.Series(np.log1p(history)).interpolate(limit_direction="both")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        periods = (DAY, WEEK) if len(history) > 2 * WEEK else (DAY,)  # it needs more than two of the longest
        found = MSTL(logs, periods=periods, stl_kwargs={"robust": True}).fit()
        seasonal_parts = found.seasonal if found.seasonal.ndim == 1 else found.seasonal.sum(axis=1)
        model = ETSModel((logs - seasonal_parts).reset_index(drop=True), trend="add", damped_trend=True)
        rest = model.fit(disp=False, maxiter=100)
        ahead = rest.get_prediction(start=len(logs), end=len(logs) + hours - 1, simulate_repetitions=200)
        spread = np.sqrt(np.asarray(ahead.forecast_variance))
        middle = np.asarray(ahead.predicted_mean)
    longest = max(periods)
    repeated = np.resize(seasonal_parts.to_numpy()[-longest:], hours)
    normal = np.array((-1.645, -0.674, 0, 0.674, 1.645))
    return np.maximum(np.expm1((middle + repeated)[:, None] + spread[:, None] * normal), 0)


def histories(kind: TrafficKind, weeks: int, of_depths: bool, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield histories and the week that follows each."""
    for number in range(count):
        rng = np.random.default_rng((weeks, number, len(kind.name)))
        series = traffic(kind, weeks + 2, rng)
        if of_depths:
            series = depths(series, 0.8 * kind.per_hour * kind.week.max())
        for origin in range(ORIGINS):
            at = weeks * WEEK + origin * 41
            yield series.values[at - weeks * WEEK : at], series.values[at : at + WEEK]


def accuracy(methods: dict[str, Method], of_depths: bool, count: int) -> None:
    """Print errors and coverage of each method."""
    print(f"\n{'depth' if of_depths else 'traffic'}: error and pinball loss as shares of the history's mean, coverage")
    print(f"{'method':14} {'weeks':>5} {'horizon':>7} {'error':>7} {'pinball':>8} {'50%':>6} {'90%':>6} {'ms':>7}")
    for weeks in HISTORIES:
        for name, method in methods.items():
            found: dict[str, list[tuple[float, ...]]] = {}
            spent, runs = 0.0, 0
            for kind in KINDS:
                for history, truth in histories(kind, weeks, of_depths, count):
                    began = time.perf_counter()
                    ahead = method(history, WEEK)
                    spent, runs = spent + time.perf_counter() - began, runs + 1
                    usual = float(np.nanmean(history))
                    for horizon, hours in HORIZONS:
                        if (score := _score(ahead[hours], truth[hours], usual)) is not None:
                            found.setdefault(horizon, []).append(score)
            for horizon, scores in found.items():
                error, pinball, half, most = np.mean(scores, axis=0)
                print(f"{name:14} {weeks:5} {horizon:>7} {error:7.3f} {pinball:8.4f} {half:6.1%} {most:6.1%}"
                      f" {1000 * spent / runs:7.1f}", flush=True)  # fmt: skip


def _score(ahead: np.ndarray, truth: np.ndarray, usual: float) -> tuple[float, ...] | None:
    """Return absolute error and pinball loss relative to the mean of the history, and coverage."""
    known = ~np.isnan(truth)
    if not known.any():
        return None
    ahead, truth = ahead[known], truth[known]
    scale = usual * len(truth)
    difference = truth[:, None] - ahead
    loss = np.maximum(np.array(QUANTILES) * difference, (np.array(QUANTILES) - 1) * difference)
    rounded = np.round(ahead)  # figures are whole
    half = np.mean((truth >= rounded[:, LOW + 1]) & (truth <= rounded[:, UPPER]))
    most = np.mean((truth >= rounded[:, LOW]) & (truth <= rounded[:, -1]))
    return np.abs(difference[:, MIDDLE]).sum() / scale, loss.mean(axis=1).sum() / scale, half, most


def anomalies(weeks: int) -> None:
    """Print false alarms a week and the share of incidents that the expected range detects."""
    print(f"\nanomalies after {weeks} weeks of history, by the width of the expected range")
    print(
        f"{'traffic':14} {'width':>5} {'false alarms a week':>20} " + " ".join(f"{each:>15}" for each, *_ in INCIDENTS)
    )
    for kind in KINDS:
        outside = dict.fromkeys(DEVIATIONS, 0)
        noticed = {(width, name): [] for width in DEVIATIONS for name, *_ in INCIDENTS}
        for number in range(QUIET_WEEKS):
            rng = np.random.default_rng((7, weeks, number, len(kind.name)))
            history, quiet = traffic(kind, weeks, rng), traffic(_grown(kind, weeks), 1, rng, dirty=False).values
            model = fit(history.values, MONDAY + weeks * WEEK)
            ranges = {width: model.expected(MONDAY + weeks * WEEK, WEEK, width) for width in DEVIATIONS}
            for width, expected in ranges.items():
                outside[width] += _alarms(quiet, expected)
            for name, hours, factor in INCIDENTS:
                busy = np.flatnonzero(ranges[DEVIATIONS[0]][: WEEK - hours, 1] >= NOTICEABLE)
                if not len(busy):
                    continue
                incident = Incident(int(rng.choice(busy)), hours, factor)
                changed = quiet.copy()
                changed[incident.first : incident.first + hours] = rng.poisson(
                    changed[incident.first : incident.first + hours] * factor
                )
                for width, expected in ranges.items():
                    part = slice(incident.first, incident.first + hours)
                    noticed[width, name].append(_alarms(changed[part], expected[part]) > 0)
        for width in DEVIATIONS:
            shares = (noticed[width, name] for name, *_ in INCIDENTS)
            text = " ".join(f"{np.mean(each):15.0%}" if each else f"{'-':>15}" for each in shares)
            print(f"{kind.name:14} {width:5.0f} {outside[width] / QUIET_WEEKS:20.2f} {text}", flush=True)


def _grown(kind: TrafficKind, weeks: int) -> TrafficKind:
    grown = kind.per_hour * (1 + kind.growth) ** weeks
    return TrafficKind(kind.name, grown, kind.week, kind.noise, kind.persistence, kind.growth)


def _alarms(values: np.ndarray, expected: np.ndarray) -> int:
    """Count the times at which values leave the expected range; hours in succession are one."""
    outside = (values < np.floor(expected[:, 0])) | (values > np.ceil(expected[:, 2]))
    return int(outside[0]) + int(np.sum(outside[1:] & ~outside[:-1]))


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statsmodels", action="store_true", help="compare with MSTL and ETS of statsmodels")
    parser.add_argument("--series", type=int, default=SERIES, help="series of each kind of traffic")
    options = parser.parse_args()
    methods: dict[str, Method] = {"seasonal": seasonal, "last week": last_week}
    if options.statsmodels:
        methods["MSTL and ETS"] = mstl
    for of_depths in (False, True):
        accuracy(methods, of_depths, options.series)
    for weeks in HISTORIES:
        anomalies(weeks)


if __name__ == "__main__":
    main()
