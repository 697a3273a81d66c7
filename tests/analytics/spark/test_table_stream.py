"""The process that counts current hours with Structured Streaming, with a real store and a real Connect server."""

import os
import signal
import subprocess
import sys
import time

import pyarrow.compute as pc
import pytest
from recorded_traffic import BROKER, wait_until
from spark_installation import PATIENCE

from analytics.archive.broker_archive import BrokerArchive
from analytics.tables.catalog import TableCatalog
from analytics.tables.current_hours import read_current_hours
from analytics.tables.definitions import HOUR_US
from analytics.tables.storage import FolderStorage
from brokerapp.system.environment import Environment
from tests.analytics.archive.test_archiver import EVENTS_A_MESSAGE, flush, record
from tests.ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def variables(environment_variables) -> dict[str, str]:
    fast = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return environment_variables | fast | {"SLUICE_SPARK_PORT": str(free_port()), "SLUICE_STREAM_TABLES": "1"}


@pytest.fixture
def start(variables, tmp_path):
    """Start a module as its supervisor does; all end with the test."""
    started = []

    def start(module: str) -> subprocess.Popen:
        log = (tmp_path / f"{module}.log").open("a")
        command = [sys.executable, "-m", module]
        started.append(subprocess.Popen(command, env=variables, stdout=log, stderr=log, start_new_session=True))
        return started[-1]

    yield start
    for each in started:
        if each.poll() is None:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def test_a_query_that_is_killed_goes_on_where_it_ended_and_counts_each_event_once(variables, start, store, store_url):
    environment = Environment.read(variables)
    archive = BrokerArchive(environment.archive, BROKER)
    catalog = TableCatalog(FolderStorage(environment.tables), archive)
    now_us = time.time_ns() // 1000
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        record(store, sent, count, start_us=now_us)
        sent += count

    def counts() -> dict[str, int]:
        current = read_current_hours(catalog)
        rows = current.rows["traffic"] if current else None
        kinds = rows.group_by("kind").aggregate([("messages", "sum")]).to_pylist() if rows is not None else []
        return {each["kind"]: each["messages_sum"] for each in kinds}

    def all_counted() -> bool:
        return counts() == {"enqueue": sent, "forward": 2 * sent, "ack": sent}

    server = start("analytics.spark.server")
    record(store, 100_000, 3, start_us=now_us - now_us % HOUR_US - HOUR_US)  # of the hour before: builds compute it
    send(5)
    stream = start("analytics.spark.tables.stream")
    wait_until(all_counted, PATIENCE)
    stream.kill()
    stream.wait()
    send(7)
    flush(store_url, archive)
    send(4)
    stream = start("analytics.spark.tables.stream")
    wait_until(all_counted, PATIENCE)
    server.kill()
    server.wait()
    send(2)
    start("analytics.spark.server")
    wait_until(all_counted, PATIENCE)
    rows = read_current_hours(catalog).rows["traffic"]
    assert pc.sum(rows["events"]).as_py() == sent * EVENTS_A_MESSAGE
    stream.terminate()
    assert stream.wait(PATIENCE) == 0
