"""Test descriptions of charts, and the pages that their marks link to. No I/O."""

from analytics.results import charts, time_axes
from console.analyses.charts import Plot, describe_chart, link_targets, linked_names, plots

TIMES = ["2026-05-01T05:00:00Z", "2026-05-01T06:00:00Z"]
WINDOW = {"since_us": 1_777_611_600_000_000, "until_us": 1_777_615_200_500_000}
AT = "?from=1777611600&to=1777615201"


def test_lines_are_told_with_their_range_and_unit():
    said = describe_chart(charts.lines(TIMES, {"queue://orders": [3, 1200], "still": [0, 0]}, "messages"))
    assert said == "2 lines over time in messages: orders from 3 to 1,200 and still 0."


def test_bars_are_told_with_their_numbers_and_delays_with_their_units():
    said = describe_chart(charts.bars(["a", "b"], {"half": [240, None], "nearly all": [5000, 9]}, "milliseconds"))
    assert said == "Bars of 2 names, half: a 240 ms and b none. It has 2 bars for each."


def test_more_than_a_few_are_counted_and_none_is_said():
    many = {f"queue{number}": [number, number] for number in range(7)}
    assert "and 3 more." in describe_chart(charts.lines(TIMES, many, "messages"))
    assert describe_chart(charts.lines([], {}, "messages")) == "No data."


def test_a_mark_leads_to_what_it_is_about_at_the_same_window():
    table = {
        "columns": [
            {"name": "d", "about": "destination"},
            {"name": "c", "about": "client"},
            {"name": "n", "about": ""},
        ],
        "rows": [["queue://orders", "billing 1", 7], ["topic://prices", None, 8], ["queue://a.>", "x", 9]],
    }
    opens = link_targets(linked_names([table]), WINDOW)
    assert opens["queue://orders"] == opens["orders"] == f"/queues/orders/{AT}"
    assert opens["topic://prices"] == f"/topics/prices/{AT}"
    assert opens["billing 1"] == "/connections/?q=billing+1"
    assert "a.>" not in opens, "a pattern has no page"
    assert opens[""] == f"/{AT}", "any other mark shows what went on then"


def test_each_chart_of_a_result_has_an_id_of_its_own_and_is_drawn_with_where_it_leads():
    result = {"charts": [{"title": "One", "figure": {"data": []}}] * 2, "tables": [], "window": WINDOW}
    first, second = plots(result, "part-1")
    assert (first.id, second.id) == ("part-1-0", "part-1-1")
    assert first.drawn["figure"] == {"data": []}
    assert first.drawn["opens"] == {"": f"/{AT}"}
    assert first.drawn["time"] == time_axes.for_page([], "UTC")
    assert Plot("x", "X", {"data": []}).drawn["opens"] == {}, "one without a window leads nowhere"
