"""A Celery app as the console's is, for the tests: it notes what it is told of runs, and knows some more analyses."""

import json
import os

import redis
from celery import Celery

from analytics.requests import catalogue
from analytics.requests.catalogue import AnalysisDefinition

TOLD, STARTED = "test:told", "test:started"
URL = os.environ["REDIS_URL"]

app = Celery("test")
app.conf.update(
    broker_url=URL.replace("unix://", "redis+socket://"),
    broker_transport_options={"global_keyprefix": "celery:"},
    broker_connection_retry_on_startup=True,
    task_default_queue="default",
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    imports=("analytics.tasks",),
)

for kind in ("endless", "slow", "uncancellable", "failing", "memory", "large", "spilling"):
    catalogue.ANALYSES[kind] = AnalysisDefinition(kind, kind, kind, f"{kind}_job")


@app.task(name="console.run_changed")
def run_changed(run_id: str, state: str, info: dict) -> None:
    with redis.Redis.from_url(URL) as client:
        client.rpush(TOLD, json.dumps([run_id, state, info]))


@app.task(name="console.worker_started")
def worker_started(worker: str, seconds: float) -> None:
    with redis.Redis.from_url(URL) as client:
        client.rpush(STARTED, worker)
