"""Makes and finds the archive of Spark's classes, with which Spark starts faster.

Loading, checking and linking some 20,000 classes is most of what a start of Spark costs. Java keeps the outcome in a
file (application class-data sharing), if asked, and maps it at the next start. It stands beside the packages, for the
Java and the Spark it was made with, where that was: `make setup` makes it, once. Where it cannot be made a note says so
in its place, and nobody tries again. A start without it is slower, and else the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from analytics.archive import atomic_files
from analytics.spark import jvm
from brokerapp.errors import BrokerError
from brokerapp.system.environment import Environment

#: Seconds for the server to start, and to write the archive when it ends, on a machine that does much else.
_PATIENCE = 600
_LOOK_AGAIN_SECONDS = 0.25
#: Archives that stay: of another Java that shares the packages, too, or from where they were copied; one is 200 MB.
_KEPT = 2
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")  # one that does not fit is no news


def path() -> Path | None:
    """Where the archive for this Java and this Spark is, or would be; None when Java does not say which it is.

    Java takes it for the very class path it was made with, and passes over one that was copied with the packages.
    """
    try:
        said = (jvm.java_home() / "release").read_text()
    except OSError:
        return None
    found = re.search('JAVA_(?:RUNTIME_)?VERSION="([^"]+)"', said)
    if not found:
        return None
    place = hashlib.sha256(os.fsencode(jvm.spark_home())).hexdigest()[:8]
    return Path(sys.prefix) / f"spark-classes-{version('pyspark')}-java-{found[1]}-{place}.jsa"


def is_there() -> bool:
    """Whether there is one, made after Spark was installed."""
    made = path()
    return made is not None and _since_spark(made)


def is_given_up() -> bool:
    """Whether a note says that it could not be made, for this Java and this Spark."""
    made = path()
    return made is not None and _since_spark(_note(made))


def flags() -> list[str]:
    """What tells a JVM to use it; nothing while there is none."""
    return [f"-XX:SharedArchiveFile={path()}", *_QUIET] if is_there() else []


def make() -> None:
    """Run an analysis, and have Java keep the classes that it took. Raises whatever Spark and Java do, and BrokerError.

    A file that was not written to its end would end every JVM that maps it: so it is tried, and on the disk, before it
    gets its name.
    """
    made = path()
    if made is None:
        raise BrokerError("Java does not say which one it is")
    if not os.access(made.parent, os.W_OK):
        raise BrokerError(f"nothing can be written to {made.parent}")
    staged = made.with_name(f".{made.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            _run(Path(folder), staged)
        mapped = [f"-XX:SharedArchiveFile={staged}", "-Xshare:on", "-XX:+VerifySharedSpaces", "-version"]
        tried = subprocess.run([*jvm.command(), *mapped], capture_output=True, text=True, timeout=_PATIENCE)
        if tried.returncode:
            raise BrokerError(f"what Java wrote it does not read: {tried.stdout.strip()[:200]}")
        atomic_files.sync(staged)
        staged.rename(made)
        atomic_files.sync(made.parent)
    finally:
        staged.unlink(missing_ok=True)
    _remove_older(made)


def _remove_older(made: Path) -> None:
    others = sorted(set(made.parent.glob("spark-classes-*.jsa")) - {made}, key=lambda each: each.stat().st_mtime)
    for each in others[: 1 - _KEPT]:
        each.unlink()


def _run(folder: Path, staged: Path) -> None:
    from analytics.spark import server as spark_server  # which asks for the flags above
    from analytics.spark.session import connect
    from analytics.spark.warmup import warm_up

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
        server.wait(_PATIENCE)
    finally:
        server.kill()
        server.wait()


def _wait_for(server: subprocess.Popen, environment: Environment) -> None:
    """Until the server listens. Raises BrokerError when it ends before, or takes too long."""
    from analytics.spark.session import SparkUnavailable, connect

    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            connect(environment, wait_seconds=0)
            return
        except SparkUnavailable:
            if server.poll() is not None:
                raise BrokerError(f"Spark's server ended with code {server.returncode} as it started") from None
            if time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_AGAIN_SECONDS)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _note(made: Path) -> Path:
    return made.with_suffix(".none")


def _since_spark(file: Path) -> bool:
    """Whether the file was made after Spark was installed."""
    return file.exists() and file.stat().st_mtime > (jvm.spark_home() / "jars").stat().st_mtime


def _give_up(reason: str) -> str:
    """Leave the note; what to say to people."""
    said = f"Spark will start slower than it could: {reason}\n"
    # Where nothing can be written, or no Java is found, it costs nothing to find that out again.
    with suppress(OSError, BrokerError):
        if made := path():
            _note(made).write_text(said)
            said += f"To have it tried again, remove {_note(made)}\n"
    return said


def main() -> None:
    """Make it if it is not there. That there is none is no reason for anything to fail."""
    try:
        if not is_there() and not is_given_up():
            sys.stdout.write("keeping Spark's classes as Java loads them, to start sooner: half a minute, once\n")
            sys.stdout.flush()
            make()
    except Exception as error:  # whatever Spark, Java or a disk have against it: all else works without
        sys.stderr.write(_give_up(f"{type(error).__name__}: {error}".partition("\n")[0]))


if __name__ == "__main__":
    main()
