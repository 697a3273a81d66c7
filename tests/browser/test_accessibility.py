"""No barrier that axe can find, on any page, in light and in dark; and what is done by keyboard alone."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from console.commands import COMMANDS
from console.rail import RAIL

#: What is judged: WCAG 2.2 A and AA, and axe's own good practice.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLOURS = {"runOnly": ["color-contrast"]}
#: Addresses that answer with a file.
FILES = {"routing-export"}


def pages() -> list[str]:
    """Every page that menu and palette lead to."""
    ours = [command.url for command in COMMANDS if command.page not in FILES]
    ours += [entry.url for _, entries in RAIL for entry in entries]
    return sorted({*ours, reverse("queue", args=["axe.orders"]), reverse("messages", args=["axe.orders"])})


def barriers(page: Page, options: dict) -> str:
    """What axe says against the page as it stands; nothing where all is well."""
    found = Axe().run(page, options=options).response["violations"]
    return "\n".join(
        f"{each['id']}: {each['help']}: {[node['html'][:160] for node in each['nodes'][:4]]}" for each in found
    )


@pytest.mark.browser
def test_axe_finds_nothing_on_any_page(page_of, site, client):
    client.send(
        "/queue/axe.orders",
        '{"number": 4711}',
        headers={"persistent": "true", "region": "eu", "content-type": "application/json"},
    )
    page, said = page_of("admin", color_scheme="light", reduced_motion="reduce"), []
    for path in pages():
        page.goto(site.url + path)
        said.append((path, barriers(page, RULES)))
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        said.append((f"{path} in the dark", barriers(page, COLOURS)))
    assert "\n".join(f"{where}: {barrier}" for where, barrier in said if barrier) == ""


@pytest.mark.browser
def test_the_palette_opens_and_leads_to_a_page_by_keyboard_alone(page_of):
    page = page_of("admin", reduced_motion="reduce")
    page.keyboard.press("Control+k")
    page.keyboard.type("audit")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Audit trail")
    assert barriers(page, RULES) == ""
    page.keyboard.press("Enter")
    page.wait_for_url("**/audit/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert barriers(page, RULES) == ""
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/queues/")
