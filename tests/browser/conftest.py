"""Start a whole console in a process of its own, with node and store, and a real browser."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import stomp
from playwright.sync_api import Browser, Page, Playwright, StorageState, expect, sync_playwright

from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.environment import Environment
from tests.served import PASSWORD, served

#: Debian's Chromium: the one without windows, which takes a third less of the processor, or else the whole one.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
#: A deadline for a busy machine, not a pause: what happens is seen when it happens.
PATIENCE_MS = 40_000
expect.set_options(timeout=PATIENCE_MS)
#: Where pictures of pages go when somebody wants to look at them.
PICTURES = os.environ.get("SLUICE_PICTURES")


@dataclass(frozen=True)
class Site:
    """A running console."""

    url: str
    stomp_port: int
    environment: Environment
    variables: Mapping[str, str]


@pytest.fixture(scope="package")
def site(tmp_path_factory, migrated) -> Iterator[Site]:
    """A console that lives as long as the browser tests."""
    data = tmp_path_factory.mktemp("site")
    with (
        EmbeddedStore(data / "store") as store,
        served(
            data, migrated, REDIS_URL=store.url, SLUICE_STOMP_PORT="0", SLUICE_OPENWIRE_PORT="0", SLUICE_HOST_NODE="1"
        ) as web,
    ):
        stomp_port = re.search(r"listens on stomp://127\.0\.0\.1:(\d+)", web.log)[1]
        yield Site(web.url, int(stomp_port), Environment.read(web.variables), web.variables)


@pytest.fixture(scope="package")
def drives() -> Iterator[Playwright]:
    """What drives browsers: a process can have it once."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def chromium(drives) -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("there is no Chromium: apt-get install chromium-headless-shell")
    browser = drives.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def logins() -> dict[str, StorageState]:
    """What a browser keeps of whoever logged in already, by role."""
    return {}


@pytest.fixture
def page_of(chromium, site, logins):
    """A function from a role to a page that is logged in; what the browser complains about fails the test, unless it
    has the words that are forgiven in it."""
    with opening(chromium, site, logins) as open_page:
        yield open_page


@contextmanager
def opening(browser: Browser, site: Site, logins: dict[str, StorageState]) -> Iterator[Callable[..., Page]]:
    """Open pages of the console in this browser; see `page_of`."""
    contexts, complaints = [], []

    def complain(text: str, forgiven: str) -> None:
        if not (forgiven and forgiven in text):
            complaints.append(text)

    def open_page(role: str, forgiven: str = "", **options) -> Page:
        known = logins.get(role)
        look = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}  # frames cost work
        context = browser.new_context(**(look | options), storage_state=known)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: complain(said.text, forgiven) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complain(str(error), forgiven))
        if known is None:
            log_in(page, site, role)
            logins[role] = context.storage_state()
        else:
            page.goto(f"{site.url}/")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def picture(page: Page, name: str) -> None:
    """Keep a picture of the page, when somebody wants to look at it."""
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png")


def log_in(page: Page, site: Site, role: str) -> None:
    """Fill in the form; the overview is shown then."""
    page.goto(f"{site.url}/login/")
    page.get_by_label("User name").fill(role)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{site.url}/")


class Confirmed(stomp.Connection12):
    """A connection whose `send` returns when the message is stored, so that a page opened next knows its queue."""

    def send(self, *args, **kwargs) -> None:
        receipt = str(uuid.uuid4())
        stored = stomp.listener.WaitingListener(receipt)
        self.set_listener("stored", stored)
        super().send(*args, receipt=receipt, **kwargs)
        stored.wait_on_receipt()


@pytest.fixture
def client(site):
    """A STOMP client of the site, logged in as the console's admin."""
    connection = Confirmed([("127.0.0.1", site.stomp_port)])
    connection.connect("admin", PASSWORD, wait=True)
    yield connection
    connection.disconnect()
