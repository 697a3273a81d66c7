"""Test charts of results in a real browser: time zones, tooltips, zoom and reset."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from analytics.results import charts
from tests.browser.axe_violations import assert_accessible
from tests.browser.conftest import picture
from tests.browser.results import finished_report, finished_run

pytestmark = pytest.mark.browser

START = datetime(2026, 11, 20, 13, 12, tzinfo=UTC)  # 14:12 in Berlin
LABELS = ".xaxislayer-above .xtick text"


def found(slot: int, slots: int) -> dict:
    """A result with a chart of two queues over so many slots of so many seconds."""
    times = [f"{START + timedelta(seconds=slot * number):%Y-%m-%dT%H:%M:%SZ}" for number in range(slots)]
    series = {"queue://orders.europe": [number % 7 for number in range(slots)], "queue://billing": [3] * slots}
    since_us = int(START.timestamp()) * 1_000_000
    return {
        "window": {"since_us": since_us, "until_us": since_us + slot * slots * 1_000_000},
        "charts": [{"title": "Sent", "figure": charts.over_time(times, series, "messages")}],
    }


def labels(page: Page) -> list[str]:
    """What stands below the time axis."""
    expect(page.locator(LABELS).first).to_be_visible()
    return [re.sub(r"\s+", " ", text) for text in page.locator(LABELS).all_text_contents()]


def test_a_chart_of_a_report_tells_times_by_the_clock_of_the_report_and_says_so(page_of, site):
    report = finished_report(site, "Clock", found=found(60, 60))
    page = page_of("analyst")
    page.goto(f"{site.url}/reports/{report}/")
    expect(page.locator(".part-head")).to_contain_text("14:12 to 15:12 CET")
    assert labels(page)[:2] == ["14:2020 Nov", "14:30"]
    expect(page.locator(".xtitle")).to_have_text("CET")
    page.get_by_text("Show data table").click()
    expect(page.locator(".chart-numbers th").first).to_have_text("Time, Europe/Berlin")
    expect(page.locator(".chart-numbers tr").nth(1)).to_contain_text("2026-11-20 14:12:00")
    picture(page, "chart-of-a-report")
    assert_accessible(page)


def test_a_chart_of_three_minutes_has_several_marks_and_its_pointer_reads_seconds(page_of, site):
    run = finished_run(site, found=found(10, 18))
    page = page_of("analyst")
    page.goto(f"{site.url}/analytics/runs/{run}/")
    marked = ["13:12:0020 Nov", "13:12:30", "13:13:00", "13:13:30", "13:14:00", "13:14:30"]
    assert labels(page) == marked
    expect(page.locator(".xtitle")).to_have_text("UTC")
    host = page.locator(".js-plotly-plot")
    host.evaluate("host => window.Plotly.Fx.hover(host, [{ curveNumber: 0, pointNumber: 7 }])")
    expect(page.locator(".hoverlayer")).to_contain_text("20 Nov, 13:13:10")
    picture(page, "chart-of-three-minutes")


def test_a_chart_that_is_zoomed_has_marks_of_what_it_shows_leads_to_an_analysis_of_it_and_has_a_way_back(page_of, site):
    run = finished_run(site, found=found(60, 60))
    page = page_of("analyst")
    page.goto(f"{site.url}/analytics/runs/{run}/")
    before = labels(page)
    reset = page.get_by_role("button", name="Reset zoom")
    expect(reset).to_be_hidden()
    box = page.locator(".nsewdrag").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=5)
    page.mouse.up()
    expect(reset).to_be_visible()
    zoomed = labels(page)
    assert len(zoomed) >= 3, zoomed
    assert all(re.match(r"13:(3\d|4[012])", each) for each in zoomed), zoomed
    picture(page, "chart-zoomed")
    address = page.url
    ends = {name: int(values[0]) for name, values in parse_qs(urlsplit(address).query).items()}
    half = int(START.timestamp()) + 1800
    assert half - 700 < ends["from"] < half - 200 < ends["to"] < half + 100, "the middle of the hour"
    page.reload()
    assert labels(page) == zoomed, "the address keeps the time range"
    page.get_by_role("link", name="Analyze time range").click()
    expect(page.locator("[name=window]")).to_have_value("custom")
    expect(page.locator("[name=from]")).to_have_value(f"{datetime.fromtimestamp(ends['from'], UTC):%Y-%m-%dT%H:%M:%S}")
    expect(page.locator("[name=to_s]")).to_have_value(str(ends["to"]))
    picture(page, "form-of-a-time-range")
    assert_accessible(page)
    page.locator("[name=window]").select_option("1h")
    expect(page.locator("[name=from]")).to_be_hidden()
    page.goto(address)
    reset.click()
    expect(reset).to_be_hidden()
    expect(page.locator(LABELS).nth(1)).to_have_text(before[1])
    assert labels(page) == before
    assert "from=" not in page.url


def test_a_chart_fits_on_a_telephone(page_of, site):
    run = finished_run(site, found=found(60, 60))
    page = page_of("analyst", viewport={"width": 390, "height": 800})
    page.goto(f"{site.url}/analytics/runs/{run}/")
    assert 2 <= len(labels(page)) <= 5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(page, "chart-on-a-telephone")


@pytest.mark.parametrize("width", [pytest.param(600, marks=pytest.mark.long), 375])
def test_the_tables_of_a_mail_are_not_cut_and_break_no_number(page_of, site, width):
    labels = ("Depth", "Minimum", "Maximum", "Enqueue rate", "Dequeue rate", "Empty in", "Limit reached in")
    units = ("messages", "messages", "bytes", "rate", "rate", "seconds", "seconds")
    columns = [{"name": "destination", "label": "Destination", "unit": "", "about": "destination"}]
    columns += [
        {"name": label, "label": label, "unit": unit, "about": ""} for label, unit in zip(labels, units, strict=True)
    ]
    name = "queue://Consumer.Billing.VirtualTopic.Orders.Europe.Of.A.Long.Name"
    rows = [[name, 1_234_567, 0, 2_300_000, 1234.5, 12.3, 3600.0, None]] * 7
    table = {"title": "Depths", "columns": columns, "rows": rows, "total_rows": 7, "file": "depths.parquet"}
    report = finished_report(site, f"Mail of {width} pixels", found=found(60, 60) | {"tables": [table]})
    page = page_of("analyst", viewport={"width": width, "height": 900})
    page.goto(f"{site.url}/reports/{report}/")
    page.goto(site.url + page.get_by_role("link", name="Preview email").get_attribute("href"))
    expect(page.locator("td", has_text="2.2 MiB").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert (
        page.locator("td, th").evaluate_all("cells => cells.filter(e => e.scrollWidth > e.clientWidth + 1).length") == 0
    )
    heights = page.locator(".rows td:nth-child(4)").evaluate_all(
        "cells => cells.map(e => { const range = document.createRange(); range.selectNodeContents(e.lastChild);"
        " return range.getClientRects().length; })"
    )
    assert heights == [1] * 5, "each number stands in one line"
    expect(page.get_by_role("link", name="2 rows and 2 columns more")).to_be_visible()
