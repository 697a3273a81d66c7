"""Make the guide's pictures anew, from a running Sluice with the demo on it.

    SLUICE_MAIL=smtp://localhost:2525 make run   # in one terminal; so that forms do not tell where mails are kept
    make demo FOR=900                            # in another; wait some minutes, so that charts have something to show
                                                 # press Run now on the report Traffic of the hour, and wait for it
    .venv/bin/python docs/guide/pictures.py      # in a third

Writes docs/guide/pictures/NAME.png, and docs/console.png for the README; names as arguments make those alone. Reads the
environment variables of the README.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from brokerapp.system.environment import Environment  # noqa: E402

PICTURES = PROJECT / "docs" / "guide" / "pictures"
CHROMIUM = "/usr/bin/chromium-headless-shell"
SIZE, LOW, NARROW = (1360, 850), (1200, 660), (390, 850)
#: Milliseconds until a page that was loaded has drawn what comes over its socket.
SETTLES = 2500


@dataclass(frozen=True)
class Picture:
    """A page of the demo's business; `follow` are links gone along from there, `do` keys pressed at the end."""

    name: str
    path: str
    is_dark: bool = False
    do: str = ""
    follow: tuple[str, ...] = ()
    size: tuple[int, int] = SIZE

    @property
    def file(self) -> Path:
        """Where it goes."""
        return PROJECT / "docs" / "console.png" if self.name == "console" else PICTURES / f"{self.name}.png"


#: The report that is there from the first start, as the list of reports leads to it.
REPORT = ".report-card h2 a"
AUDIT = "/queues/Consumer.Audit.VirtualTopic.Orders/"
PAGES = (
    Picture("console", "/"),
    Picture("overview-dark", "/", is_dark=True, size=LOW),
    Picture("queues", "/queues/?sort=-QueueSize"),
    Picture("queues-narrow", "/queues/?sort=-QueueSize", size=NARROW),
    Picture("queue", AUDIT),
    Picture("messages", f"{AUDIT}messages/?selector=customer+LIKE+%27C-00%25%27", size=LOW),
    Picture("message", f"{AUDIT}messages/?end=1", do="j", size=LOW),
    Picture("dead-letters", "/dead-letters/"),
    Picture("send", "/send/"),
    Picture("routing", "/routing/"),
    Picture("kinds", "/routing/new"),
    Picture("definition", "/routing/new/virtualTopic"),
    Picture("alert", "/alerts/new"),
    Picture("analyses", "/analytics/", size=LOW),
    Picture("run", "/reports/", follow=(REPORT, ".part-head h2 a")),
    Picture("report", "/reports/", follow=(REPORT,)),
    Picture("report-form", "/reports/new", size=(1360, 600)),
    Picture("palette", "/", do="Control+k", size=LOW),
)


def log_in(page: Page, url: str, password: str) -> None:
    """Log in as the first admin."""
    page.goto(f"{url}/login/")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")


def take(page: Page, url: str, picture: Picture) -> None:
    """Open the page as the picture wants it, and keep what is seen."""
    page.emulate_media(color_scheme="dark" if picture.is_dark else "light")
    page.set_viewport_size(dict(zip(("width", "height"), picture.size, strict=True)))
    page.goto(url + picture.path)
    page.wait_for_timeout(SETTLES)
    for link in picture.follow:
        page.goto(url + page.locator(link).first.get_attribute("href"))
        page.wait_for_timeout(SETTLES)
    if picture.do:
        page.keyboard.press(picture.do)
        page.wait_for_timeout(SETTLES)
    picture.file.parent.mkdir(exist_ok=True)
    page.screenshot(path=picture.file)


def main() -> None:
    """Take all pictures, or those that are named."""
    environment = Environment.read()
    url = f"http://127.0.0.1:{environment.console_port}"
    wanted = [picture for picture in PAGES if picture.name in sys.argv[1:] or len(sys.argv) == 1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        log_in(page, url, (environment.data / "admin-password").read_text().strip())
        for picture in wanted:
            take(page, url, picture)
        browser.close()


if __name__ == "__main__":
    main()
