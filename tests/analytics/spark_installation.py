"""Start store, Spark server and workers of one data directory for tests, as real processes."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import redis
from celery import Celery
from generated_events import WINDOW
from recorded_traffic import BROKER, wait_until

from analytics.spark.run_progress import RunProgress
from brokerapp.system.environment import Environment
from tests.ports import free_port

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
TOLD, STARTED = "test:told", "test:started"
#: A machine that is busy with other things takes its time to start a JVM.
PATIENCE = 120
REQUEST = {"kind": "traffic", "since_us": WINDOW.since_us, "until_us": WINDOW.until_us}


class Installation:
    """Store, Spark server and worker of one data folder."""

    def __init__(self, data: Path, store_url: str, server: dict[str, str] | None = None, **more: str) -> None:
        self.data = data
        self.asked: list[str] = []  #: runs of the test
        self.server_variables = server  #: the environment of the Spark server, when it has one of its own
        self.variables = {
            **os.environ,
            "SLUICE_DATA": str(data),
            "SLUICE_BROKER": BROKER,
            "SLUICE_SPARK_PORT": str(free_port()),
            "SPARK_MASTER": "local[2]",
            "SLUICE_WARM_UP": "1",
            "REDIS_URL": store_url,
            # Compiling well pays off after minutes only; this halves the time of a cold server.
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
            "PYTHONPATH": os.pathsep.join((str(PROJECT), str(HERE))),
            **more,
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

    def start(self, *module: str, variables: dict[str, str] | None = None) -> subprocess.Popen:
        log = (self.data / f"{module[0]}.log").open("a")
        return subprocess.Popen(
            [sys.executable, "-m", *module], env=variables or self.variables, cwd=HERE, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip

    def start_server(self) -> subprocess.Popen:
        return self.start("analytics.spark.server", variables=self.server_variables)

    def stop(self) -> None:
        for process in (self.worker, self.short_tasks, self.server):
            if process.poll() is None:
                for each in (*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)):
                    each.kill()
                process.wait()
        self.store.close()

    def send(self, task: str, *args, **options) -> None:
        """What the console does."""
        queue = "spark" if task == "analyse" else "default"
        identity = {"task_id": args[0]} if task == "analyse" else {}
        self.app.send_task(f"analytics.tasks.{task}", args=list(args), queue=queue, **identity, **options)

    def analyse(self, request: dict, **options) -> str:
        run_id = str(uuid.uuid4())
        self.asked.append(run_id)
        self.send("analyse", run_id, request, **options)
        return run_id

    def restart_server(self) -> int:
        """What the supervisor does when it ended; how it did."""
        code = self.server.wait(PATIENCE)
        self.server = self.start_server()
        return code

    def told(self, run_id: str) -> list[tuple[str, dict]]:
        rows = map(json.loads, self.store.lrange(TOLD, 0, -1))
        return [(state, info) for id, state, info in rows if id == run_id]

    def progress(self, run_id: str) -> dict:
        """The progress that its worker wrote last."""
        environment = Environment.read(self.variables)
        return RunProgress(environment.redis_url, environment.broker_name).read([run_id]).get(run_id, {})

    def kill_worker(self) -> None:
        """End it and its children at once; no worker of before is known any more."""
        self.store.delete(STARTED)
        for each in (*psutil.Process(self.worker.pid).children(recursive=True), psutil.Process(self.worker.pid)):
            each.kill()
        self.worker.wait()

    def started_workers(self) -> list[str]:
        """Names of the workers that said they began."""
        return [each.decode() for each in self.store.lrange(STARTED, 0, -1)]

    def end_of(self, run_id: str) -> tuple[str, dict]:
        return wait_until(lambda: self.end(run_id), PATIENCE)

    def end(self, run_id: str) -> tuple[str, dict] | None:
        """How it ended, once it has."""
        return next((each for each in self.told(run_id) if each[0] in ("done", "failed", "lost", "cancelled")), None)

    def under_way(self) -> list[str]:
        """Runs that were asked for since this was asked, and have not ended."""
        asked, self.asked = self.asked, []
        return [each for each in asked if not self.end(each)]

    def wait_for_work(self, run_id: str) -> None:
        """Until Spark is at work for the run."""

        def at_work():
            told = self.told(run_id)
            assert not told or told[-1][0] == "starting", told
            return " tasks" in self.progress(run_id).get("stage", "")

        wait_until(at_work, PATIENCE)
