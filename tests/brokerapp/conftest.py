"""Fixtures of the broker's tests: one real store a run, and a broker name of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from brokerapp.store.redis import RedisStore
from brokerapp.store.server.embedded import EmbeddedStore

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def store_url(tmp_path_factory) -> Iterator[str]:
    """A Valkey of its own for the run, behind a unix socket."""
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running.url


@pytest.fixture
def broker_name() -> str:
    """A broker nobody else uses."""
    return f"broker-{next(_numbers)}"


@pytest.fixture
async def store(store_url, broker_name) -> AsyncIterator[RedisStore]:
    """The store of that broker, claimed by the session `me`."""
    opened = RedisStore(store_url, broker_name)
    await opened.open()
    await opened.nodes.join("me")
    yield opened
    await opened.close()
