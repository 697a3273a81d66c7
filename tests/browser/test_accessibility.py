"""Test that axe finds no violation on any page, in light and dark, and that all works by keyboard."""

import pytest
from django.urls import resolve
from playwright.sync_api import expect

from tests.browser.axe_violations import AXE, COLOURS, OWN, RULES, WHOLE, axe_violations
from tests.browser.every_page import AS_SUPPORT, DEEPER, made, pages, prepare

#: Pages that between them have every part of a page: tables, charts, forms, cards, a graph.
QUICK = ("overview", "queues", "queue", "messages", "topology", "new-alert", "new-definition", "checks")


@pytest.mark.browser
def test_axe_finds_nothing_on_pages_of_each_kind(page_of, site, client):
    prepare(site, client)
    page = page_of("admin", color_scheme="light")
    page.context.add_init_script(AXE.axe_script)
    found = []
    paths = [path for path in pages() if resolve(path.partition("?")[0]).url_name in QUICK]
    assert len(paths) >= len(QUICK)
    for number, path in enumerate(paths):
        page.goto(site.url + path)
        found.append((path, axe_violations(page, RULES, OWN if number else WHOLE)))
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        found.append((f"{path} in the dark", axe_violations(page, COLOURS, OWN)))
    assert [(path, barriers) for path, barriers in found if barriers] == []


@pytest.mark.long
@pytest.mark.browser
def test_axe_finds_nothing_on_any_page(page_of, site, client):
    prepare(site, client)
    page, said = page_of("admin", color_scheme="light"), []
    page.context.add_init_script(AXE.axe_script)

    def assert_accessible(path: str) -> None:
        page.goto(site.url + path)
        part = OWN if said else WHOLE  # menu and bar are the same on every page
        said.append((path, axe_violations(page, RULES, part)))
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        said.append((f"{path} in the dark", axe_violations(page, COLOURS, part)))

    for path in pages():
        assert_accessible(path)
    for path, link in DEEPER:
        if path:
            page.goto(site.url + str(path))
        assert_accessible(page.locator(link).first.get_attribute("href"))
    for path in made(page, site):
        assert_accessible(path)
        page.emulate_media(contrast="more")
        page.evaluate("delete document.documentElement.dataset.theme")
        said.append((f"{path} in high contrast", axe_violations(page, COLOURS)))  # all of it: only these are seen so
        page.emulate_media(contrast="no-preference")
    page.locator("summary.notifications").click()
    said.append(("the bell", axe_violations(page, RULES)))
    page.goto(site.url + str(AS_SUPPORT))
    page.get_by_role("button", name="View console as support").click()
    page.wait_for_url(f"{site.url}/")
    said.append(("the overview seen as support", axe_violations(page, RULES)))
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    said.append(("the same in the dark", axe_violations(page, COLOURS)))
    page.get_by_role("button", name="Stop").click()
    assert "\n".join(f"{where}: {barrier}" for where, barrier in said if barrier) == ""


@pytest.mark.browser
def test_the_palette_opens_and_leads_to_a_page_by_keyboard_alone(page_of):
    # What the palette still asks for ends when the page is left, and htmx complains.
    page = page_of("admin", forgiven="htmx:")
    page.keyboard.press("Control+k")
    page.keyboard.type("audit")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Audit log")
    assert axe_violations(page, RULES) == ""
    page.keyboard.press("Enter")
    page.wait_for_url("**/audit/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert axe_violations(page, RULES) == ""
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/queues/")
