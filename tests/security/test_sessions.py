"""Sessions of the console: their keys, cookies and ends, and requests of other sites."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from brokerapp.system.environment import PROJECT
from console.accounts.login import REAUTHENTICATE_SECONDS, SESSION_KEY
from tests.console.accounts.test_second_factor import logged_in
from tests.console.conftest import make_user

_SHOW_COOKIES = """
import django
from django.conf import settings
django.setup()
print(settings.SESSION_COOKIE_NAME, settings.SESSION_COOKIE_SECURE, settings.SESSION_COOKIE_PATH,
      settings.SESSION_COOKIE_DOMAIN, settings.CSRF_COOKIE_NAME, settings.CSRF_COOKIE_SECURE)
"""


def test_a_login_begins_a_new_session_with_a_key_nobody_can_guess(db):
    make_user("operator")
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = "chosen-by-somebody-else"
    response = client.post(reverse("login"), {"username": "operator", "password": "password"})
    key = response.cookies[settings.SESSION_COOKIE_NAME].value
    assert key != "chosen-by-somebody-else"
    assert len(key) == 32  # of 36 characters: 165 bits
    assert key not in response["Location"]
    assert len({key, *(logged_in()[0].session.session_key for _ in range(5))}) == 6


def test_cookies_of_sessions_are_for_no_script_and_no_other_site(db):
    make_user("operator")
    cookie = logged_in()[1].cookies[settings.SESSION_COOKIE_NAME]
    assert (cookie["httponly"], cookie["samesite"], cookie["domain"], cookie["path"]) == (True, "Lax", "", "/")


def test_cookies_are_for_tls_and_this_host_where_the_console_is_found_by_tls(tmp_path):
    variables = os.environ | {
        "SLUICE_URL": "https://console.example.com", "SLUICE_DATA": str(tmp_path / "data"),
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }  # fmt: skip
    shown = subprocess.run(
        [sys.executable, "-c", _SHOW_COOKIES], env=variables, cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert (shown[0][:14], shown[4][:19]) == ("__Host-sluice_", "__Host-sluice_csrf_")
    assert (shown[1], shown[2], shown[3], shown[5]) == ("True", "/", "None", "True")


def test_a_session_that_was_signed_out_of_or_expired_opens_nothing(db):
    make_user("operator")
    (client, _), (other, _) = logged_in(), logged_in()
    stolen = Client()
    stolen.cookies = client.cookies.copy()
    assert stolen.get(reverse("account")).status_code == 200
    client.post(reverse("logout"))
    assert stolen.get(reverse("account")).status_code == 302
    session = Session.objects.get(session_key=other.session.session_key)
    left = session.expire_date - timezone.now()
    assert abs(left - timedelta(hours=settings.IDENTITY.session_hours)) < timedelta(minutes=5)
    session.expire_date = timezone.now() - timedelta(seconds=1)
    session.save()
    assert other.get(reverse("account")).status_code == 302


def test_other_sessions_are_ended_by_who_signed_in_lately(db):
    make_user("operator")
    (here, _), (elsewhere, _) = logged_in(), logged_in()
    session = here.session
    session[SESSION_KEY] = time.time() - REAUTHENTICATE_SECONDS - 1
    session.save()
    assert here.post(reverse("sessions-revoke"))["Location"].startswith(reverse("account_reauthenticate"))
    assert elsewhere.get(reverse("account")).status_code == 200
    here.post(reverse("account_reauthenticate"), {"password": "password"})
    here.post(reverse("sessions-revoke"))
    assert elsewhere.get(reverse("account")).status_code == 302


def test_a_form_of_another_site_changes_nothing(db):
    make_user("operator")
    client = Client(enforce_csrf_checks=True)
    client.cookies = logged_in()[0].cookies
    for path in (reverse("theme"), reverse("logout"), reverse("change-password"), reverse("new-queue")):
        assert client.post(path, {}).status_code == 403, path
    assert client.get(reverse("account")).status_code == 200
    anonymous = Client(enforce_csrf_checks=True)
    assert anonymous.post(reverse("login"), {"username": "operator", "password": "password"}).status_code == 403
