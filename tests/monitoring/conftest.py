"""Fixtures of the monitoring endpoints on a real broker, with Django's test client."""

from __future__ import annotations

import base64

import pytest
from django.contrib.auth.models import User
from django.test import Client

from console.accounts.rate_limit import RateLimit
from console.exporters.server import access_control
from console.exporters.server import settings as monitor_settings
from tests.console.conftest import console, fast_startup, make_user  # noqa: F401

PASSWORD = "password"


@pytest.fixture(autouse=True)
def endpoints(settings, monkeypatch) -> None:
    """The addresses and the middleware of the process that serves them."""
    settings.ROOT_URLCONF = monitor_settings.ROOT_URLCONF
    settings.MIDDLEWARE = monitor_settings.MIDDLEWARE
    monkeypatch.setattr(access_control, "LIMIT", RateLimit(per_second=1000, burst=1000))


def basic(user: str, password: str = PASSWORD) -> dict[str, str]:
    """The header of HTTP Basic."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def client_of(db):
    """A function from a role to a client with the credentials of a user in it."""

    def client(role: str) -> Client:
        user = User.objects.filter(username=role).first() or make_user(role)
        return Client(headers=basic(user.username))

    return client


@pytest.fixture
def monitor(client_of) -> Client:
    """A machine."""
    return client_of("monitor")


def text(response) -> str:
    """The body, streamed or not."""
    return b"".join(response.streaming_content).decode() if response.streaming else response.content.decode()
