"""Test two-factor authentication, confirming one's identity, and the account page."""

import re
import time
from dataclasses import replace

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from console.accounts.login import REAUTHENTICATE_SECONDS, SESSION_KEY
from console.audit.models import AuditEntry
from tests.console.conftest import make_user


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))


def logged_in(name: str = "operator", **typed: str):
    client = Client()
    response = client.post(reverse("login"), {"username": name, "password": "password", **typed})
    return client, response


def proved_long_ago(client: Client) -> None:
    session = client.session
    session[SESSION_KEY] = time.time() - REAUTHENTICATE_SECONDS - 1
    session.save()


def with_factor() -> tuple[str, list[str]]:
    """Set one up for `operator`; the secret and the recovery codes."""
    client, _ = logged_in()
    page = client.get(reverse("mfa_activate_totp"))
    secret = page.context["form"].secret
    codes = client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)}, follow=True)
    return secret, codes.context["unused_codes"]


@pytest.fixture(autouse=True)
def nothing_was_guessed() -> None:
    """How often somebody tried is counted beside the database."""
    cache.clear()


@pytest.fixture
def operator(db) -> User:
    return make_user("operator")


def test_a_login_without_a_second_factor_needs_none(operator):
    assert logged_in()[1]["Location"] == reverse("overview")


def test_a_login_with_a_second_factor_asks_for_its_code(operator):
    secret, _ = with_factor()
    client, response = logged_in()
    assert response["Location"] == reverse("mfa_authenticate")
    assert client.get(reverse("account"))["Location"].startswith(reverse("login"))
    wrong = client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    right = client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
    assert right["Location"] == reverse("overview")
    assert client.get(reverse("account")).status_code == 200


def test_a_recovery_code_works_once_in_its_place(operator):
    _, codes = with_factor()
    for client, _ in (logged_in(), logged_in()):
        last = client.post(reverse("mfa_authenticate"), {"code": codes[0]})
    assert last.status_code == 200
    assert AuditEntry.objects.filter(action="second factor", outcome="denied").count() == 1


def test_secrets_are_not_in_the_database_as_they_are(operator):
    secret, codes = with_factor()
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in kept
    assert codes[0] not in kept


def test_an_admin_resets_a_factor_that_was_lost(operator):
    with_factor()
    make_user("admin")
    admin, _ = logged_in("admin")
    page = reverse("user", args=[operator.pk])
    assert "Reset two-factor authentication" in admin.get(page).content.decode()
    reset = reverse("change-user", args=[operator.pk, "factor"])
    admin.post(reset)
    assert "Reset two-factor authentication" not in admin.get(page).content.decode()
    assert logged_in()[1]["Location"] == reverse("overview")
    admin.post(reset)
    again, first = AuditEntry.objects.filter(action="reset second factor")
    assert (first.outcome, again.outcome, again.detail) == (
        "done",
        "refused",
        "operator does not use two-factor authentication",
    )


def test_codes_cannot_be_guessed_without_end(operator, settings):
    secret, _ = with_factor()
    client, _ = logged_in()
    for _ in range(12):
        response = client.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert "Too many failed login attempts" in response.content.decode()
    assert client.post(reverse("mfa_authenticate"), {"code": code_of(secret)}).status_code == 200


def test_the_way_in_and_out_is_in_the_audit_trail(operator):
    client, _ = logged_in()
    client.post(reverse("logout"))
    logged_in(password="guess")
    logged_in("nobody-is-called-so")
    assert [(each.who, each.action, each.outcome) for each in AuditEntry.objects.all()] == [
        ("nobody-is-called-so", "log in", "denied"),
        ("operator", "log in", "denied"),
        ("operator", "log out", "done"),
        ("operator", "log in", "done"),
    ]


def test_changes_of_the_second_factor_are_in_the_audit_trail(operator, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        with_factor()
    assert AuditEntry.objects.filter(action="add second factor", who="operator").count() == 2  # app, recovery codes


@pytest.mark.parametrize(("roles", "sent"), [("operator", True), ("admin", False)])
def test_a_role_that_needs_a_second_factor_gets_nowhere_without(roles, sent, operator, settings, console_without_store):
    settings.IDENTITY = replace(settings.IDENTITY, second_factor=frozenset({roles}))
    client, _ = logged_in()
    response = client.get(reverse("queues"))
    assert (response.status_code == 302) is sent
    if sent:
        assert response["Location"] == reverse("mfa_activate_totp")
        secret = client.get(reverse("mfa_activate_totp")).context["form"].secret
        client.post(reverse("mfa_activate_totp"), {"code": code_of(secret)})
        assert client.get(reverse("queues")).status_code == 200


def test_a_second_factor_is_set_up_at_once_after_a_login_and_asks_for_the_password_later(operator):
    client, _ = logged_in()
    url = reverse("mfa_activate_totp")
    assert client.get(url).status_code == 200
    proved_long_ago(client)
    asked = client.get(url)
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert client.post(asked["Location"], {"password": "password", "next": url}, follow=True).context["form"].secret


def test_a_change_of_users_asks_for_the_password_when_the_last_proof_is_old(db):
    make_user("admin")
    client, _ = logged_in("admin")
    proved_long_ago(client)
    asked = client.post(reverse("groups"), {"name": "billing"})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert not AuditEntry.objects.filter(action="create group").exists()
    done = client.post(asked["Location"], {"password": "password", "next": reverse("groups")})
    assert re.fullmatch(r"/admin/groups/\d+/", done["Location"])  # it went on where it was
    assert AuditEntry.objects.filter(action="create group").exists()


def test_the_api_asks_a_browser_for_a_recent_proof_too(db):
    make_user("admin")
    admin, _ = logged_in("admin")
    made = admin.post("/api/v1/users", {"name": "ada"}, content_type="application/json")
    session = admin.session
    session[SESSION_KEY] = time.time() - REAUTHENTICATE_SECONDS
    session.save()
    refused = admin.post("/api/v1/users", {"name": "eve"}, content_type="application/json")
    assert (made.status_code, refused.status_code, "Confirm your identity" in refused.json()["detail"]) == (
        201,
        403,
        True,
    )
    assert not User.objects.filter(username="eve").exists()


def test_ones_own_password_is_changed_against_the_old_one_and_ends_other_sessions(operator):
    (here, _), (elsewhere, _) = logged_in(), logged_in()
    typed = {"new_password1": "another long one", "new_password2": "another long one"}
    assert here.post(reverse("change-password"), {"old_password": "guess", **typed}).status_code == 200
    assert here.post(reverse("change-password"), {"old_password": "password", **typed}).status_code == 302
    assert here.get(reverse("account")).status_code == 200
    assert elsewhere.get(reverse("account")).status_code == 302
    assert AuditEntry.objects.filter(action="change password", who="operator").count() == 1


def test_other_sessions_are_listed_and_ended(operator):
    (here, _), (elsewhere, _) = logged_in(), logged_in()
    assert len(here.get(reverse("account")).context["sessions"]) == 2
    here.post(reverse("sessions-revoke"))
    assert elsewhere.get(reverse("account")).status_code == 302
    assert here.get(reverse("account")).status_code == 200
