"""A whole console in a process of its own, with a node inside and a store beside it, and a real browser to drive it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import stomp
from playwright.sync_api import Browser, Page, expect, sync_playwright

from brokerapp.environment import PROJECT, Environment
from brokerapp.store.embedded import EmbeddedStore
from tests.conftest import until

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PASSWORD = "correct horse battery"
#: A deadline for a busy machine, not a pause: what happens is seen when it happens.
PATIENCE_MS = 40_000
expect.set_options(timeout=PATIENCE_MS)
#: Where pictures of pages go when somebody wants to look at them.
PICTURES = os.environ.get("SLUICE_PICTURES")

_USERS = f"""
import django; django.setup()
from django.contrib.auth.models import Group, User
for role in ("admin", "support", "viewer"):
    User.objects.create_user(role, password={PASSWORD!r}).groups.add(Group.objects.get(name=role))
"""


@dataclass(frozen=True)
class Site:
    """A running console."""

    url: str
    stomp_port: int
    environment: Environment


@pytest.fixture(scope="package")
def site(tmp_path_factory) -> Iterator[Site]:
    """A console that lives as long as the browser tests."""
    data = tmp_path_factory.mktemp("site")
    with EmbeddedStore(data / "store") as store:
        variables = {
            **os.environ, "SLUICE_DATA": str(data), "REDIS_URL": store.url, "SLUICE_STOMP_PORT": "0",
            "SLUICE_HOST_NODE": "1", "DJANGO_SETTINGS_MODULE": "console.settings", "SLUICE_DEVELOP": "",
        }  # fmt: skip
        for command in (["manage.py", "migrate", "--verbosity=0"], ["-c", _USERS]):
            subprocess.run([sys.executable, *command], cwd=PROJECT, env=variables, check=True, timeout=60)
        log = (data / "web.log").open("w+")
        web = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "console.asgi:application", "--port", "0", "--ws", "websockets-sansio"],
            cwd=PROJECT, env=variables, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said = until(lambda: _addresses(Path(log.name), web), "the console's addresses", seconds=40)
            yield Site(f"http://127.0.0.1:{said[0]}", said[1], Environment.read(variables))
        finally:
            web.terminate()
            web.wait(timeout=20)
            log.close()


def _addresses(log: Path, web: subprocess.Popen) -> tuple[int, int] | None:
    """The ports of pages and of STOMP, once the process serves both."""
    text = log.read_text()
    if web.poll() is not None:
        raise AssertionError(f"the web process ended:\n{text}")
    found = re.search(r"running on http://127\.0\.0\.1:(\d+)", text)
    if not found:
        return None
    with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/healthz", timeout=5) as answer:
        assert answer.read() == b"ok"
    return int(found[1]), int(re.search(r"listens on stomp://127\.0\.0\.1:(\d+)", text)[1])


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium."""
    if not CHROMIUM.exists():
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("there is no /usr/bin/chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page_of(chromium, site):
    """A function from a role to a page that is logged in; what the browser complains about fails the test."""
    contexts, complaints = [], []

    def open_page(role: str, **options) -> Page:
        context = chromium.new_context(viewport={"width": 1440, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{site.url}/login/")
        page.get_by_label("User name").fill(role)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{site.url}/")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def client(site):
    """A STOMP client of the site, logged in as the console's admin."""
    connection = stomp.Connection12([("127.0.0.1", site.stomp_port)])
    connection.connect("admin", PASSWORD, wait=True)
    yield connection
    connection.disconnect()
