"""Create the archive of Spark's classes, once: `python -m analytics.spark.build_class_archive`, part of `make setup`.

It runs an analysis on a Spark server of its own, which writes the archive when it ends (class_data_sharing.py).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from analytics.spark import jvm
from analytics.spark import server as spark_server
from analytics.spark.class_data_sharing import archive_exists, failure_note, has_failed, path
from analytics.spark.session import SparkUnavailable, connect
from analytics.spark.warmup import warm_up
from brokerapp.errors import BrokerError
from brokerapp.system import atomic_files
from brokerapp.system.environment import Environment

#: Seconds for the server to start, and to write the archive when it ends, on a busy machine.
_TIMEOUT = 600
_RETRY_SECONDS = 0.25
#: Archives to keep, of 200 MB each: other Java versions or copies may share the packages.
_MAX_ARCHIVES = 2


def make() -> None:
    """Run an analysis and have Java write the classes it loaded. Raises BrokerError and errors of Spark and Java.

    An incomplete file would crash every JVM that maps it, so it is verified and synced before it gets its name.
    """
    made = path()
    if made is None:
        raise BrokerError("the version of Java is unknown")
    if not os.access(made.parent, os.W_OK):
        raise BrokerError(f"{made.parent} is not writable")
    staged = made.with_name(f".{made.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            _run(Path(folder), staged)
        mapped = [f"-XX:SharedArchiveFile={staged}", "-Xshare:on", "-XX:+VerifySharedSpaces", "-version"]
        tried = subprocess.run([*jvm.command(), *mapped], capture_output=True, text=True, timeout=_TIMEOUT)
        if tried.returncode:
            raise BrokerError(f"Java does not read the archive it wrote: {tried.stdout.strip()[:200]}")
        atomic_files.sync(staged)
        staged.rename(made)
        atomic_files.sync(made.parent)
    finally:
        staged.unlink(missing_ok=True)
    _remove_older(made)


def _remove_older(made: Path) -> None:
    others = sorted(set(made.parent.glob("spark-classes-*.jsa")) - {made}, key=lambda each: each.stat().st_mtime)
    for each in others[: 1 - _MAX_ARCHIVES]:
        each.unlink()


def _run(folder: Path, staged: Path) -> None:
    variables = {"SLUICE_DATA": str(folder), "SLUICE_SPARK_PORT": str(_free_port()), "REDIS_URL": "unix:///nowhere"}
    environment = Environment.read(variables)
    writing = [f"-XX:ArchiveClassesAtExit={staged}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    command, own = spark_server.prepare(environment, writing)
    server = subprocess.Popen(
        command, env={**os.environ, **own}, cwd=environment.spark, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(server, environment)
        warm_up(environment)
        connect(environment).stop()
        server.send_signal(signal.SIGTERM)
        server.wait(_TIMEOUT)
    finally:
        server.kill()
        server.wait()


def _wait_for(server: subprocess.Popen, environment: Environment) -> None:
    """Wait until the server listens. Raises BrokerError when it ends before, or does not start in time."""
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            connect(environment, wait_seconds=0)
            return
        except SparkUnavailable:
            if server.poll() is not None:
                raise BrokerError(f"Spark's server ended with code {server.returncode} as it started") from None
            if time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _give_up(reason: str) -> str:
    """Write the note that creating the archive failed; return the message to print."""
    said = f"Spark starts slower: {reason}\n"
    # Where the folder is not writable, or Java is missing, trying again is cheap.
    with suppress(OSError, BrokerError):
        if made := path():
            failure_note(made).write_text(said)
            said += f"To try again, remove {failure_note(made)}\n"
    return said


def main() -> None:
    """Create the archive unless it exists or failed before. A failure is reported, not raised."""
    try:
        if not archive_exists() and not has_failed():
            sys.stdout.write("creating an archive of Spark's classes for faster starts: takes half a minute, once\n")
            sys.stdout.flush()
            make()
    except Exception as error:  # of Spark, Java or the disk: everything works without the archive
        sys.stderr.write(_give_up(f"{type(error).__name__}: {error}".partition("\n")[0]))


if __name__ == "__main__":
    main()
