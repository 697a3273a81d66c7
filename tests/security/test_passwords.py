"""Passwords that people choose, how they are stored, and codes of authenticator apps."""

from __future__ import annotations

import re

import pytest
from allauth.mfa.adapter import get_adapter
from cryptography.fernet import InvalidToken
from django.conf import global_settings
from django.contrib.auth.hashers import identify_hasher, make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from console import settings as console_settings
from console.accounts.encryption import decrypt, encrypt
from tests.console.accounts.test_second_factor import code_of, logged_in, nothing_was_guessed, with_factor  # noqa: F401
from tests.console.conftest import make_user

#: Least iterations of PBKDF2 with SHA-256 that OWASP recommends today.
ITERATIONS = 600_000


def changed(client: Client, password: str) -> list[str]:
    """Change the password of a user; return the errors of the form."""
    passwords = {"old_password": "password", "new_password1": password, "new_password2": password}
    response = client.post(reverse("change-password"), passwords)
    if response.status_code == 302:
        return []
    return [error for errors in response.context["form"].errors.values() for error in errors]


def test_a_password_has_at_least_12_characters(browser_of):
    client = browser_of("viewer")
    assert changed(client, "ferrous oxid") == []
    assert "at least 12 characters" in changed(browser_of("admin"), "ferrous oxi")[0]


def test_a_password_of_128_characters_counts_whole_and_a_longer_one_is_refused(browser_of):
    long = "".join(f"{number:04}" for number in range(32))
    assert len(long) == 128
    assert "at most 128 characters" in changed(browser_of("admin"), f"{long}5")[0]
    assert changed(browser_of("viewer"), long) == []
    assert logged_in("viewer", password=long)[1].status_code == 302
    assert logged_in("viewer", password=long[:-1])[1].status_code == 200


@pytest.mark.parametrize(
    "password", ["correct horse", "aaaaaaaaabcd", "пароль длинный", "🐎🔋📎 🐎🔋📎 🐎🔋📎 🐎", "    x    y  z"]
)
def test_a_password_may_have_any_characters_and_needs_none_in_particular(browser_of, password):
    assert changed(browser_of("viewer"), password) == []
    assert logged_in("viewer", password=password)[1].status_code == 302


def test_a_password_that_many_have_is_refused():
    for common in ("qwerty123456", "1qaz2wsx3edc", "123456QWERTY"):
        with pytest.raises(ValidationError, match="too common"):
            validate_password(common)


def test_a_password_like_the_name_of_its_user_is_refused(db):
    with pytest.raises(ValidationError, match="too similar to the username"):
        validate_password("support.team.1", make_user("", name="support.team"))


def test_passwords_are_stored_as_slow_hashes_each_with_its_salt(settings):
    assert not hasattr(console_settings, "PASSWORD_HASHERS"), "Django's own, whose iterations grow with each version"
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    first, second = make_password("correct horse"), make_password("correct horse")
    assert identify_hasher(first).algorithm == "pbkdf2_sha256"
    _, iterations, salt, digest = first.split("$")
    assert int(iterations) >= ITERATIONS
    assert len(salt) * 5 >= 32  # of 62 characters, more than five bits each
    assert len(digest) >= 40
    assert second.split("$")[2] != salt


def test_password_managers_know_what_each_field_is_for_and_pasting_is_not_prevented(browser_of):
    fields = "".join(
        client.get(reverse(page)).content.decode()
        for client, page in ((Client(), "login"), (browser_of("viewer"), "change-password"))
    )
    purposes = re.findall(r'<input type="password"[^>]*autocomplete="([\w-]+)"', fields)
    assert purposes == ["current-password", "current-password", "new-password", "new-password"]
    assert "onpaste" not in fields


def test_a_code_of_an_authenticator_app_is_refused_a_second_time(db):
    make_user("operator")
    secret, _ = with_factor()
    (first, _), (second, _) = logged_in(), logged_in()
    code = {"code": code_of(secret)}
    assert first.post(reverse("mfa_authenticate"), code).status_code == 302
    assert "Incorrect code" in second.post(reverse("mfa_authenticate"), code).content.decode()


def test_what_was_encrypted_and_changed_is_refused():
    sealed, again = encrypt("secret"), encrypt("secret")
    assert sealed != again, "each has a random start"
    assert decrypt(sealed) == get_adapter().decrypt(again) == "secret"
    with pytest.raises(InvalidToken):
        decrypt(sealed[:-6] + ("A" if sealed[-6] != "A" else "B") + sealed[-5:])
