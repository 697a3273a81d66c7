"""Test that an admin defines a virtual topic by keyboard, and sees it work without a reload."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.axe_violations import assert_accessible
from tests.browser.conftest import picture
from tests.browser.keyboard import IS_FOCUSED, tab_to

#: Keys from the first to a definition in force: five a second are a minute, which is what the console may take of
#: anybody. How long it takes a busy machine to draw the pages says nothing of that.
MAX_KEYS = 300
COUNT_KEYS = """addEventListener("keydown", () => {
    sessionStorage.keys = 1 + Number(sessionStorage.keys ?? 0);
}, true)"""

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_an_admin_defines_a_virtual_topic_with_the_keyboard_and_another_one_sees_it(page_of, site, client):
    client.subscribe("/queue/App.Billing.Trade.Orders", id="1")
    client.send("/queue/App.Audit.Trade.Orders", "begin", headers={"persistent": "true"})
    other = page_of("viewer", color_scheme="dark")
    other.goto(f"{site.url}/routing/")
    other.evaluate("window.unreloaded = true")

    page = page_of("admin")
    page.evaluate(COUNT_KEYS)
    page.add_init_script(COUNT_KEYS)
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(f"{site.url}/routing/")
    tab_to(page, "New definition")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New definition")).to_be_visible()
    tab_to(page, "Virtual topic")
    page.keyboard.press("Enter")

    expect(page.get_by_label("Topics", exact=True)).to_be_focused()
    page.keyboard.type("VirtualTopic.Trade.>")
    expect(page.locator("#check")).to_contain_text("covers some of the same topics")
    page.keyboard.press("Control+A")
    page.keyboard.type("Trade.>")
    tab_to(page, "Consumer queue prefix")
    page.keyboard.press("Control+A")
    page.keyboard.type("App.*.")
    expect(page.locator("#match-prefix")).to_contain_text("2 consumer queues match")
    expect(page.locator("#check")).to_contain_text('<virtualTopic name="Trade.&gt;" prefix="App.*."/>')
    tab_to(page, "Set original destination")
    page.keyboard.press("Space")
    expect(page.locator("#check")).to_contain_text("a dead letter is resubmitted")
    page.keyboard.press("Space")
    expect(page.locator("#check")).not_to_contain_text("a dead letter is resubmitted")
    picture(page, "journey-define")
    assert_accessible(page)
    tab_to(page, "Apply now")
    page.keyboard.press("Enter")

    expect(page.locator(".note-success")).to_contain_text("is active on all nodes")
    assert 50 < page.evaluate("Number(sessionStorage.keys)") < MAX_KEYS
    way = page.locator('[data-fresh-way][data-row-of="queue://App.Billing.Trade.Orders"]')
    expect(way).to_have_count(1)
    expect(other.locator('a[aria-label^="queue App.Billing.Trade.Orders"]')).to_be_visible()
    assert other.evaluate("window.unreloaded"), "the other's map was drawn anew in place"

    page.evaluate("window.sluiceLive.cut()")
    expect(page.locator("[data-pill]")).to_have_text("Live")
    for _ in range(3):
        client.send("/topic/Trade.Orders", "first", headers={"persistent": "true"})
    expect(page.locator('.pulsing[data-row-of="queue://App.Audit.Trade.Orders"]')).to_have_count(1)
    expect(other.locator('[data-cell="queue://App.Audit.Trade.Orders#text"]')).to_have_text("4")
    picture(page, "journey-live")
    assert_accessible(page)
    picture(other, "journey-other")

    tab_to(page, "topic Trade.Orders")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(IS_FOCUSED, "queue App."), "arrow keys go along the ways"
    page.keyboard.press("Enter")
    expect(page.get_by_label("Selection")).to_contain_text("Trade.Orders")

    tab_to(page, "Undo")
    page.keyboard.press("Enter")
    expect(page.locator(".note-success")).to_contain_text("Reverted to version")
    expect(other.locator('a[aria-label^="queue App.Billing.Trade.Orders"]')).to_have_count(0)
