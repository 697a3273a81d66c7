"""The analysis reads hourly traffic and depths, forecasts them, and says what it used."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from analytics.model.seasonal_forecast import WEEK_HOURS
from analytics.requests.question import RunQuestion
from analytics.requests.request import TimeWindow
from benchmarks.analytics.generated_weeks import KINDS, MONDAY, traffic

pytestmark = pytest.mark.spark
HOUR_US = 3_600_000_000
WEEKS = 4
END = MONDAY + WEEKS * WEEK_HOURS
ORDERS, PRICES = "queue://Orders", "topic://Prices"
#: Hours of the last week in which no orders were sent, since their producer was down.
SILENCE = range(END - WEEK_HOURS + 33, END - WEEK_HOURS + 36)


def at(hour):
    return datetime.fromtimestamp(hour * 3600, UTC)


@pytest.fixture(scope="module")
def values():
    found = traffic(KINDS[0], WEEKS, np.random.default_rng(11), dirty=False).values
    found[SILENCE.start - MONDAY : SILENCE.stop - MONDAY] = 0
    return found


@pytest.fixture(scope="module")
def events(spark, values):
    """One event of many messages in each hour, and notes of a depth of two hours' traffic."""
    rows = []
    for number, value in enumerate(values):
        ts = (MONDAY + number) * HOUR_US
        note = {"kind": "depth", "ts": ts + 1000, "destination": ORDERS, "weight": 1, "reason": "all"}
        rows.append({**note, "size": int(value) // 2 if value else 77})
        for destination, kinds, count in ((ORDERS, ("enqueue", "forward"), value), (PRICES, ("enqueue",), 50)):
            rows += [
                {"kind": kind, "ts": ts + 60_000_000, "destination": destination, "weight": int(count), "size": 10}
                for kind in kinds
                if count
            ]
    moment = pa.timestamp("us", "UTC")
    schema = pa.schema(
        {"kind": pa.string(), "ts": moment, "destination": pa.string(), "weight": pa.int32(), "size": pa.int32(),
         "reason": pa.string(), "broker": pa.string()}
    )  # fmt: skip
    return spark.createDataFrame(pa.Table.from_pylist([{"broker": "b", **each} for each in rows], schema)).cache()


@pytest.fixture(scope="module")
def ask(events):
    from pyspark.sql import functions as F

    from analytics.jobs.forecasts import forecast as job

    def carry_out(since=MONDAY, until=END, **parameters):
        steps = []

        def collect(title, frame):
            steps.append(title)
            return frame.toArrow()

        def read(window):
            micros = F.unix_micros("ts")
            return events.where((micros >= window.since_us) & (micros < window.until_us))

        window = TimeWindow(since * HOUR_US, until * HOUR_US + 1234)
        found = job.run(RunQuestion(window, read, parameters), collect)
        assert len(steps) == job.STEPS
        return found, {table.name: table.rows.to_pylist() for table in found.tables}

    return carry_out


def test_traffic_is_forecast_from_the_weekly_pattern(ask, values):
    found, tables = ask(horizon="24h")
    assert found.notes[0] == "The forecast uses the weekly pattern of 4 weeks."
    assert [row["hour"] for row in tables["forecast"]] == [at(END + number) for number in range(24)]
    for row, before in zip(tables["forecast"], values[-WEEK_HOURS:], strict=False):
        assert row["low"] <= row["lower"] <= row["forecast"] <= row["upper"] <= row["high"]
        assert row["forecast"] - 50 == pytest.approx(before, rel=0.6)
    total = sum(row["forecast"] for row in tables["forecast"])
    assert {each.label: each.value for each in found.headline}["Forecast"] == pytest.approx(total, abs=24)
    assert f"About {total:,}"[:9] in found.sentence
    assert "expected in the next 24 hours" in found.sentence


def test_silence_of_the_last_week_is_an_anomaly_of_all_and_of_the_queue(ask):
    found, tables = ask()
    whole, each = tables["anomalies"], tables["destination-anomalies"]
    rows = [row for row in (*whole, *each) if row["start"] == at(SILENCE.start)]
    assert [row.get("destination") for row in rows] == [None, ORDERS]
    for row in rows:
        assert (row["hours"], row["direction"]) == (3, "below")
        assert row["observed"] < row["range_low"] < row["expected"] < row["range_high"]
    drawn = {trace["name"]: trace for trace in found.charts[0][1]["data"]}
    marked = [time for time, value in zip(drawn["anomalies"]["x"], drawn["anomalies"]["y"], strict=True) if value]
    assert f"{at(SILENCE.start):%Y-%m-%dT%H:%M:%SZ}" in marked
    assert {len(trace["y"]) for trace in drawn.values()} == {WEEK_HOURS + 24}
    by_destination = {row["destination"]: row for row in tables["destinations"]}
    assert by_destination[PRICES]["anomalies"] == 0
    assert by_destination[PRICES]["ahead"] == pytest.approx(24 * 50, abs=24)


def test_a_chosen_destination_is_forecast_alone(ask):
    found, tables = ask(destination=PRICES, horizon="1h")
    assert "About 50 messages expected in the next hour" in found.sentence
    assert {row["destination"] for row in tables["destinations"]} == {PRICES}
    assert tables.keys() == {"destinations", "forecast"}


def test_depths_are_those_at_the_ends_of_hours(ask, values):
    found, tables = ask(measure="depth", horizon="6h")
    assert "A depth of about" in found.sentence
    assert [row["destination"] for row in tables["destinations"]] == [ORDERS]
    drawn = {trace["name"]: trace["y"] for trace in found.charts[0][1]["data"]}
    assert drawn["observed"][WEEK_HOURS - 1] == values[-1] // 2 + values[-1]


def test_a_shorter_history_uses_the_daily_pattern_and_says_so(ask):
    found, _ = ask(since=END - 5 * 24)
    assert found.notes[0].startswith("The forecast uses the daily pattern of 5 days only")
    assert "needs 2 weeks" in found.notes[0]


def test_a_history_of_two_days_is_refused_with_what_is_needed(ask):
    found, tables = ask(since=END - 48)
    assert found.sentence == (
        "A forecast needs at least 3 days of recorded traffic; this time range has 48 whole hours."
    )
    assert (found.charts, tables) == ((), {})
