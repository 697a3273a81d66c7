"""Test a console that has a certificate: HTTPS, wss, HSTS, the redirect from HTTP, and a renewed certificate."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.environment import PROJECT
from tests.browser.conftest import opening
from tests.certificates import Authority
from tests.ports import free_port
from tests.served import served
from tests.waiting import wait_until

PUBLIC = "console.test"


@dataclass(frozen=True)
class SecureSite:
    """A running console with a certificate, which is in `certificate`."""

    url: str
    http_port: int
    authority: Authority
    certificate: Path

    @property
    def port(self) -> int:
        return urlsplit(self.url).port

    def connect(self, tls: bool = True, port: int | None = None) -> http.client.HTTPConnection:
        """A connection of a client that trusts the authority; without `tls` to the same port."""
        if not tls:
            return http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=20)
        trust = ssl.create_default_context(cafile=self.authority.pem)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=trust)


@pytest.fixture(scope="module")
def secure_site(tmp_path_factory, migrated) -> Iterator[SecureSite]:
    data = tmp_path_factory.mktemp("secure")
    authority, http_port = Authority(data), free_port()
    certificate = data / "console.pem"
    shutil.copy(authority.issue("first").pem, certificate)
    with (
        EmbeddedStore(data / "store") as store,
        served(
            data, migrated, REDIS_URL=store.url, SLUICE_TLS_CERTIFICATE=str(certificate), SLUICE_HOSTS=PUBLIC,
            SLUICE_URL=f"https://{PUBLIC}:8443", SLUICE_HTTP_PORT=str(http_port), SLUICE_WARM_UP="0",
        ) as web,
    ):  # fmt: skip
        yield SecureSite(web.url, http_port, authority, certificate)


def answer(
    connection: http.client.HTTPConnection, method="GET", path="/healthz", **headers
) -> http.client.HTTPResponse:
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    response.text = response.read().decode()
    return response


def test_pages_come_by_https_with_hsts_and_cookies_that_never_go_without_tls(secure_site):
    response = answer(secure_site.connect(), path="/login/")
    assert response.status == 200
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "Secure" in response.headers["Set-Cookie"]


@pytest.mark.parametrize("path", ["/", "/queues/?q=a%2Fb&sort=-depth"])
def test_a_browser_that_comes_by_http_is_led_to_the_same_page_by_https(secure_site, path):
    response = answer(secure_site.connect(tls=False), path=path)
    assert response.status == 308
    assert response.headers["Location"] == f"https://127.0.0.1:{secure_site.port}{path}"
    assert "Strict-Transport-Security" not in response.headers, "browsers ignore it where it is not encrypted"


def test_a_port_for_http_leads_to_the_public_address(secure_site):
    there = secure_site.connect(tls=False, port=secure_site.http_port)
    response = answer(there, path="/topics/", Host=f"{PUBLIC}:{secure_site.http_port}")
    assert response.headers["Location"] == f"https://{PUBLIC}:8443/topics/"


@pytest.mark.parametrize(
    ("method", "headers"), [("POST", {}), ("DELETE", {}), ("GET", {"Authorization": "Bearer secret"})]
)
def test_what_must_not_be_sent_without_encryption_is_refused_and_not_redirected(secure_site, method, headers):
    response = answer(secure_site.connect(tls=False), method, "/api/v1/queues", **headers)
    assert response.status == 403
    assert response.text == (
        f"This request was sent without encryption. Use https://127.0.0.1:{secure_site.port}/ instead.\n"
    )


def test_nobody_is_led_to_a_host_that_is_not_the_console_s(secure_site):
    response = answer(secure_site.connect(tls=False), Host="elsewhere.example")
    assert (response.status, response.headers["Location"]) == (400, None)


def test_a_client_that_speaks_neither_is_told_so(secure_site):
    connection = secure_site.connect(tls=False)
    connection.connect()
    connection.sock.sendall(b"CONNECT\naccept-version:1.2\n\n\0\n\n")
    assert connection.sock.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_the_health_check_of_the_image_works_by_the_address_that_is_in_the_image(secure_site):
    check = PROJECT / "deploy/docker/healthcheck.py"
    command = [sys.executable, str(check), f"http://127.0.0.1:{secure_site.port}/healthz"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_renewed_certificate_is_shown_to_new_clients_and_connections_that_are_open_stay(secure_site):
    before = secure_site.connect()
    assert answer(before).text == "ok"
    renewed = secure_site.authority.issue("second")
    new = secure_site.certificate.with_suffix(".new")
    shutil.copy(renewed.pem, new)
    new.replace(secure_site.certificate)

    def is_shown() -> bool:
        found = ssl.get_server_certificate(("127.0.0.1", secure_site.port))
        return ssl.PEM_cert_to_DER_cert(found) == renewed.der

    def is_open() -> bool:
        return answer(before).text == "ok"

    wait_until(lambda: is_open() and is_shown(), "the new certificate")
    assert is_open()
    assert answer(secure_site.connect()).text == "ok"


def test_people_sign_in_by_https_and_live_figures_come_by_wss(secure_site, chromium):
    sockets = []
    with opening(chromium, secure_site, {}) as open_page:
        page = open_page("admin", ignore_https_errors=True)
        page.on("websocket", lambda opened: sockets.append(opened.url))
        page.reload()
        wait_until(lambda: page.wait_for_timeout(10) or sockets, "a WebSocket")
        assert sockets[0].startswith(f"wss://127.0.0.1:{secure_site.port}/live")
        assert all(each["secure"] for each in page.context.cookies() if each["name"].startswith("sluice_"))
        insecure = page.goto(secure_site.url.replace("https:", "http:") + "/queues/")
        assert (insecure.status, page.url) == (200, f"{secure_site.url}/queues/")
