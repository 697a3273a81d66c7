"""Create Spark sessions: thin clients of the Connect server, and local sessions for tests."""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.pandas.types import to_arrow_schema

from analytics.requests.errors import AnalysisFailed
from analytics.spark import class_data_sharing
from analytics.spark.server import CALL_SITES, LOOPBACK, WORKER_CONNECT_TIMEOUT, token
from brokerapp.errors import BrokerError
from brokerapp.system.environment import Environment

#: Seconds to wait for a server that is starting.
START_SECONDS = 60.0
_RETRY_SECONDS = 0.25
#: Port of Spark Connect, if SPARK_REMOTE names none.
DEFAULT_PORT = 15002
#: Four attempts detect a dead server in about five seconds; the client's default takes minutes.
_RETRY_POLICY = {"max_retries": 4, "initial_backoff": 200, "max_backoff": 2000}

# The client writes every refused query to stderr, in full; the caller gets the reason anyway.
for _name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

_session: SparkSession | None = None


class SparkUnavailable(BrokerError):
    """The Spark Connect server does not answer."""

    code = "spark-unavailable"


def connect(environment: Environment, wait_seconds: float = START_SECONDS) -> SparkSession:
    """Return this process's session; create a new one after a restart of the server. Raises SparkUnavailable.

    Call it in the process that uses it: a channel does not survive a fork.
    """
    global _session
    _wait_for_server(environment, wait_seconds)
    if _session is not None and not is_alive(_session):
        # Otherwise the client would keep using it as the process's current session.
        _session.release_session_on_close = False
        _session.stop()
        _session = None
    if _session is None:
        _session = _open(environment)
    return _session


def interrupt_session(environment: Environment, session_id: str, tag: str) -> list[str]:
    """Interrupt the operations of another process's session with this tag; return their ids.

    Uses a bare client: a second session of this process would become its current one.
    """
    client = SparkConnectClient(url_of(environment, session_id), retry_policy=_RETRY_POLICY)
    try:
        return client.interrupt_tag(tag) or []
    finally:
        client.close()


def fetch(frame: DataFrame) -> pa.Table:
    """Fetch the rows of a frame from the server.

    `toArrow` asks for its schema first: another round trip, for which Spark analyses the query apart.
    """
    table, schema = frame._to_table()
    return table.cast(to_arrow_schema(schema, timezone="UTC"))


def fetch_within(frame: DataFrame, max_bytes: int) -> pa.Table:
    """Fetch the rows of a frame batch by batch. Raises AnalysisFailed when they take more bytes than this."""
    client, plan = frame._session.client, frame._plan
    schema, parts, size = None, [], 0
    for part in client.to_table_as_iterator(plan.to_proto(client), plan.observations):
        if not isinstance(part, pa.Table):
            schema = part
            continue
        parts.append(part)
        size += part.nbytes
        if size > max_bytes:
            raise AnalysisFailed(f"The result is larger than {max_bytes // 1024**2} MiB. Select fewer rows or columns.")
    return pa.concat_tables(parts).cast(to_arrow_schema(schema or frame.schema, timezone="UTC"))


def is_alive(session: SparkSession) -> bool:
    """Return whether the server still knows the session: one small round trip."""
    try:
        session.range(1).schema  # noqa: B018 - asking is the point
    except Exception:  # whatever the client's libraries raise, the session is of no use
        return False
    return True


def local(folder: Path) -> SparkSession:
    """Return a classic session in this process, for tests: one core, tuned for a quick start and small data."""
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": " ".join(
            ["-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.timezone=UTC", *class_data_sharing.flags()]
        ),
        "spark.sql.python.filterPushdown.enabled": "true",
        CALL_SITES: "false",
        "spark.python.authenticate.socketTimeout": WORKER_CONNECT_TIMEOUT,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master("local[1]").appName("sluice-tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _open(environment: Environment) -> SparkSession:
    try:
        session = SparkSession.builder.remote(url_of(environment)).create()
        session.client.set_retry_policies([DefaultPolicy(**_RETRY_POLICY)])
    except PySparkException as error:
        raise SparkUnavailable(f"Spark refuses a session: {error.getCondition() or error}") from error
    return session


def url_of(environment: Environment, session_id: str | None = None) -> str:
    """Return the URL of the server, with the token, which is a secret."""
    if environment.spark_remote:
        address, _, options = environment.spark_remote.partition("/;")
        url = f"{address.rstrip('/')}/;{options}"
    else:
        # The client takes any other host name than `localhost` to mean TLS when there is a token.
        url = f"sc://localhost:{environment.spark_port}/;token={token(environment)}"
    return url if session_id is None else f"{url.rstrip(';')};session_id={session_id}"


def _address(environment: Environment) -> tuple[str, int]:
    """Return host and port of the server."""
    if not environment.spark_remote:
        return LOOPBACK, environment.spark_port
    try:
        found = urlsplit(environment.spark_remote)
        port = found.port or DEFAULT_PORT
    except ValueError:
        found, port = urlsplit(""), 0
    if found.scheme != "sc" or not found.hostname:
        # It may contain a token, so it is not shown.
        raise SparkUnavailable("SPARK_REMOTE is not an address: expected sc://host:port/;token=...")
    return found.hostname, port


def _wait_for_server(environment: Environment, seconds: float) -> None:
    deadline, (host, port) = time.monotonic() + seconds, _address(environment)
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                where = f"{host}:{port}" if environment.spark_remote else f"port {port}"
                raise SparkUnavailable(f"no Spark server listens on {where}") from error
        time.sleep(_RETRY_SECONDS)
