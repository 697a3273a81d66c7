"""Test an analysis and tables on a Spark cluster: a standalone master, two workers, and a remote Connect server."""

import os
import subprocess

import generated_events
import psutil
import pytest
import redis
from recorded_traffic import wait_until
from spark_installation import PATIENCE, PROJECT, REQUEST, Installation

from analytics.archive.broker_archive import BrokerArchive
from analytics.archive.data_files import HOUR_US
from analytics.results import storage
from analytics.spark import class_data_sharing, jvm
from analytics.spark.server import token
from analytics.tables.status import last_build
from analytics.tables.storage import FolderStorage
from brokerapp.system.environment import Environment
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


def test_an_analysis_and_tables_run_on_a_cluster_also_after_a_worker_was_killed(cluster, tmp_path, store_url):
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
    try:
        run_id = installation.analyse(REQUEST)
        state, info = installation.end_of(run_id)
        executors = [list((folder / name).glob("app-*/*/stderr")) for name in WORKERS]
        (broker,) = BrokerArchive.archives_in(data / "archive")
        broker.write_freshness(generated_events.START_US + generated_events.SPAN_US + HOUR_US)
        installation.send("check_tables")
        kill(workers[0])
        wait_until(lambda: (data / "tables" / "last_build.json").exists(), PATIENCE)
    finally:
        installation.stop()
    assert state == "done", info
    assert storage.load_result(data / "results", run_id)["rows_read"] > 500
    assert all(executors), "executors of both workers were there for the work"
    build = last_build(FolderStorage(data / "tables"))
    assert (build.error, build.events > 500) == ("", True)
    assert not (data / "spark" / "token").exists(), "nothing was started here"
