"""Users with an email address are told when what they sign in with changes."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse

from console.accounts.credential_notices import NOTICES, TASK, send_notice
from console.audit.models import AuditEntry
from tests.console.accounts.test_second_factor import logged_in, nothing_was_guessed, with_factor  # noqa: F401
from tests.console.conftest import make_user, waiting_tasks


@pytest.fixture
def told(console, django_capture_on_commit_callbacks):
    """Return a function that does something, and returns the mails that workers send for it."""

    def of(deed) -> list[tuple[list[str], str, str]]:
        waiting_tasks("default")
        mail.outbox.clear()
        with django_capture_on_commit_callbacks(execute=True):
            deed()
        for name, arguments in waiting_tasks("default"):
            if name == TASK:
                send_notice(*arguments)
        return [(each.to, each.subject, each.body) for each in mail.outbox]

    return of


@pytest.fixture
def ada(db):
    """Return a user with an address."""
    user = make_user("operator")
    user.email = "ada@example.com"
    user.save()
    return user


def test_a_changed_password_is_told_without_the_password(ada, told):
    client = Client()
    client.force_login(ada)
    words = {"old_password": "password", "new_password1": "ferrous oxide", "new_password2": "ferrous oxide"}
    [(to, subject, body)] = told(lambda: client.post(reverse("change-password"), words))
    assert to == ["ada@example.com"]
    assert subject.endswith("Account operator: your password was changed")
    assert "by you from 127.0.0.1." in body
    assert "ferrous" not in body


def test_a_second_factor_that_is_set_up_or_reset_is_told_with_who_did_it(ada, told):
    subjects = [subject for _, subject, _ in told(with_factor)]
    assert [each.partition(": ")[2] for each in subjects] == ["two-factor authentication was set up"] * 2
    make_user("admin")
    admin, _ = logged_in("admin")
    [(_, subject, body)] = told(lambda: admin.post(reverse("change-user", args=[ada.pk, "factor"])))
    assert subject.endswith("your two-factor authentication was reset")
    assert "by admin from" in body


def test_a_password_that_an_admin_resets_is_told(ada, told):
    make_user("admin")
    admin, _ = logged_in("admin")
    reset = reverse("change-user", args=[ada.pk, "password"])
    [(_, subject, body)] = told(lambda: admin.post(reset, {"way": "password"}))
    assert subject.endswith("your password was reset, or a link to set it was created")
    assert admin.get(reverse("user", args=[ada.pk])).context["secret"]["password"] not in body


def test_who_has_no_address_is_told_nothing_and_what_failed_neither(ada, told):
    client = Client()
    client.force_login(ada)
    wrong = {"old_password": "guess", "new_password1": "ferrous oxide", "new_password2": "ferrous oxide"}
    assert told(lambda: client.post(reverse("change-password"), wrong)) == []
    ada.email = ""
    ada.save()
    assert told(lambda: client.post(reverse("change-password"), wrong | {"old_password": "password"})) == []
    assert AuditEntry.objects.filter(action="change password", outcome="done").exists()


def test_a_change_is_made_also_while_no_worker_can_be_asked(
    ada, console_without_store, django_capture_on_commit_callbacks
):
    client = Client()
    client.force_login(ada)
    words = {"old_password": "password", "new_password1": "ferrous oxide", "new_password2": "ferrous oxide"}
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(reverse("change-password"), words).status_code == 302
    assert "change password" in NOTICES


def test_a_second_factor_that_an_admin_resets_ends_the_sessions_of_its_user(ada, console):
    client, _ = logged_in()
    with_factor()
    assert client.get(reverse("account")).status_code == 200
    make_user("admin")
    admin, _ = logged_in("admin")
    admin.post(reverse("change-user", args=[ada.pk, "factor"]))
    assert client.get(reverse("account")).status_code == 302
