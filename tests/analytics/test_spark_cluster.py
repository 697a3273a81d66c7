"""Test an analysis on a Spark cluster: a standalone master and worker, and a remote Connect server."""

import os
import subprocess

import generated_events
import psutil
import pytest
import redis
from recorded_traffic import wait_until
from spark_installation import PATIENCE, PROJECT, REQUEST, Installation

from analytics.results import storage
from analytics.spark import class_data_sharing, jvm
from analytics.spark.server import token
from brokerapp.system.environment import Environment
from tests.ports import free_port

pytestmark = [pytest.mark.spark, pytest.mark.long]

DEPLOY = "org.apache.spark.deploy"


@pytest.fixture
def cluster(tmp_path):
    """The address of a master on loopback with one worker, and the folder of their logs."""
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

    def start(name: str, *arguments: str) -> None:
        command = [*jvm.command(), f"{DEPLOY}.{name}", "--host", "127.0.0.1", *arguments]
        log = (folder / f"{name}.log").open("w")
        started.append(subprocess.Popen(command, env=variables, cwd=folder, stdout=log, stderr=log))

    try:
        start("master.Master", "--port", str(port), "--webui-port", str(free_port()))
        more = ("--cores", "2", "--memory", "1g", "--work-dir", str(folder), "--webui-port", str(free_port()))
        start("worker.Worker", *more, address)
        wait_until(lambda: "Successfully registered" in (folder / "worker.Worker.log").read_text(), PATIENCE)
        yield address, folder
    finally:
        for each in started:
            for child in (*psutil.Process(each.pid).children(recursive=True), psutil.Process(each.pid)):
                child.kill()
            each.wait()


def test_an_analysis_runs_on_a_cluster_behind_a_server_elsewhere(cluster, tmp_path, store_url):
    address, folder = cluster
    with redis.Redis.from_url(store_url) as client:
        client.flushall()
    data, elsewhere, port = tmp_path / "data", tmp_path / "elsewhere", str(free_port())
    generated_events.write(data / "archive", 500)
    server = {
        **os.environ, "SLUICE_DATA": str(elsewhere), "SLUICE_SPARK_PORT": port, "SPARK_MASTER": address,
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1", "PYTHONPATH": str(PROJECT),
    }  # fmt: skip
    remote = f"sc://localhost:{port}/;token={token(Environment.read(server))}"
    installation = Installation(data, store_url, server, SPARK_REMOTE=remote, SLUICE_WARM_UP="0")
    try:
        run_id = installation.analyse(REQUEST)
        state, info = installation.end_of(run_id)
    finally:
        installation.stop()
    assert state == "done", info
    assert storage.load_result(data / "results", run_id)["rows_read"] > 500
    executors = list(folder.glob("app-*/*/stderr"))
    assert executors, "an executor of the cluster did the work"
    assert not (data / "spark" / "token").exists(), "nothing was started here"
