"""Test that results are stored atomically, and once."""

import json

import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.requests.request import TimeWindow
from analytics.results import charts, storage
from analytics.results.storage import SHOWN_ROWS, JobResult, ResultColumn, ResultTable

WINDOW = TimeWindow(0, 60_000_000)


def findings(sentence="Found.", rows=3) -> JobResult:
    table = pa.table({"destination": [f"queue://{i}" for i in range(rows)], "n": range(rows), "hidden": range(rows)})
    columns = (ResultColumn("n", "Count", "messages"), ResultColumn("destination", "Destination"))
    return JobResult(
        sentence, 7, (("A chart", charts.bars(["a"], {"p50": [1]}, "ms")),), (ResultTable("t", "T", columns, table),)
    )


def test_a_stored_result_is_the_one_read_back(tmp_path):
    stored = storage.save_result(tmp_path, "run-1", findings(), window=WINDOW, fresh_until_us=5, seconds=1.23456)
    assert storage.load_result(tmp_path, "run-1") == stored
    assert (stored["sentence"], stored["rows_read"], stored["freshness_us"], stored["seconds"]) == (
        "Found.",
        7,
        5,
        1.235,
    )
    assert stored["window"] == {"since_us": 0, "until_us": 60_000_000}
    [table] = stored["tables"]
    assert table["rows"] == [[0, "queue://0"], [1, "queue://1"], [2, "queue://2"]]
    assert [column["name"] for column in table["columns"]] == ["n", "destination"]
    assert pq.read_table(tmp_path / "run-1" / table["file"]).num_rows == 3


def test_a_long_table_is_cut_in_the_page_and_whole_in_the_file(tmp_path):
    stored = storage.save_result(
        tmp_path, "run-1", findings(rows=SHOWN_ROWS + 9), window=WINDOW, fresh_until_us=None, seconds=1
    )
    [table] = stored["tables"]
    assert (len(table["rows"]), table["total_rows"]) == (SHOWN_ROWS, SHOWN_ROWS + 9)
    assert pq.read_table(tmp_path / "run-1" / "t.parquet").num_rows == SHOWN_ROWS + 9


def test_the_first_result_of_a_run_stays_and_nothing_else_is_left_behind(tmp_path):
    storage.save_result(tmp_path, "run-1", findings("First."), window=WINDOW, fresh_until_us=None, seconds=1)
    storage.save_result(tmp_path, "run-1", findings("Second."), window=WINDOW, fresh_until_us=None, seconds=1)
    assert storage.load_result(tmp_path, "run-1")["sentence"] == "First."
    assert [path.name for path in tmp_path.iterdir()] == ["run-1"]


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path):
    wrong = ResultTable("a/b", "T", (), pa.table({"n": [1]}))
    with pytest.raises(OSError, match="a/b"):
        storage.save_result(
            tmp_path, "run-1", JobResult("x", 1, (), (wrong,)), window=WINDOW, fresh_until_us=None, seconds=1
        )
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_result_has_none(tmp_path):
    assert storage.load_result(tmp_path, "run-1") is None


def test_a_chart_of_many_series_sums_the_small_ones():
    series = {f"q{number}": [number, 1] for number in range(12)}
    figure = charts.over_time(["2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"], series, "messages")
    names = [trace["name"] for trace in figure["data"]]
    assert names == ["q11", "q10", "q9", "q8", "q7", "q6", "q5", charts.OTHERS]
    assert figure["data"][-1]["y"] == [sum(range(5)), 5]


@pytest.mark.parametrize("unit", ["messages", "milliseconds"])
def test_charts_are_what_plotly_draws(unit):
    times, series = ["2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"], {"queue://a": [1, 5000], "b": [0.5, None]}
    pairs = {"a": ([1, 2], [3, 4])}
    for figure in (
        charts.over_time(times, {"a": [1, 2]}, unit),
        charts.lines(times, series, unit, dashed=["b"]),
        charts.bars(["x", "y"], series, unit),
        charts.bars(["x", "y"], series, unit, log=False, stacked=True),
        charts.before_and_after(times, pairs, unit),
    ):
        drawn = go.Figure(figure).to_plotly_json()  # raises ValueError for what Plotly does not know
        assert [trace["type"] for trace in drawn["data"]] == [trace["type"] for trace in figure["data"]]
        assert json.loads(json.dumps(figure, allow_nan=False)) == figure


def test_a_chart_is_plain_json_without_a_theme():
    figure = charts.bars(["a", "b"], {"p50": [1.5, 2.5]}, "ms")
    assert json.loads(json.dumps(figure)) == figure
    assert "template" not in figure["layout"]
    assert figure["data"][0]["x"] == [1.5, 2.5]
    assert figure["layout"]["colorway"] == list(charts.COLORWAY)


def colours(figure):
    """The colour of each series."""
    return {each["name"]: (each.get("line") or each["marker"])["color"] for each in figure["data"]}


def test_a_name_has_one_colour_in_all_charts_of_a_result_and_no_two_of_a_chart_the_same():
    times = ["2025-01-01T00:00:00Z"]
    stored = charts.over_time(times, {"queue://a": [9], "queue://b": [5], "queue://c": [1]}, "messages")
    waits = charts.lines(times, {"c": [7.0], "new": [8.0], "a": [1.0]}, "milliseconds")
    many = charts.bars(["x"], {f"q{number}": [1] for number in range(6)} | {"a": [1], "new": [2]}, "messages")
    charts.assign_colours([stored, waits, many])
    first, second, third = map(colours, (stored, waits, many))
    assert second["a"] == third["a"] == first["queue://a"]
    assert second["c"] == first["queue://c"]
    assert second["new"] == third["new"]
    assert all(len(set(each.values())) == len(each) for each in (first, second, third))


def test_a_name_gets_another_colour_where_its_own_is_taken():
    times = ["2025-01-01T00:00:00Z"]
    all_of_them = charts.lines(times, {f"q{number}": [1.0] for number in range(8)}, "messages")
    late = charts.lines(times, {"late": [1.0], "q7": [1.0]}, "messages")
    both = charts.lines(times, {"late": [1.0], "q0": [1.0]}, "messages")
    charts.assign_colours([all_of_them, late, both])
    assert all(len(set(colours(each).values())) == 2 for each in (late, both))
