"""A real worker and a real Spark server: runs come to their end, whatever end that is."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import generated_events
import psutil
import pytest
import redis
from celery import Celery
from generated_events import WINDOW
from recorded_traffic import BROKER, wait_until

from analytics import results

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
TOLD = "test:told"
#: A machine that is busy with other things takes its time to start a JVM.
PATIENCE = 120
REQUEST = {"kind": "traffic", "since_us": WINDOW.since_us, "until_us": WINDOW.until_us}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Installation:
    """Store, Spark server and worker of one data folder."""

    def __init__(self, data: Path, store_url: str) -> None:
        self.data = data
        self.variables = {
            **os.environ,
            "SLUICE_DATA": str(data),
            "SLUICE_BROKER": BROKER,
            "SLUICE_SPARK_PORT": str(free_port()),
            "SPARK_MASTER": "local[2]",
            "REDIS_URL": store_url,
            # Compiling well pays off after minutes only; this halves the time of a cold server.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
            "PYTHONPATH": os.pathsep.join((str(PROJECT), str(HERE))),
        }
        self.store = redis.Redis.from_url(store_url)
        self.app = Celery(broker=store_url.replace("unix://", "redis+socket://"), set_as_current=False)
        self.app.conf.broker_transport_options = {"global_keyprefix": "celery:"}
        self.server = self.start_server()
        self.worker = self.start_worker("spark", 2)
        self.short_tasks = self.start_worker("default", 1)

    def start_worker(self, queue: str, children: int) -> subprocess.Popen:
        options = ("-Q", queue, "-n", queue, "-c", str(children), "--without-mingle", "-l", "INFO")
        return self.start("celery", "-A", "worker_app", "worker", *options)

    def start(self, *module: str) -> subprocess.Popen:
        log = (self.data / f"{module[0]}.log").open("a")
        command = [sys.executable, "-m", *module]
        return subprocess.Popen(command, env=self.variables, cwd=HERE, stdout=log, stderr=log, start_new_session=True)

    def start_server(self) -> subprocess.Popen:
        return self.start("analytics.spark_server")

    def stop(self) -> None:
        for process in (self.worker, self.short_tasks, self.server):
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for each in family:
                each.kill()
            process.wait()
        self.store.close()

    def send(self, task: str, *args) -> None:
        """What the console does."""
        queue = "spark" if task == "analyse" else "default"
        identity = {"task_id": args[0]} if task == "analyse" else {}
        self.app.send_task(f"analytics.tasks.{task}", args=list(args), queue=queue, **identity)

    def analyse(self, request: dict) -> str:
        run_id = str(uuid.uuid4())
        self.send("analyse", run_id, request)
        return run_id

    def told(self, run_id: str) -> list[tuple[str, dict]]:
        rows = map(json.loads, self.store.lrange(TOLD, 0, -1))
        return [(state, info) for id, state, info in rows if id == run_id]

    def end_of(self, run_id: str) -> tuple[str, dict]:
        def end():
            return next((each for each in self.told(run_id) if each[0] in ("done", "failed", "cancelled")), None)

        return wait_until(end, PATIENCE)

    def wait_for_work(self, run_id: str) -> None:
        """Until Spark is at work for the run."""

        def at_work():
            told = self.told(run_id)
            assert not told or told[-1][0] in ("starting", "running"), told
            return " tasks" in str(told)

        wait_until(at_work, PATIENCE)


@pytest.fixture(scope="module")
def installation(tmp_path_factory, store_url):
    data = tmp_path_factory.mktemp("data")
    with redis.Redis.from_url(store_url) as client:
        client.flushall()
    made = Installation(data, store_url)
    yield made
    made.stop()


def test_an_analysis_of_an_archive_that_does_not_exist_says_so(installation):
    run_id = installation.analyse(REQUEST)
    state, info = installation.end_of(run_id)
    assert (state, info) == (
        "done",
        {"result": f"{run_id}/result.json", "sentence": "Nothing was recorded in this window."},
    )


def test_an_analysis_runs_through_its_states_and_leaves_its_result(installation):
    generated_events.write(installation.data / "archive", 2000)
    run_id = installation.analyse(REQUEST)
    state, info = installation.end_of(run_id)
    assert state == "done", info
    result = results.stored(installation.data / "results", run_id)
    assert info == {"result": f"{run_id}/result.json", "sentence": result["sentence"]}
    assert result["rows_read"] > 2000
    assert 0 < time.time_ns() // 1000 - result["freshness_us"] < 60_000_000  # the stream was read up to its end
    assert result["tables"][0]["title"] == "Traffic by destination"
    assert len(result["tables"][0]["rows"]) == 5
    states = [state for state, _ in installation.told(run_id)]
    assert (states[0], states[-1], set(states)) == ("starting", "done", {"starting", "running", "done"})
    progress = [info["progress"] for state, info in installation.told(run_id) if state == "running"]
    assert progress == sorted(progress)
    stages = {info["stage"][:6] for state, info in installation.told(run_id) if state == "running"}
    assert stages == {"1 of 2", "2 of 2"}


def test_a_run_that_is_delivered_twice_is_computed_once(installation):
    run_id = installation.analyse(REQUEST)
    installation.end_of(run_id)
    written = (installation.data / "results" / run_id / "result.json").stat()
    installation.send("analyse", run_id, REQUEST)
    wait_until(lambda: [state for state, _ in installation.told(run_id)].count("done") == 2)
    assert (installation.data / "results" / run_id / "result.json").stat().st_ino == written.st_ino
    assert [state for state, _ in installation.told(run_id)].count("starting") == 1


def test_an_analysis_that_does_not_exist_fails_with_a_sentence(installation):
    assert installation.end_of(installation.analyse({"kind": "weather"})) == (
        "failed", {"reason": "'weather' is not an analysis: expected one of traffic, endless, wrong"},
    )  # fmt: skip


def test_a_query_that_spark_refuses_fails_with_the_condition_and_no_trace(installation):
    state, info = installation.end_of(installation.analyse({"kind": "wrong"}))
    assert state == "failed"
    assert info["reason"].startswith("ArithmeticException: DIVIDE_BY_ZERO: Division by zero.")
    assert "\n" not in info["reason"]
    assert "at org.apache" not in info["reason"]


def test_a_running_analysis_is_cancelled_within_a_second_and_spark_goes_idle(installation):
    run_id = installation.analyse({"kind": "endless"})
    installation.wait_for_work(run_id)
    server = psutil.Process(installation.server.pid)
    assert server.cpu_percent(0.5) > 20
    sent = time.monotonic()
    installation.send("cancel", run_id)
    state, info = installation.end_of(run_id)
    assert time.monotonic() - sent < 1.0
    wait_until(lambda: server.cpu_percent(0.1) < 20)
    assert time.monotonic() - sent < 1.5
    assert (state, info) == ("cancelled", {"reason": "Cancelled."})
    state, info = installation.end_of(installation.analyse(REQUEST))
    assert state == "done", info


def test_an_analysis_that_waits_is_cancelled_before_it_starts(installation):
    busy = [installation.analyse({"kind": "endless"}) for _ in range(2)]
    for each in busy:
        installation.wait_for_work(each)
    waiting = installation.analyse(REQUEST)
    for each in (waiting, *busy):
        installation.send("cancel", each)
    for each in (waiting, *busy):
        assert installation.end_of(each)[0] == "cancelled"
    assert installation.end_of(installation.analyse(REQUEST))[0] == "done"
    assert [state for state, _ in installation.told(waiting)] == ["cancelled"]


def test_a_worker_child_that_is_killed_is_a_failure_with_a_reason(installation):
    run_id = installation.analyse({"kind": "endless"})
    installation.wait_for_work(run_id)
    for child in psutil.Process(installation.worker.pid).children():
        child.kill()
    state, info = installation.end_of(run_id)
    assert state == "failed"
    assert info["reason"] == "The worker's process was killed; the machine may have run out of memory."


def test_a_spark_server_that_dies_is_a_failure_with_a_reason_and_the_next_run_works(installation):
    run_id = installation.analyse({"kind": "endless"})
    installation.wait_for_work(run_id)
    installation.server.kill()
    installation.server.wait()
    state, info = installation.end_of(run_id)
    assert state == "failed"
    assert info["reason"].startswith("The Spark server stopped while the analysis ran.")
    installation.server = installation.start_server()
    state, info = installation.end_of(installation.analyse(REQUEST))
    assert state == "done", info


def test_the_server_ends_when_it_is_asked_to(installation):
    installation.server.terminate()
    assert installation.server.wait(20) in (143, -signal.SIGTERM)
    installation.server = installation.start_server()
