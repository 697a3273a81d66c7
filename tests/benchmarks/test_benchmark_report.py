from benchmarks.comparison.report import figures, ratios, table
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
    assert ratios(SCENARIO, results) == [("queue", "activemq", "3.0", "2 reached")]
    slower = {**results, "sluice": result("sluice", 1500)}
    assert ratios(SCENARIO, slower) == [("queue", "activemq", "1.5", "2 missed")]


def test_a_broker_without_a_run_has_no_ratio():
    results = {"activemq": result("activemq", failure="lost"), "sluice": result("sluice", 3000)}
    assert ratios(SCENARIO, results) == []
    assert figures(SCENARIO, results)[0][:3] == ("queue", "activemq", "failed")


def test_figures_are_for_one_delivery():
    assert figures(SCENARIO, {"sluice": result("sluice", 1000, 3000)}) == [
        ("queue", "sluice", "2,000", "1,000", "3,000", "20.0 us", "5.0 us", "1.0 us", "3 MiB")
    ]


def test_the_columns_of_a_table_line_up():
    assert table(("a", "bb"), [("ccc", "d")]) == "| a   | bb |\n| --- | -- |\n| ccc | d  |"
