"""Test analyses, tables and streaming on a Spark cluster: a standalone master, two workers, a remote Connect server."""

import os
import subprocess
import time
from pathlib import Path

import generated_events
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import redis
from recorded_traffic import wait_until
from spark_installation import PATIENCE, PROJECT, REQUEST, Installation

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US
from analytics.results import storage
from analytics.spark import class_data_sharing, jvm
from analytics.spark.server import token
from analytics.tables.catalog import TableCatalog
from analytics.tables.current_hours import read_current_hours
from analytics.tables.status import last_build
from analytics.tables.storage import FolderStorage
from brokerapp.system.environment import Environment
from tests.analytics.archive.test_archiver import EVENTS_A_MESSAGE, record
from tests.ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.long]

WORKERS = ("worker-1", "worker-2")
DEPLOY = "org.apache.spark.deploy"


@pytest.fixture
def cluster(tmp_path):
    """The address of a master on loopback with two workers, the folder of their logs, and the processes of workers."""
    port, folder = free_port(), tmp_path / "cluster"
    folder.mkdir()
    variables = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(jvm.java_home()), "SPARK_HOME": str(jvm.spark_home()),
        "SPARK_SCALA_VERSION": "2.13",  # which Spark's own scripts would look for
        # Also of the executor that the worker starts: none of them lives long enough to be compiled well.
        "JAVA_TOOL_OPTIONS": " ".join(["-XX:TieredStopAtLevel=1", *class_data_sharing.flags()]),
    }  # fmt: skip
    address, started = f"spark://127.0.0.1:{port}", []

    def start(name: str, log_name: str, *arguments: str) -> None:
        command = [*jvm.command(), f"{DEPLOY}.{name}", "--host", "127.0.0.1", *arguments]
        log = (folder / f"{log_name}.log").open("w")
        started.append(subprocess.Popen(command, env=variables, cwd=folder, stdout=log, stderr=log))

    try:
        start("master.Master", "master", "--port", str(port), "--webui-port", str(free_port()))
        for name in WORKERS:
            work = folder / name
            more = ("--cores", "1", "--memory", "1g", "--work-dir", str(work), "--webui-port", str(free_port()))
            start("worker.Worker", name, *more, address)
        for name in WORKERS:
            wait_until(lambda log=f"{name}.log": "Successfully registered" in (folder / log).read_text(), PATIENCE)
        yield address, folder, started[1:]
    finally:
        for each in started:
            if each.poll() is None:
                kill(each)


def kill(process: subprocess.Popen) -> None:
    """End a process and all that it started, at once."""
    for child in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
        child.kill()
    process.wait()


def kinds_in(archive: Path) -> list[pa.Table]:
    """The kinds of all archived events, as another reader than Spark finds them."""
    return [pq.ParquetFile(each).read(["kind"]) for each in archive.rglob("part-*.parquet")]


def counted_by_kind(tables: list[pa.Table], messages: str) -> dict[str, int]:
    """Sum the messages of each kind."""
    rows = pa.concat_tables([each.select(["kind", messages]) for each in tables]).group_by("kind")
    return {each["kind"]: each[f"{messages}_sum"] for each in rows.aggregate([(messages, "sum")]).to_pylist()}


def test_an_analysis_tables_and_streaming_run_on_a_cluster_also_after_a_worker_was_killed(cluster, tmp_path, store_url):
    address, folder, workers = cluster
    with redis.Redis.from_url(store_url) as client:
        client.flushall()
    data, elsewhere, port = tmp_path / "data", tmp_path / "elsewhere", str(free_port())
    generated_events.write(data / "archive", 500)
    server = {
        **os.environ, "SLUICE_DATA": str(elsewhere), "SLUICE_SPARK_PORT": port, "SPARK_MASTER": address,
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1", "PYTHONPATH": str(PROJECT),
    }  # fmt: skip
    remote = f"sc://localhost:{port}/;token={token(Environment.read(server))}"
    installation = Installation(
        data, store_url, server, SPARK_REMOTE=remote, SLUICE_WARM_UP="0", SLUICE_HOURLY_TABLE_DAYS="0"
    )
    streaming = None
    try:
        run_id = installation.analyse(REQUEST)
        state, info = installation.end_of(run_id)
        executors = [list((folder / name).glob("app-*/*/stderr")) for name in WORKERS]
        (broker,) = BrokerArchive.archives_in(data / "archive")
        broker.write_freshness(generated_events.START_US + generated_events.SPAN_US + HOUR_US)
        installation.send("check_tables")
        kill(workers[0])
        wait_until(lambda: (data / "tables" / "last_build.json").exists(), PATIENCE)
        streaming = installation.start("analytics.spark.tables.stream")
        record(installation.store, 0, 9, start_us=time.time_ns() // 1000)
        catalog = TableCatalog(FolderStorage(data / "tables"), broker)
        counted = wait_until(lambda: (each := read_current_hours(catalog)) and each.updated_us and each, 2 * PATIENCE)
    finally:
        if streaming is not None:
            kill(streaming)
        installation.stop()
    assert state == "done", info
    assert storage.load_result(data / "results", run_id)["rows_read"] > 500
    assert all(executors), "executors of both workers were there for the work"
    build = last_build(FolderStorage(data / "tables"))
    assert build.error == ""
    events = [each.cast(pa.schema([("kind", pa.string())])) for each in kinds_in(data / "archive")]
    tables = [pq.read_table(each) for each in (data / "tables").rglob("hourly-traffic-*.parquet")]
    expected = counted_by_kind([each.append_column("one", pa.repeat(1, len(each))) for each in events], "one")
    assert counted_by_kind(tables, "messages") == expected
    assert build.events == sum(expected.values()) > 500
    assert pc.sum(counted.rows["traffic"]["events"]).as_py() == 9 * EVENTS_A_MESSAGE
    assert not (data / "spark" / "token").exists(), "nothing was started here"
