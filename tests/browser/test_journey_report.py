"""Test that an analyst reads a report, opens its runs, runs an analysis and schedules one, by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe_violations import assert_accessible
from tests.browser.conftest import picture
from tests.browser.keyboard import follow, tab_to
from tests.browser.results import finished_report

pytestmark = pytest.mark.browser

SENTENCE = "7 messages enqueued, 18% more than the previous week."


@pytest.mark.long
def test_an_analyst_reads_a_report_asks_again_and_schedules_it(page_of, site, client):
    client.send("/queue/report.orders", "x", headers={"persistent": "true"})
    report = finished_report(site, "Mondays", sentence=SENTENCE, queue="report.orders")
    page = page_of("analyst")
    page.goto(f"{site.url}/reports/{report}/")  # the link of its mail
    expect(page.locator(".summary")).to_contain_text(SENTENCE)
    expect(page.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    picture(page, "report")
    assert_accessible(page)
    page.evaluate("window.sluiceLive.cut()")  # the line is cut in the middle of it
    follow(page, "Show data table")
    expect(page.locator(".chart-numbers tr")).to_have_count(3)
    follow(page, "report.orders")
    page.wait_for_url(re.compile(r"/queues/report\.orders/\?from=\d+&to=\d+$"))
    expect(page.locator("[data-pill]")).to_have_text("Live")
    page.go_back()

    follow(page, "Arrivals")
    expect(page.locator(".result-summary")).to_have_text(SENTENCE)
    assert_accessible(page)
    follow(page, "Run again")
    expect(page.get_by_label("Time range")).to_have_value("1h")
    tab_to(page, "Time range")
    page.keyboard.press("ArrowDown")
    tab_to(page, "Run analysis")
    page.keyboard.press("Enter")
    page.wait_for_url("**/analytics/runs/*/")
    state = page.locator("[data-topic^='run:']")
    expect(state).to_contain_text("Waiting for a worker")
    assert_accessible(page)
    page.evaluate("window.sluiceLive.cut()")
    follow(page, "Cancel run")
    expect(state).to_contain_text("Cancelled by analyst")
    expect(page.locator("[data-pill]")).to_have_text("Live")

    page.goto(f"{site.url}/reports/{report}/")
    follow(page, "Arrivals")
    page.wait_for_url("**/analytics/runs/*/")
    follow(page, "Schedule")
    page.wait_for_url("**/reports/new?kind=traffic&window=1h")
    tab_to(page, "Name")
    page.keyboard.type("Every morning")
    expect(page.get_by_role("checkbox", name=re.compile("^Traffic"))).to_be_checked()
    expect(page.locator("#timing li")).to_have_count(3)
    tab_to(page, "Create report")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Every morning")).to_be_visible()
    expect(page.locator(".schedule-line")).to_contain_text("Every day at 07:00")
