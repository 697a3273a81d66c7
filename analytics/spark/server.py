"""The Spark Connect server, `python -m analytics.spark.server`: one JVM that runs every analysis, in the foreground.

This process becomes the JVM, so whoever supervises it holds the JVM itself: SIGTERM ends it. It listens on loopback
only, and only clients that know the token in `spark/token` may use it. SPARK_MASTER makes it the driver of a cluster;
nothing else changes, but the data folder must then be on storage that the cluster sees.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from analytics.archive import atomic_files
from analytics.spark import class_data_sharing, jvm
from brokerapp.errors import ConfigurationRefused
from brokerapp.system.environment import PROJECT, Environment

#: Groups that keep texts (the newest message of each cause, say) which are hashed, a kilobyte each; more are sorted.
OBJECT_GROUPS = 50_000
#: Files of an archive up to which the server looks at each by itself, in a fraction of a millisecond; for more than 32
#: Spark would run a job of as many tasks, before each analysis.
LISTED_FILES = 10_000
LOOPBACK = "127.0.0.1"
#: Touched in the folder `spark` when the heap is full, just before the server ends: so its clients learn why it did.
OUT_OF_MEMORY = "out-of-memory"
#: Where the server notes each pause in which it collects garbage, in the folder `spark`; begun anew at each start, and
#: when it has so many bytes: some 10,000 pauses, more than the watchdog looks back at, and it reads all of them often.
PAUSES, MOST_PAUSES = "gc.log", 1024 * 1024
#: Holds which process the server is, in the folder `spark`.
PROCESS = "server.pid"
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
    """Return Spark's configuration for this environment."""
    return {
        "spark.ui.enabled": "false",
        "spark.driver.memory": jvm.HEAP,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(OBJECT_GROUPS),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(LISTED_FILES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(environment.spark / "warehouse"),
        "spark.scheduler.mode": "FAIR",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch_folder(environment)),
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
    """Return the token of clients; create it at the first start, readable by the owner only."""
    path = environment.spark / "token"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        atomic_files.make_folder(environment.spark)
        atomic_files.replace(path, secrets.token_urlsafe(32).encode(), mode=0o600)
        return path.read_text()


def scratch_folder(environment: Environment) -> Path:
    """Where Spark spills; emptied at each start, because a killed JVM leaves its files behind."""
    return environment.spark / "scratch"


def ran_out_of_memory(environment: Environment, since: float) -> bool:
    """Whether a server of this installation ended for want of memory after this moment (seconds since the epoch)."""
    try:
        return (environment.spark / OUT_OF_MEMORY).stat().st_mtime >= since
    except FileNotFoundError:
        return False


def running_server(environment: Environment) -> int | None:
    """Return the process id of the server of this installation on this machine, if it runs."""
    try:
        pid, started = (environment.spark / PROCESS).read_text().split()
        return int(pid) if _started(int(pid)) == started else None
    except (OSError, ValueError):
        return None


def _started(pid: int) -> str:
    """When a process started, in the kernel's own count: with its id that names it for good. Raises OSError."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def prepare(environment: Environment, flags: Sequence[str] | None = None) -> tuple[list[str], dict[str, str]]:
    """Make the server's folders and files; its command line and environment variables.

    `flags` are the JVM's own, by default those with which it starts soonest.
    """
    configuration = environment.spark / "conf"
    shutil.rmtree(scratch_folder(environment), ignore_errors=True)
    for folder in (configuration, scratch_folder(environment)):
        atomic_files.make_folder(folder)
    defaults, logging = configuration / "spark-defaults.conf", configuration / "log4j2.properties"
    atomic_files.replace(
        defaults, "".join(f"{name} {value}\n" for name, value in settings(environment).items()).encode()
    )
    atomic_files.replace(logging, _LOGGING.encode())
    variables = {
        "JAVA_HOME": str(jvm.java_home()),
        "SPARK_HOME": str(jvm.spark_home()),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token(environment),
        "PYSPARK_PYTHON": sys.executable,
        # Workers of Spark import what was registered from our modules.
        "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH")))),
        "TZ": "UTC",
    }
    if environment.spark_master.startswith("local") or LOOPBACK in environment.spark_master:
        # Where the host's name does not resolve nothing else helps; executors elsewhere could not reach loopback.
        variables["SPARK_LOCAL_IP"] = LOOPBACK
    pauses = f"-Xlog:gc:file={environment.spark / PAUSES}:utctime:filecount=1,filesize={MOST_PAUSES}"
    own = [f"-Dlog4j2.configurationFile={logging}", f"-XX:OnOutOfMemoryError=touch {OUT_OF_MEMORY}", pauses]
    asked = ["--properties-file", str(defaults), "--master", environment.spark_master, "--name", "sluice"]
    command = jvm.command(*own, *(class_data_sharing.flags() if flags is None else flags))
    return [*command, jvm.SUBMIT, *asked, "--class", _SERVER_CLASS, "spark-internal"], variables


def main() -> None:
    """Replace this process by the Spark server's."""
    environment = Environment.read()
    try:
        command, variables = prepare(environment)
    except ConfigurationRefused as error:
        sys.exit(str(error))
    os.chdir(environment.spark)
    atomic_files.replace(environment.spark / PROCESS, f"{os.getpid()} {_started(os.getpid())}".encode())
    os.execve(command[0], command, {**os.environ, **variables})


if __name__ == "__main__":
    main()
