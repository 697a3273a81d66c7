"""Start a whole installation as users do, in a folder and on ports of its own."""

from __future__ import annotations

import html
import http.cookiejar
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Self

from tests.ports import free_port

PROJECT = Path(__file__).resolve().parent.parent.parent
#: Seconds until everything runs: twenty, and many more where others are at work, too.
START_SECONDS = 300
STOP_SECONDS = 60


class Installation:
    """`manage.py up` in `folder`, from entering to leaving the context."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.console, self.stomp, self.openwire, self.spark, self.monitor = (free_port() for _ in range(5))
        self.environment = {
            **os.environ,
            "SLUICE_DATA": str(folder),
            "SLUICE_PORT": str(self.console),
            "SLUICE_STOMP_PORT": str(self.stomp),
            "SLUICE_OPENWIRE_PORT": str(self.openwire),
            "SLUICE_SPARK_PORT": str(self.spark),
            "SLUICE_MONITOR_PORT": str(self.monitor),
            # Compiling well pays off after minutes only.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        }

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.output = self.folder / "up.txt"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                self.manage("up"), cwd=PROJECT, env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_SECONDS
        while "Sluice is ready" not in self.output.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"Sluice did not start:\n{self.output.read_text()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise

    @property
    def password(self) -> str:
        """The first admin's."""
        return (self.folder / "admin-password").read_text().strip()

    def manage(self, *words: str) -> list[str]:
        """A command line of manage.py."""
        return [sys.executable, str(PROJECT / "manage.py"), *words]

    def run(self, *words: str, seconds: float = 180) -> str:
        """What a manage.py command of this installation prints; it must succeed."""
        done = subprocess.run(
            self.manage(*words), cwd=PROJECT, env=self.environment, capture_output=True, text=True, timeout=seconds
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def browser(self) -> Browser:
        """Somebody at the console, logged in as the first admin."""
        browser = Browser(f"http://127.0.0.1:{self.console}")
        browser.submit("/login/", username="admin", password=self.password)
        return browser


class Browser:
    """As much of a browser as forms need: cookies, the token of the page, redirects."""

    def __init__(self, root: str) -> None:
        self.root = root
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)

    def get(self, path: str) -> tuple[str, str]:
        """The address arrived at, and the page, as text."""
        return self._open(urllib.request.Request(urllib.parse.urljoin(self.root, path)))

    def submit(self, page: str, to: str | None = None, **fields: str) -> tuple[str, str]:
        """Fill in the form of a page and send it (to the page itself, unless told otherwise)."""
        _, text = self.get(page)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', text)
        assert token, f"no form on {page}"
        body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode()
        address = urllib.parse.urljoin(self.root, to or page)
        return self._open(urllib.request.Request(address, body, {"Referer": self.root + page}))

    def _open(self, request: urllib.request.Request) -> tuple[str, str]:
        try:
            with self._opener.open(request, timeout=30) as answer:
                return answer.url, html.unescape(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{request.full_url}: {error.code}\n{error.read().decode()[:2000]}") from error
