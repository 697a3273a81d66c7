"""Test sign-in, lock-out, theme, and headers of all responses."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from console.ui.preferences.models import UserSetting
from tests.console.conftest import make_user


def log_in(client: Client, password: str):
    return client.post(reverse("login"), {"username": "viewer", "password": password})


def test_a_user_logs_in_and_comes_to_the_overview(db):
    make_user("viewer")
    assert log_in(Client(), "password")["Location"] == reverse("overview")


def test_a_wrong_password_is_said_to_be_wrong(db):
    make_user("viewer")
    response = log_in(Client(), "guess")
    assert response.status_code == 200
    assert "User name or password is wrong." in response.content.decode()


def test_five_wrong_passwords_lock_the_user_out_even_with_the_right_one(db):
    make_user("viewer")
    client = Client()
    for _ in range(5):
        log_in(client, "guess")
    response = log_in(client, "password")
    assert response.status_code == 429
    assert "Account temporarily locked" in response.content.decode()


def test_the_theme_is_kept_for_the_user(admin, console_without_store):
    response = admin.post(reverse("theme"), {"theme": "dark", "back": "/queues/"})
    assert response["Location"] == "/queues/"
    assert UserSetting.objects.get().theme == "dark"
    assert 'data-theme="dark"' in admin.get(reverse("audit")).content.decode()


def test_a_theme_that_does_not_exist_is_refused(admin):
    assert admin.post(reverse("theme"), {"theme": "pink"}).status_code == 400


def test_the_way_back_from_the_theme_never_leaves_the_console(admin):
    assert admin.post(reverse("theme"), {"theme": "dark", "back": "https://evil.example/"})["Location"] == "/"


@pytest.mark.parametrize("path", ["/login/", "/nothing-here"])
def test_every_page_forbids_scripts_and_styles_from_elsewhere(path, db):
    policy = Client().get(path)["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_health_is_open_to_the_supervisor(db):
    assert Client().get("/healthz").content == b"ok"


def test_cookies_are_named_after_the_installation_as_browsers_keep_them_by_host_whatever_the_port(db):
    make_user("viewer")
    client = Client()
    client.get(reverse("login"))
    log_in(client, "password")
    assert len(client.cookies) == 2
    assert all(re.fullmatch(r"sluice_(csrf_)?[0-9a-f]{8}", name) for name in client.cookies)


def test_who_has_no_role_is_told_and_can_log_out_again(db):
    client = Client()
    client.force_login(User.objects.create_user("new", password="password"))
    answer = client.get(reverse("overview"))
    assert answer.status_code == 403
    assert "No role assigned" in answer.content.decode()
    assert f'action="{reverse("logout")}"' in answer.content.decode()


def test_a_page_that_is_missing_leads_to_the_list_where_it_would_stand(db):
    client = Client()
    client.force_login(make_user("viewer"))
    page = client.get("/reports/4711/").content.decode()
    assert f'href="{reverse("reports")}">Go to reports' in page
    assert "matches the given query" not in page
    assert "Go to reports" not in client.get("/nothing/").content.decode()
