import re

import pytest

from benchmarks.comparison.document import PAGE, Record
from benchmarks.comparison.report import figures, summary, table
from benchmarks.comparison.rounds import Measurement, Result
from benchmarks.generator.load import Outcome
from benchmarks.scenarios.routes import Queue
from benchmarks.scenarios.rows import Scenario

SCENARIO = Scenario("queue", "", Queue(), {}, bars={"activemq": 2})


def result(peer, *rates, failure=None):
    rounds = tuple(
        Measurement(Outcome(rate, 1.0, rate / 1e6), rate * 20 / 1e6, 3 << 20, rate * 5 / 1e6) for rate in rates
    )
    return Result(peer, rounds, failure)


def test_the_median_of_the_rounds_counts_and_is_judged_by_the_bar():
    results = {"activemq": result("activemq", 900, 1000, 5000), "sluice": result("sluice", 3000)}
    head, rows = summary([(SCENARIO, results)])
    assert head == ["row", "× activemq", "bar", "CPU of a delivery, sluice", "CPU of a delivery, activemq"]
    assert rows == [["queue", "3.0", "2 reached", "20.0 us", "20.0 us"]]
    slower = {**results, "sluice": result("sluice", 1500)}
    assert summary([(SCENARIO, slower)])[1][0][:3] == ["queue", "1.5", "2 missed"]


def test_a_broker_without_a_run_has_no_ratio():
    results = {"activemq": result("activemq", failure="lost"), "sluice": result("sluice", 3000)}
    assert summary([(SCENARIO, results)])[1] == [["queue", "", "2 missed", "20.0 us", ""]]
    assert figures(SCENARIO, results)[0][:3] == ("queue", "activemq", "failed")


def test_figures_are_for_one_delivery():
    assert figures(SCENARIO, {"sluice": result("sluice", 1000, 3000)}) == [
        ("queue", "sluice", "2,000", "1,000", "3,000", "20.0 us", "5.0 us", "1.0 us", "3 MiB")
    ]


def test_the_columns_of_a_table_line_up():
    assert table(("a", "bb"), [("ccc", "d")]) == "| a   | bb |\n| --- | -- |\n| ccc | d  |"


def test_a_peer_that_takes_no_part_in_a_row_leaves_its_cells_empty():
    both = {"rabbitmq": result("rabbitmq", 1000), "sluice": result("sluice", 2000)}
    head, rows = summary([(SCENARIO, both), (Scenario("groups", "", Queue(), {}), {"sluice": both["sluice"]})])
    assert rows[1] == ["groups", "", "", "20.0 us", ""]
    assert len(head) == len(rows[0])


def test_results_are_written_between_their_marks_with_date_command_and_load(tmp_path, monkeypatch):
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- floor -->\nold\n<!-- end of floor -->\nafter\n")
    monkeypatch.setattr("sys.argv", ["/x/benchmarks/floor.py", "--rounds", "1", "--record"])
    record = Record("floor", page)
    record.write("new")
    assert page.read_text() == "before\n<!-- floor -->\n\nnew\n\n<!-- end of floor -->\nafter\n"
    assert re.fullmatch(
        r"\d+ \w+ \d{4}, \d\d:\d\d, `python -m benchmarks.floor --rounds 1`, "
        r"load [\d.]+ at the start and [\d.]+ at the end on \d+ cores\.",
        record.conditions(),
    )
    with pytest.raises(ValueError, match="has no section results"):
        Record("results", page).write("new")


@pytest.mark.parametrize("section", ["results", "floor", "variations"])
def test_the_page_on_benchmarks_has_a_place_for_the_results(section):
    page = PAGE.read_text()
    assert page.index(f"<!-- {section} -->\n") < page.index(f"<!-- end of {section} -->")
