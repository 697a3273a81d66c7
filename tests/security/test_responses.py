"""Answers of the console: their headers, what caches keep, where they lead, and what errors show."""

from __future__ import annotations

import io
import logging
from email.message import EmailMessage

import pytest
from django.conf import settings
from django.core.mail import BadHeaderError
from django.core.mail import EmailMessage as Mail
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from console.accounts import api_tokens
from tests.console.conftest import make_user

API = "/api/v1"


@pytest.fixture
def program(db) -> Client:
    """Return a program with a token that reads and creates."""
    _, token = api_tokens.create_token(make_user("admin", name="program"), "t", ["see", "create"], [], 1, "test")
    return Client(headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("path", ["/login/", "/nothing-here", "/account/", f"{API}/me", f"{API}/nothing", "/healthz"])
def test_every_answer_has_the_headers_that_protect_browsers(path, admin, console_without_store):
    for client in (admin, Client()):
        response = client.get(path)
        headers = response.headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert response.status_code in (301, 302) or headers["Content-Type"].split(";")[0] in {
            "text/html", "text/plain", "application/json", "application/problem+json",
        }  # fmt: skip
        assert "charset=utf-8" in headers["Content-Type"] or "json" in headers["Content-Type"]
        assert {"Server", "X-Powered-By", "Via"}.isdisjoint(headers)


@pytest.mark.parametrize("path", ["/account/", "/audit/", "/nothing-here"])
def test_pages_are_kept_by_no_cache_that_several_share(path, admin, console_without_store):
    for client in (admin, Client()):
        assert client.get(path)["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize("path", ["/admin/users/new", "/tokens/", f"{API}/me"])
def test_what_shows_or_asks_for_secrets_is_kept_by_no_browser(path, admin, console_without_store):
    assert "no-store" in admin.get(path)["Cache-Control"]


def test_the_page_of_the_login_is_kept_by_no_browser(db):
    assert "no-store" in Client().get(reverse("login"))["Cache-Control"]


def test_no_other_site_may_read_answers(admin, program, console_without_store):
    for client, path in ((admin, "/account/"), (program, f"{API}/me"), (Client(), "/healthz")):
        for origin in ("https://evil.example", "null"):
            response = client.get(path, headers={"Origin": origin})
            assert [name for name in response.headers if name.startswith("Access-Control")] == []


def test_answers_of_the_api_are_files_of_a_fixed_name(program, console_without_store):
    for path in (f"{API}/me", f"{API}/nothing", f"{API}/me?unknown=1"):
        assert program.get(path)["Content-Disposition"] == 'attachment; filename="api.json"'


def test_a_body_that_is_not_declared_as_json_is_refused_by_the_api(program, console_without_store):
    body = '{"kind": "queue", "name": "orders"}'
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = program.post(f"{API}/destinations", body, content_type=content_type)
        assert response.status_code == 415, content_type
        assert response.json()["detail"].startswith("Content-Type must be application/json, not ")
    declared = program.post(f"{API}/destinations", body, content_type="application/json; charset=utf-8")
    assert declared.status_code == 503, "the store of this console does not answer"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_login_leads_to_no_other_site(db, target):
    make_user("operator")
    response = Client().post(
        f"{reverse('login')}?next={target}", {"username": "operator", "password": "password", "next": target}
    )
    assert (response.status_code, response["Location"]) == (302, reverse("overview"))


def test_an_unexpected_error_shows_a_reference_and_no_details(admin, console_without_store, monkeypatch, caplog):
    assert settings.DEBUG is False
    admin.raise_request_exception = False

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the password is lovelace")

    monkeypatch.setattr("console.accounts.views.account.UserSession.objects.purge_and_list", broken)
    with caplog.at_level(logging.ERROR):
        response = admin.get(reverse("account"))
    text = response.content.decode()
    assert response.status_code == 500
    assert "lovelace" not in text
    assert "Traceback" not in text
    [reference] = [record.args[2] for record in caplog.records if record.msg == "%s %s failed [%s]"]
    assert reference in text


@pytest.mark.parametrize(
    "path",
    ["/static/", "/static/console/", "/.git/config", "/static/../manage.py", "/static/%2e%2e/manage.py", "/manage.py",
     "/var/", "/static/console/css/.DS_Store"],
)  # fmt: skip
def test_no_folder_is_listed_and_no_file_outside_of_the_static_ones_is_served(path, admin, console_without_store):
    assert admin.get(path).status_code == 404
    assert admin.get(path.replace("/static/", settings.STATIC_URL)).status_code == 404


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_a_mail_whose_subject_has_a_line_break_is_not_sent(line_break):
    subject = f"Report{line_break}Bcc: everybody@example.com"
    with pytest.raises(BadHeaderError):
        Mail(subject, "text", to=["a@example.com"]).message()
    with pytest.raises(ValueError, match="linefeed or carriage return"):  # reports are mails of Python's own kind
        EmailMessage()["Subject"] = subject


def test_the_checks_of_django_for_deployment_find_nothing(settings):
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True  # as where the console is found by TLS
    said = io.StringIO()
    call_command("check", "--deploy", "--fail-level", "WARNING", "--tag", "security", stdout=said, stderr=said)
    assert "no issues" in said.getvalue()
