"""The Spark Connect server, `python -m analytics.spark_server`: one JVM that runs every analysis, in the foreground.

This process becomes the JVM, so whoever supervises it holds the JVM itself: SIGTERM ends it. It listens on loopback
only, and only clients that know the token in `spark/token` may use it. SPARK_MASTER makes it the driver of a cluster;
nothing else changes, but the data folder must then be on storage that the cluster sees.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from analytics import durable
from brokerapp.environment import PROJECT, Environment
from brokerapp.errors import ConfigurationRefused

JAVA_MINIMUM = 17
HEAP = "1g"  # 10 million events join in half of it; with more the JVM only grows (docs/data.md)
#: Groups that keep texts (the newest message of each cause, say) which are hashed, a kilobyte each; more are sorted.
OBJECT_GROUPS = 50_000
#: Files of an archive up to which the server looks at each by itself, in a fraction of a millisecond; for more than 32
#: Spark would run a job of as many tasks, before each analysis.
LISTED_FILES = 10_000
LOOPBACK = "127.0.0.1"
#: Touched in the folder `spark` when the heap is full, just before the server ends: so its clients learn why it did.
OUT_OF_MEMORY = "out-of-memory"
#: Whether clients note, for errors, which line made each column: looking it up takes longer than making the column.
CALL_SITES = "spark.python.sql.dataFrameDebugging.enabled"
_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{3}
"""


def settings(environment: Environment) -> dict[str, str]:
    """Spark's configuration."""
    return {
        "spark.ui.enabled": "false",
        "spark.driver.memory": HEAP,
        "spark.driver.extraJavaOptions": (
            "-XX:+UseParallelGC -XX:+ExitOnOutOfMemoryError -Djava.net.preferIPv4Stack=true -Duser.timezone=UTC "
            f'"-XX:OnOutOfMemoryError=touch {OUT_OF_MEMORY}"'
        ),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(OBJECT_GROUPS),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(LISTED_FILES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(environment.spark / "warehouse"),
        "spark.scheduler.mode": "FAIR",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch(environment)),
        "spark.sql.python.filterPushdown.enabled": "true",
        CALL_SITES: "false",
        # Executors of a cluster import what was registered from our modules.
        "spark.executorEnv.PYTHONPATH": str(PROJECT),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(environment.spark_port),
        "spark.connect.progress.reportInterval": "500ms",
        # An operation whose client was killed ends after these three together.
        "spark.connect.execute.reattachable.senderMaxStreamDuration": "20s",
        "spark.connect.execute.manager.detachedTimeout": "10s",
        "spark.connect.execute.manager.maintenanceInterval": "5s",
    }


def token(environment: Environment) -> str:
    """What clients must know; made at the first start, readable by the owner only."""
    path = environment.spark / "token"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        durable.make_folder(environment.spark)
        durable.replace(path, secrets.token_urlsafe(32).encode(), mode=0o600)
        return path.read_text()


def scratch(environment: Environment) -> Path:
    """Where Spark spills; emptied at each start, because a killed JVM leaves its files behind."""
    return environment.spark / "scratch"


def ran_out_of_memory(environment: Environment, since: float) -> bool:
    """Whether a server of this installation ended for want of memory after this moment (seconds since the epoch)."""
    try:
        return (environment.spark / OUT_OF_MEMORY).stat().st_mtime >= since
    except FileNotFoundError:
        return False


def java_home() -> Path:
    """The Java to run on: JAVA_HOME, the one on PATH or the newest installed; raises ConfigurationRefused."""
    named = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = [Path(found).resolve().parent.parent] if (found := shutil.which("java")) else []
    installed = sorted(Path("/usr/lib/jvm").glob("*/"), reverse=True)
    for home in (*named, *on_path, *installed):
        if _java_version(home) >= JAVA_MINIMUM:
            return home
    raise ConfigurationRefused(f"Spark needs Java {JAVA_MINIMUM} or later: none is on PATH or in /usr/lib/jvm")


def _java_version(home: Path) -> int:
    try:
        said = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', said.stderr)
    return int(found[1]) if found else 0


def spark_home() -> Path:
    """Where the pyspark package keeps Spark."""
    return Path(importlib.util.find_spec("pyspark").submodule_search_locations[0])


def prepare(environment: Environment) -> tuple[list[str], dict[str, str]]:
    """Make the server's folders and files; its command line and environment variables."""
    home, configuration = spark_home(), environment.spark / "conf"
    shutil.rmtree(scratch(environment), ignore_errors=True)
    for folder in (configuration, scratch(environment)):
        durable.make_folder(folder)
    lines = (f"{name} {value}\n" for name, value in settings(environment).items())
    durable.replace(configuration / "spark-defaults.conf", "".join(lines).encode())
    durable.replace(configuration / "log4j2.properties", _LOGGING.encode())
    variables = {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(configuration),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token(environment),
        "PYSPARK_PYTHON": sys.executable,
        # Workers of Spark import what was registered from our modules.
        "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH")))),
        "TZ": "UTC",
    }
    if environment.spark_master.startswith("local") or LOOPBACK in environment.spark_master:
        # Where the host's name does not resolve nothing else helps; executors elsewhere could not reach loopback.
        variables["SPARK_LOCAL_IP"] = LOOPBACK
    command = [str(home / "bin/spark-submit"), "--class", _SERVER_CLASS, "--name", "sluice"]
    return [*command, "--master", environment.spark_master, "spark-internal"], variables


def main() -> None:
    """Become the server."""
    environment = Environment.read()
    try:
        command, variables = prepare(environment)
    except ConfigurationRefused as error:
        sys.exit(str(error))
    os.chdir(environment.spark)
    os.execve(command[0], command, {**os.environ, **variables})


if __name__ == "__main__":
    main()
