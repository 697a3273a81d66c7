"""The archive of Spark's classes, which `python -m analytics.class_archive` makes: with it Spark starts for less.

Loading, checking and linking some 20,000 classes is most of what a start of Spark costs. Java keeps the outcome in a
file (application class-data sharing), if asked, and maps it at the next start. It stands beside the packages, for the
Java and the Spark it was made with: `make setup` makes it, once. A start without it is slower, and else the same.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from analytics import jvm
from brokerapp.environment import Environment
from brokerapp.errors import BrokerError

#: Seconds for the server to start, and to write the archive when it ends, on a machine that does much else.
_PATIENCE = 600
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")  # one that does not fit is no news


def path() -> Path | None:
    """Where the archive for this Java and this Spark is, or would be; None when Java does not say which it is."""
    try:
        said = (jvm.java_home() / "release").read_text()
    except OSError:
        return None
    found = re.search('JAVA_(?:RUNTIME_)?VERSION="([^"]+)"', said)
    return found and Path(sys.prefix) / f"spark-classes-{version('pyspark')}-java-{found[1]}.jsa"


def is_there() -> bool:
    """Whether there is one, made after Spark was installed."""
    made = path()
    return made is not None and made.exists() and made.stat().st_mtime > (jvm.spark_home() / "jars").stat().st_mtime


def flags() -> list[str]:
    """What tells a JVM to use it; nothing while there is none."""
    return [f"-XX:SharedArchiveFile={path()}", *_QUIET] if is_there() else []


def make() -> None:
    """Run an analysis, and have Java keep the classes that it took. Raises BrokerError and OSError.

    A file that was not written to its end would end every JVM that maps it: so it is tried before it gets its name.
    """
    made = path()
    if made is None:
        raise BrokerError("Java does not say which one it is")
    staged = made.with_name(f".{made.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            _run(Path(folder), staged)
        mapped = [f"-XX:SharedArchiveFile={staged}", "-Xshare:on", "-XX:+VerifySharedSpaces", "-version"]
        tried = subprocess.run([*jvm.command(), *mapped], capture_output=True, text=True, timeout=_PATIENCE)
        if tried.returncode:
            raise BrokerError(f"what Java wrote it does not read: {tried.stdout.strip()[:200]}")
        for older in made.parent.glob("spark-classes-*.jsa"):
            older.unlink()
        staged.rename(made)
    finally:
        staged.unlink(missing_ok=True)


def _run(folder: Path, staged: Path) -> None:
    from analytics import spark_server  # which asks for the flags above
    from analytics.session import connected
    from analytics.warming import warm_up

    variables = {"SLUICE_DATA": str(folder), "SLUICE_SPARK_PORT": str(_free_port()), "REDIS_URL": "unix:///nowhere"}
    environment = Environment.read(variables)
    writing = [f"-XX:ArchiveClassesAtExit={staged}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    command, own = spark_server.prepare(environment, writing)
    server = subprocess.Popen(
        command, env={**os.environ, **own}, cwd=environment.spark, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        session = connected(environment, _PATIENCE)
        warm_up(environment)
        session.stop()
        server.send_signal(signal.SIGTERM)
        server.wait(_PATIENCE)
    finally:
        server.kill()
        server.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def main() -> None:
    """Make it if it is not there. That there is none is no reason for anything to fail."""
    try:
        if not is_there():
            sys.stdout.write("keeping Spark's classes as Java loads them, to start sooner: half a minute, once\n")
            sys.stdout.flush()
            make()
    except (BrokerError, OSError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"Spark will start slower than it could: {error}\n")


if __name__ == "__main__":
    main()
