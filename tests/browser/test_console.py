"""Test the console in a real browser, with its content security policy."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe_violations import axe_violations
from tests.browser.conftest import picture
from tests.browser.results import finished_run
from tests.waiting import wait_until

pytestmark = pytest.mark.browser


def test_an_admin_defines_a_composite_queue_and_sees_its_targets_fill_live(page_of, site, client):
    page = page_of("admin")
    expect(page.locator("[data-pill]")).to_have_text("Live")
    before = int(page.locator("[data-cell=pending]").text_content())
    page.get_by_role("link", name="Routing").click()
    page.get_by_role("link", name="New definition").click()
    page.get_by_role("link", name=re.compile("^Composite queue")).click()

    page.get_by_label("Name", exact=True).fill("orders.in")
    page.get_by_label("Target name").nth(0).fill("orders.eu")
    page.get_by_label("Target selector").nth(0).fill("region = 'eu' AND")
    expect(page.locator("#check")).to_contain_text("At position")
    page.get_by_label("Target selector").nth(0).fill("region = 'eu'")
    page.get_by_label("Target name").nth(1).fill("orders.all")
    expect(page.locator("#check")).to_contain_text("Ready to save")
    expect(page.locator("#check")).to_contain_text('<queue physicalName="orders.all"/>')
    picture(page, "definition")
    page.get_by_role("button", name="Apply now").click()
    expect(page.locator(".note-success")).to_contain_text("is active on all nodes")
    picture(page, "routing")

    for number in range(8):
        region = "eu" if number % 4 else "us"
        client.send("/queue/orders.in", f'{{"order": {number}}}', headers={"region": region, "persistent": "true"})

    page.get_by_role("link", name="Overview").click()
    expect(page.locator("[data-cell=pending]")).to_have_text(str(before + 14))
    page.locator(".nav").get_by_role("link", name="Queues").click()
    depth = page.locator('[data-row="orders.all"] [data-cell="QueueSize"]')
    expect(depth).to_have_text("8")
    expect(page.locator('[data-row="orders.eu"] [data-cell="QueueSize"]')).to_have_text("6")
    page.evaluate("window.unreloaded = true")
    for _ in range(4):
        client.send("/queue/orders.in", "{}", headers={"region": "us", "persistent": "true"})
    expect(depth).to_have_text("12")
    expect(page.locator('[data-row="orders.eu"] [data-cell="QueueSize"]')).to_have_text("6")
    assert page.evaluate("window.unreloaded"), "the numbers changed in place"
    picture(page, "queues")


def test_a_message_is_read_with_the_keyboard_and_support_sees_it_masked(page_of, site, client):
    client.send("/queue/to.read", '{"customer": "C-1009"}', headers={"region": "eu", "persistent": "true"})
    client.send("/queue/to.read", "<order><line/></order>", headers={"region": "us", "persistent": "true"})
    page = page_of("admin")
    page.goto(f"{site.url}/queues/to.read/messages/")
    page.keyboard.press("j")
    panel = page.locator("#panel")
    expect(panel).to_contain_text('"customer": "C-1009"')
    page.keyboard.press("j")
    expect(panel.get_by_role("tabpanel")).to_contain_text("<line/>")
    panel.get_by_role("tab", name="Hex").click()
    expect(panel.get_by_role("tabpanel")).to_contain_text("3c 6f 72 64 65 72 3e")
    picture(page, "message")
    page.keyboard.press("Escape")
    expect(panel).to_be_empty()
    page.keyboard.press("/")
    page.keyboard.type("region = 'us'")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 match in 2 scanned messages.")).to_be_visible()

    page = page_of("support")
    page.goto(f"{site.url}/queues/to.read/messages/")
    page.keyboard.press("j")
    expect(page.locator("#panel")).to_contain_text('"customer": "••••"')
    expect(page.locator("#panel")).to_contain_text("Masked for your role")


def test_the_list_filters_while_one_types_and_the_address_keeps_it(page_of, site, client):
    for name in ("typed.a", "typed.b", "other"):
        client.send(f"/queue/{name}", "x", headers={"persistent": "true"})
    page = page_of("viewer")
    page.goto(f"{site.url}/queues/")
    page.get_by_label("Filter by name").press_sequentially("typed.b")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"[?]q=typed\.b$"))
    expect(page.get_by_label("Filter by name")).to_be_focused()
    page.reload()
    expect(page.locator("[data-row]")).to_have_count(1)


def test_keys_go_from_row_to_row_and_select_one(page_of, site, client):
    for name in ("rows.a", "rows.b"):
        client.send(f"/queue/{name}", "x", headers={"persistent": "true"})
    page = page_of("admin")
    rows = page.locator("[data-row]")
    wait_until(lambda: page.goto(f"{site.url}/queues/?q=rows.") and rows.count() == 2, "both rows")
    for key, number in (("j", 0), ("ArrowDown", 1), ("ArrowDown", 1), ("ArrowUp", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        expect(rows.nth(number).get_by_role("link").first).to_be_focused()
    page.keyboard.press("x")
    expect(rows.first.get_by_role("checkbox")).to_be_checked()
    expect(rows.nth(1).get_by_role("checkbox")).not_to_be_checked()
    rows.first.get_by_role("checkbox").focus()
    page.keyboard.press("/")  # one does not type into a box
    expect(page.get_by_label("Filter by name")).to_be_focused()
    page.goto(f"{site.url}/routing/?view=table")
    page.keyboard.press("j")  # the name of such a row leads nowhere, its first link does
    expect(page.get_by_role("link", name="Graph").nth(2)).to_be_focused()
    page.goto(f"{site.url}/reports/")
    page.keyboard.press("j")
    expect(page.locator("article.report-card").first.get_by_role("link").first).to_be_focused()


def test_properties_are_added_and_removed_by_button_on_the_forms_that_write_messages(page_of, site, client):
    client.send("/queue/properties.none", "x", headers={"persistent": "true"})
    page = page_of("admin")
    page.goto(f"{site.url}/send/")
    names = page.get_by_role("textbox", name=re.compile("^Name of property"))
    expect(names).to_have_count(2)
    names.nth(0).fill("first")
    names.nth(1).fill("second")
    picture(page, "send")
    page.get_by_role("button", name="Remove property 1").click()
    expect(names).to_have_count(1)
    expect(page.get_by_role("textbox", name="Name of property 1")).to_have_value("second")
    expect(names.first).to_be_focused()
    page.get_by_role("button", name="Remove property 1").press("Enter")
    expect(names).to_have_count(0)
    page.get_by_role("button", name="Add property", exact=True).click()
    expect(page.get_by_role("textbox", name="Name of property 1")).to_be_focused()
    assert axe_violations(page) == ""
    link = page.get_by_role("link", name=re.compile("^Edit"))
    row = page.locator("#rows a").first
    wait_until(lambda: page.goto(f"{site.url}/queues/properties.none/messages") and row.count(), "the message")
    row.click()
    link.first.click()
    add = page.get_by_role("button", name="Add property", exact=True)
    expect(add).to_be_visible()
    expect(names).to_have_count(0)
    add.click()
    expect(names).to_have_count(1)


def test_what_destroys_waits_for_the_name_and_the_menu_stays_folded(page_of, site, client):
    client.send("/queue/typed.away", "x", headers={"persistent": "true"})
    page = page_of("admin")
    page.locator("[data-fold]").click()
    assert axe_violations(page) == ""
    purge = page.get_by_role("button", name=re.compile("^Purge 1 message"))
    wait_until(lambda: page.goto(f"{site.url}/queues/typed.away/purge") and purge.count(), "the queue")
    expect(page.locator("body")).to_have_class("folded")
    expect(purge).to_be_disabled()
    page.get_by_label("Type the name").fill("typed.away")
    expect(purge).to_be_enabled()


def test_the_page_says_when_it_is_cut_off_and_recovers_by_itself(page_of, site):
    page = page_of("viewer")
    pill = page.locator("[data-pill]")
    expect(pill).to_have_text("Live")
    page.evaluate(
        """() => {
            const pill = document.querySelector("[data-pill]");
            window.states = [];
            new MutationObserver(() => window.states.push(pill.dataset.state)).observe(pill, { attributes: true });
            window.sluiceLive.cut();
        }"""
    )
    wait_until(lambda: "offline" in page.evaluate("window.states"), "the page saying that it is offline")
    expect(pill).to_have_text("Live")


def test_a_theme_chosen_is_the_theme_shown(page_of, site):
    page = page_of("viewer", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("summary", has_text="viewer").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    picture(page, "overview-dark")


def test_plotly_draws_under_the_policy_and_its_marks_lead_to_what_they_are_about(page_of, site, client):
    client.send("/queue/quiet", "x", headers={"persistent": "true"})
    page = page_of("viewer")
    page.goto(f"{site.url}/analytics/runs/{finished_run(site)}/")
    expect(page.locator(".js-plotly-plot .scatterlayer .trace")).to_have_count(1)
    expect(page.get_by_text("It was quiet.")).to_be_visible()
    expect(page.get_by_role("img", name="1 line over time in messages: quiet from 3 to 4.")).to_be_visible()
    picture(page, "run")
    mark = page.locator(".scatterlayer .point").first.bounding_box()
    page.mouse.move(mark["x"] + 1, mark["y"] + 1)
    page.mouse.click(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    page.wait_for_url(re.compile(r"/queues/quiet/\?from=\d+&to=\d+$"))  # what it was about, at the same window


def test_the_legend_of_a_chart_shows_and_hides_what_it_names(page_of, site):
    run = finished_run(site)
    kept = site.environment.results / run / "result.json"
    result = json.loads(kept.read_text())
    lines = result["charts"][0]["figure"]["data"]
    lines.append(lines[0] | {"name": "of the previous week", "line": {"dash": "dot"}})
    kept.write_text(json.dumps(result))
    page = page_of("viewer")
    page.goto(f"{site.url}/analytics/runs/{run}/")
    drawn, entries = page.locator(".scatterlayer .trace"), page.locator(".figure-legend").get_by_role("button")
    expect(entries).to_have_text(["quiet", "of the previous week"])
    expect(entries.nth(1).locator(".legend-key-dotted")).to_have_count(1)
    expect(drawn).to_have_count(2)
    entries.nth(1).click()
    expect(entries.nth(1)).to_have_attribute("aria-pressed", "false")
    expect(drawn).to_have_count(1)
    entries.nth(1).press("Enter")
    expect(drawn).to_have_count(2)


def test_a_narrow_screen_shows_all_of_it_without_scrolling_sideways(page_of, site, client):
    client.send("/queue/Consumer.Billing.VirtualTopic.Orders.Europe", "x", headers={"persistent": "true"})
    page = page_of("viewer")
    page.set_viewport_size({"width": 390, "height": 840})
    for path in ("/", "/queues/", "/topics/", "/routing/", "/connections/", "/analytics/"):
        page.goto(site.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        picture(page, f"narrow{path.replace('/', '-')}")


def test_the_first_web_process_names_its_cookies_by_the_key_of_the_installation(page_of, site):
    """As every one after it does: another name would sign everybody out when it starts again."""
    key = (site.environment.data / "secret-key").read_text()
    expected = hashlib.sha256(f"cookies of {key}".encode()).hexdigest()[:8]
    names = {each["name"] for each in page_of("viewer").context.cookies()}
    assert {f"sluice_{expected}", f"sluice_csrf_{expected}"} <= names
