"""Define the processes of an installation in the order they start."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import sys
from collections.abc import Iterator

from brokerapp.store.server.embedded import STOP_PATIENCE_SECONDS, is_answering
from brokerapp.system import extras
from brokerapp.system.environment import IS_CHECKOUT, Environment
from brokerapp.upgrades.store import check_store
from console.ops.client_addresses import reachable
from console.ops.supervisor import ProcessSpec

ASK_SECONDS = 1.0
WEB_GRACE_SECONDS = 32.0  # closing, and then the node hands over to others and stores all it was asked to (node.py)

SPARK_GRACE_SECONDS = 5.0  # it takes two; there is nothing to be saved

SHORT_TASKS = 2  # at once; the demo is a task that lasts
DATABASE_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY = "console.celery_command --quiet -A"
#: Django's checks need every page of the console loaded, for which Celery's processes have no use: half of their start.
UNCHECKED = {"CELERY_SKIP_CHECKS": "1"}
WORKER_ENVIRONMENT = UNCHECKED | {
    # A worker that is told to end must not finish an analysis first: that may take an hour. It gets the few seconds of
    # worker_soft_shutdown_timeout and hands back what it has not done.
    "REMAP_SIGTERM": "SIGQUIT",
    # Celery warns about workers of root because of pickled tasks; ours are JSON.
    "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
}
#: What Celery says of the signal that the supervisor sends it: a second Ctrl-C means something else here.
WORKER_HIDDEN_LINES = re.compile(
    r"^\s*$|Hitting Ctrl\+C|(Warm|Cold|Soft) [Ss]hutdown|Waiting gracefully for cold shutdown"
)
#: Where in Spark something happened, that a client went while it was being answered, and each batch of a streaming
#: query, with the token of clients.
SPARK_HIDDEN_LINES = re.compile(
    r"^\s+at |INVALID_CURSOR\.DISCONNECTED|async-grpc-response-sender|^Streaming ForeachBatch worker"
)
#: That browsers' tabs come and go; one that is refused is shown.
WEB_HIDDEN_LINES = re.compile(r'"WebSocket [^"]*" \[accepted\]$|^INFO:\s+connection (open|closed)$')
WORKER = f"{CELERY} console.celery worker --loglevel INFO --without-mingle --without-gossip"


def process_specs(environment: Environment) -> list[ProcessSpec]:
    """Return the process table: the store starts first and stops last; the web process hosts the node."""
    store = ProcessSpec(
        "store",
        _module("brokerapp.store.server.embedded", str(environment.store)),
        ready=lambda: store_is_usable(environment),
        is_needed=True,
        grace=STOP_PATIENCE_SECONDS,
    )

    def worker(queue: str, processes: int) -> ProcessSpec:
        command = _module(f"{WORKER} -Q {queue} -c {processes} -n {queue}@%h")
        return ProcessSpec(f"worker-{queue}", command, environment=WORKER_ENVIRONMENT, hidden_lines=WORKER_HIDDEN_LINES)

    server = _module("analytics.spark.server")
    spark = ProcessSpec("spark", server, ready=lambda: True, is_disposable=True, grace=SPARK_GRACE_SECONDS,
                 hidden_lines=SPARK_HIDDEN_LINES)  # fmt: skip
    has_analytics = extras.is_installed(extras.ANALYTICS)
    others = [
        # What analyses need takes longest to start, and waits for nobody. Spark ends after those who need it.
        *([spark] if has_analytics and not environment.spark_remote else []),
        *([worker("spark", environment.analyses_at_once)] if has_analytics else []),
        ProcessSpec(
            "web",
            _module("console.ops.serving.web_server console"),
            environment={"SLUICE_HOST_NODE": "1"},
            ready=lambda: console_answers(environment) and clients_connect(environment),
            grace=WEB_GRACE_SECONDS,
            hidden_lines=WEB_HIDDEN_LINES,
        ),
        ProcessSpec(
            "monitor",
            _module("console.ops.serving.web_server monitor"),
            ready=lambda: answers_http(environment.plain_bind, environment.monitor_port, "/healthz"),
        ),
        ProcessSpec("archiver", _module("analytics.archive.archiver")),
        *([ProcessSpec("spans", _module("analytics.spans.exporter"))] if environment.exports_spans else []),
        *([ProcessSpec("tables", _module("analytics.spark.tables.stream"))] if environment.streams_tables else []),
        worker("default", SHORT_TASKS),
        ProcessSpec(
            "beat",
            _module(f"{CELERY} console.celery_beat beat --loglevel INFO --scheduler {DATABASE_SCHEDULER}"),
            environment=UNCHECKED,
        ),
    ]
    return [store, *others] if environment.owns_store else others


def _module(line: str, *more: str) -> list[str]:
    """Return the command `python -m LINE MORE...`; arguments that may contain spaces are items of `more`.

    A checkout runs in its folder. An installed package may be started anywhere: Python leaves modules of the current
    directory alone (-P).
    """
    return [sys.executable, *([] if IS_CHECKOUT else ["-P"]), "-m", *line.split(), *more]


def missing_extras(environment: Environment) -> Iterator[str]:
    """Yield a sentence for each setting that needs an extra which is not installed."""
    asked = {
        "SPARK_REMOTE": bool(environment.spark_remote),
        "SLUICE_EXPORT_SPANS": environment.exports_spans,
        "SLUICE_STREAM_TABLES": environment.streams_tables,
    }
    if not extras.is_installed(extras.ANALYTICS):
        yield from (extras.missing(extras.ANALYTICS, f"{name} needs") for name, is_set in asked.items() if is_set)


# -- whether they work


def store_is_usable(environment: Environment) -> bool:
    """Return whether the embedded store answers. Raises ConfigurationRefused if a newer version wrote it."""
    if not is_answering(environment.store):
        return False
    check_store(environment.redis_url, environment.broker_name)
    return True


def console_answers(environment: Environment) -> bool:
    """Return whether the console answers without a server error."""
    return answers_http(environment.bind, environment.console_port, "/", tls=environment.console_tls)


def answers_http(bind: str, port: int, path: str, *, tls: bool = False) -> bool:
    """Return whether the address answers HTTP without a server error; with `tls` over TLS, by any certificate."""
    connection = (
        http.client.HTTPSConnection(
            reachable(bind), port, timeout=ASK_SECONDS, context=ssl._create_unverified_context()
        )
        if tls
        else http.client.HTTPConnection(reachable(bind), port, timeout=ASK_SECONDS)
    )
    try:
        connection.request("HEAD", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def clients_connect(environment: Environment) -> bool:
    """Return whether a port for clients accepts connections: the node opens all or none."""
    first = environment.listeners[0]
    try:
        socket.create_connection((reachable(first.host), first.number), ASK_SECONDS).close()
    except OSError:
        return False
    return True
