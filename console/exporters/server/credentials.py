"""Authenticate requests by HTTP Basic or bearer token, without sessions and redirects."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import threading
import time
from collections.abc import Callable

from allauth.mfa.utils import is_mfa_enabled
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from console.access.permissions import restrict
from console.access.roles import Permission, TokenLimit
from console.accounts import api_tokens
from console.accounts.second_factor import requires_second_factor


class PasswordCache:
    """Remember correct passwords for a short time under a keyed digest: hashes are slow by design."""

    SECONDS = 60.0
    MOST = 1_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._key = clock, os.urandom(32)
        self._until: dict[bytes, float] = {}
        self._lock = threading.Lock()

    def contains(self, user: AbstractBaseUser, password: str) -> bool:
        """Return whether this password was correct a short time ago."""
        with self._lock:
            return self._clock() < self._until.get(self._digest(user, password), 0.0)

    def add(self, user: AbstractBaseUser, password: str) -> None:
        """Remember a correct password."""
        with self._lock:
            if len(self._until) >= self.MOST:
                self._until.clear()
            self._until[self._digest(user, password)] = self._clock() + self.SECONDS

    def _digest(self, user: AbstractBaseUser, password: str) -> bytes:
        return hmac.digest(self._key, f"{user.pk}:{user.password}:{password}".encode(), hashlib.sha256)


_memory = PasswordCache()


def authenticate_request(request: HttpRequest) -> AbstractBaseUser | None:
    """Return the active user of the request's password or token; None without valid credentials."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return api_tokens.authenticate_token(text.strip(), request.META.get("REMOTE_ADDR", "") or "")
    return basic_user(request)


def basic_user(request: HttpRequest) -> AbstractBaseUser | None:
    """Return the active user of the Basic credentials; None when they are missing or wrong.

    Wrong ones count towards the lock-out of name and address, as those of the login page do. A password alone leaves
    whoever has, or must have, a second factor the right to read numbers and nothing else: a token gives them more.
    """
    found = _name_and_password(request.headers.get("Authorization", ""))
    if found is None:
        return None
    name, password = found
    user = get_user_model().objects.filter(username=name, is_active=True).first()
    if user is None or not _memory.contains(user, password):
        user = authenticate(request, username=name, password=password)
        if user is None:
            return None
        _memory.add(user, password)
    if is_mfa_enabled(user) or requires_second_factor(user):
        restrict(user, TokenLimit(frozenset({Permission.METRICS})))
    return user


def _name_and_password(header: str) -> tuple[str, str] | None:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (name, password) if colon else None
