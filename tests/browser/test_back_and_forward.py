"""Test Back and Forward over every kind of page, with and without the browser's page cache."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import zip_longest

import pytest
from django.urls import reverse, reverse_lazy
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import ARGUMENTS, opening
from tests.browser.every_page import DEEPER, made, pages, prepare
from tests.waiting import wait_until

pytestmark = pytest.mark.browser

#: Debian's Chromium with windows: the one without has no page cache.
CACHING = shutil.which("chromium")
#: Notes on the page whether the browser took it out of its page cache.
WATCH = "addEventListener('pageshow', (event) => { window.wasCached = event.persisted; });"


@pytest.fixture(scope="module")
def caching(drives) -> Iterator[Browser]:
    """A browser that keeps pages that were left, as every browser of a user does."""
    if CACHING is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("there is no Chromium with a page cache: apt-get install chromium")
    browser = drives.chromium.launch(
        executable_path=CACHING, args=ARGUMENTS, ignore_default_args=["--disable-back-forward-cache"]
    )
    yield browser
    browser.close()


def expect_living(page: Page) -> None:
    """Fail unless the page is whole, receives live data, and its palette works."""
    expect(page.locator("main h1")).to_have_count(1)
    expect(page.locator("[data-pill]")).to_have_text("Live")
    palette = page.locator("#palette")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()


def go(page: Page, step: int) -> None:
    """Go through the history as the browser's buttons do."""
    page.evaluate("(step) => history.go(step)", step)


def every_address(page: Page, site) -> list[str]:
    """Every kind of page."""
    found = pages()
    for path, link in DEEPER:
        if path:
            page.goto(site.url + str(path))
        else:
            page.goto(site.url + found[-1])
        found.append(page.locator(link).first.get_attribute("href"))
    return found + made(page, site)[:2]


@pytest.mark.long
def test_every_page_lives_after_back_or_forward(caching, site, logins, client):
    prepare(site, client)
    with opening(caching, site, logins) as open_page:
        page = open_page("admin")
        addresses = every_address(page, site)
        page.context.add_init_script(WATCH)
        pairs = zip_longest(addresses[::2], addresses[1::2], fillvalue=addresses[0])
        cached = {each for pair in pairs for each in back_and_forward(page, site, *pair)}
        # What shows rights and secrets is not kept by a browser.
        kept = {address for address in addresses if not address.startswith((reverse("users"), reverse("tokens")))}
        for missed in kept - cached:  # a busy browser may drop a page, but not each time
            cached |= back_and_forward(page, site, missed, addresses[0] if missed != addresses[0] else addresses[1])
        assert kept - cached == set()


def back_and_forward(page: Page, site, here: str, there: str) -> set[str]:
    """Load two pages, go back and forward, and return those that came out of the browser's page cache."""
    cached = set()
    for address in (here, there):
        page.goto(site.url + address)
        expect(page.locator("[data-pill]")).to_have_text("Live")
    for step, address in ((-1, here), (1, there)):
        go(page, step)
        page.wait_for_url(site.url + address, wait_until="commit")
        expect_living(page)
        if page.evaluate("window.wasCached"):
            cached.add(address)
    return cached


#: Pages that change a part of themselves and their address, and what is clicked there.
PARTS = (
    (reverse_lazy("queues"), "thead th:not([aria-sort=none]) a"),
    pytest.param(reverse_lazy("queues"), ".chips a:not([aria-current])", marks=pytest.mark.long),
    pytest.param(reverse_lazy("connections"), "thead th:not([aria-sort=none]) a", marks=pytest.mark.long),
    (reverse_lazy("messages", args=["axe.orders"]), "tbody th[scope=row] a"),
)
#: What such a click changes: order, choice, and what is open.
LOOK = """() => [...document.querySelectorAll("main [aria-sort], main .chips a, main #panel")]
    .map((each) => [each.ariaSort, each.ariaCurrent, each.querySelector("h2")?.textContent].join(" "))"""


@pytest.mark.parametrize(("path", "link"), PARTS)
def test_a_page_lives_after_back_and_forward_over_a_part_of_it(page_of, site, client, path, link):
    prepare(site, client)
    page = page_of("admin")
    page.goto(site.url + str(path))
    before = page.url, page.evaluate(LOOK)
    page.locator(link).first.click()
    wait_until(lambda: page.evaluate(LOOK) != before[1] and page.url != before[0], "the other part")
    after = page.url, page.evaluate(LOOK)
    for step, (address, look) in ((-1, before), (1, after), (-1, before)):
        go(page, step)
        page.wait_for_url(address)
        expect_living(page)
        assert page.evaluate(LOOK) == look


def test_back_to_a_part_of_a_page_from_another_page_shows_all_of_it(page_of, site, client):
    prepare(site, client)
    page = page_of("admin")
    page.goto(site.url + reverse("messages", args=["axe.orders"]))
    page.locator("tbody th[scope=row] a").first.click()
    expect(page.locator("#panel h2")).to_be_visible()
    opened = page.url
    page.goto(site.url + reverse("audit"))
    go(page, -1)
    page.wait_for_url(opened)
    expect(page.locator("#panel h2")).to_be_visible()
    expect_living(page)


def test_back_after_a_message_was_closed_shows_it_again(page_of, site, client):
    prepare(site, client)
    page = page_of("admin")
    page.goto(site.url + reverse("messages", args=["axe.orders"]))
    page.locator("tbody th[scope=row] a").first.click()
    expect(page.locator("#panel h2")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_empty()
    for step, count in ((-1, 1), (1, 0)):
        go(page, step)
        expect(page.locator("#panel h2")).to_have_count(count)
        expect_living(page)


def test_a_page_out_of_the_page_cache_is_loaded_again_for_another_user(caching, site, logins):
    with opening(caching, site, logins) as open_page:
        page = open_page("admin")
        page.context.add_init_script(WATCH)
        page.goto(f"{site.url}/queues/")
        expect(page.locator("[data-pill]")).to_have_text("Live")
        page.goto(f"{site.url}/topics/")
        page.context.clear_cookies()
        page.context.add_cookies(open_page("viewer").context.cookies())
        go(page, -1)
        expect(page.locator("body")).to_have_attribute("data-user", "viewer")
        expect_living(page)
        page.goto(f"{site.url}/topics/")
        page.context.clear_cookies()
        go(page, -1)
        page.wait_for_url("**/login/**")
