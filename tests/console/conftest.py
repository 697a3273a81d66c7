"""Fixtures of the console on a real broker: gateway, mirror, Celery, and a client for each role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from kombu import pools

from console.access.models import Assignment
from console.access.roles import Role
from console.broker.gateway import close_gateway
from console.broker.live.run_notices import close_notices
from console.broker.mirror import close_mirror, mirror
from console.celery import app, transport_url
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def fast_startup(settings) -> None:
    """Hashes that take no time, and clients that look for a static file when it is asked for: each client of a test is
    a web process to Django, which would go through all of them when it starts."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture
def db(db):
    """The database with the groups that migrations make: a test with transactions of its own leaves it without them."""
    missing = set(Role) - set(Group.objects.values_list("name", flat=True))
    for role in missing:
        Assignment.objects.create(group=Group.objects.create(name=role), role=role)


@pytest.fixture
def console(running_broker, broker, settings, tmp_path) -> Iterator:
    """The console's parts that live in the process, opened on the broker and closed after the test."""
    point_at(settings, running_broker.redis_url, running_broker.name, tmp_path)
    yield broker
    close_console()


@pytest.fixture
def console_without_store(settings, tmp_path) -> Iterator[None]:
    """A console whose store does not answer."""
    point_at(settings, f"unix://{tmp_path}/nothing.sock", "nobody", tmp_path)
    yield
    close_console()


def point_at(settings, redis_url: str, broker: str, data) -> None:
    """Have the console be that of this broker: what a page opened on another one, in a test before, is closed."""
    close_console()
    settings.SLUICE = replace(settings.SLUICE, redis_url=redis_url, broker_name=broker, data=data)
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [redis_url]}}
    }
    app.conf.broker_url = app.conf.result_backend = transport_url(redis_url)
    pools.reset()
    app._pool = None
    app.amqp._producer_pool = None
    app._backend_cache = None  # else results go on being looked for in the store of an earlier test
    vars(app._local).pop("backend", None)


def close_console() -> None:
    """End what it has opened."""
    close_notices()
    close_mirror()
    close_gateway()


def make_user(role: str, *scopes: str, name: str = "") -> User:
    """A user with this role for these scopes (none: everywhere), or with none."""
    user = User.objects.create_user(name or role or "nobody", password="password")
    if role:
        Assignment.objects.create(user=user, role=role, scopes=scopes)
    return user


@pytest.fixture
def browser_of(db):
    """A function from a role, and scopes, to a test client that is logged in with it."""

    def browser(role: str, *scopes: str, name: str = "") -> Client:
        client = Client()
        client.force_login(make_user(role, *scopes, name=name))
        return client

    return browser


@pytest.fixture
def admin(browser_of) -> Client:
    """A client with every right."""
    return browser_of("admin")


@pytest.fixture
def wait_for_mirror(console):
    """A function that waits until the console's picture shows a queue with a number of messages."""
    from brokerapp.model.destination import Destination

    def wait(name: str, depth: int) -> None:
        destination = Destination.parse(name)

        def shows() -> bool:
            stats = mirror().current().stats.get(destination)
            return stats is not None and stats.QueueSize == depth

        wait_until(shows, f"{name} with {depth} messages in the picture")

    return wait


def waiting_tasks(queue: str) -> list[tuple[str, list]]:
    """Names and arguments of the tasks that wait for a worker in a queue of Celery; they wait no longer then."""
    found = []
    with app.connection_for_read() as connection, connection.channel() as channel:
        while (message := channel.basic_get(queue, no_ack=True)) is not None:
            found.append((message.headers["task"], message.decode()[0]))
    return found
