"""The processes that make one installation of Sluice, in the order they start, and the ports they need."""

from __future__ import annotations

import errno
import http.client
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from brokerapp.environment import Environment
from brokerapp.store.embedded import answers
from console.supervisor import Part

ASK_SECONDS = 1.0
CLOSING_SECONDS = 5  # for browsers' WebSockets and STOMP clients to be told that the process ends


def parts(environment: Environment) -> list[Part]:
    """The process table. The store comes first and ends last; the web process hosts the broker node."""
    python = sys.executable
    worker = [python, "-m", "celery", "-A", "console.celery", "worker", "--loglevel", "INFO", "--without-mingle"]
    store = Part(
        "store",
        [python, "-m", "brokerapp.store.embedded", str(environment.store)],
        ready=lambda: answers(environment.store),
    )
    others = [
        Part(
            "web",
            [
                *(python, "-m", "uvicorn", "console.asgi:application", "--no-access-log"),
                *("--host", environment.bind, "--port", str(environment.console_port)),
                *("--lifespan", "on", "--ws", "websockets", "--timeout-graceful-shutdown", str(CLOSING_SECONDS)),
            ],
            environment={"SLUICE_HOST_NODE": "1"},
            ready=lambda: console_answers(environment) and stomp_connects(environment),
        ),
        Part("archiver", [python, "-m", "analytics.archiver"]),
        Part("spark", [python, "-m", "analytics.spark_server"]),
        # An orphaned worker must not finish its task first: that may take an hour. QUIT is Celery's cold shutdown.
        Part(
            "worker-default",
            [*worker, "-Q", "default", "-c", "1", "-n", "default@%h"],
            orphan_signal=signal.SIGQUIT,
        ),
        Part(
            "worker-spark",
            [*worker, "-Q", "spark", "-c", "2", "--pool=prefork", "-n", "spark@%h"],
            orphan_signal=signal.SIGQUIT,
        ),
        Part(
            "beat",
            [
                *(python, "-m", "celery", "-A", "console.celery", "beat", "--loglevel", "INFO"),
                *("--scheduler", "django_celery_beat.schedulers:DatabaseScheduler"),
            ],
        ),
    ]
    return [store, *others] if environment.owns_store else others


# -- ports


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port of this installation: who uses it and which variable moves it."""

    number: int
    use: str
    variable: str


def ports(environment: Environment) -> list[Port]:
    """Every port the processes listen on."""
    return [
        Port(environment.console_port, "the console", "SLUICE_PORT"),
        Port(environment.stomp_port, "STOMP", "SLUICE_STOMP_PORT"),
        Port(environment.spark_port, "Spark", "SLUICE_SPARK_PORT"),
    ]


def port_troubles(bind: str, wanted: list[Port]) -> Iterator[str]:
    """A sentence for every port that cannot be had, saying how to move it."""
    users: dict[int, str] = {}
    for port in wanted:
        way_out = f"set {port.variable} to another one"
        if port.number in users:
            yield f"port {port.number} is meant for both {users[port.number]} and {port.use}: {way_out}"
        elif trouble := _trouble(bind, port.number):
            yield f"port {port.number} on {bind}, meant for {port.use}, {trouble}: {way_out}"
        users.setdefault(port.number, port.use)


def _trouble(bind: str, number: int) -> str | None:
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that linger do not count
        try:
            probe.bind((bind, number))
            probe.listen()
        except OSError as error:
            return "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    return None


# -- whether they work


def console_answers(environment: Environment) -> bool:
    """Whether an HTTP request to the console gets an answer that is no server error."""
    connection = http.client.HTTPConnection(_reachable(environment.bind), environment.console_port, timeout=ASK_SECONDS)
    try:
        connection.request("HEAD", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stomp_connects(environment: Environment) -> bool:
    """Whether the STOMP port accepts connections."""
    try:
        socket.create_connection((_reachable(environment.bind), environment.stomp_port), ASK_SECONDS).close()
    except OSError:
        return False
    return True


def _reachable(bind: str) -> str:
    """The address to call for a server bound to `bind`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind, bind)
