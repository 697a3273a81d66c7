"""Start the Spark Connect server in the foreground, one JVM for all analyses: `python -m analytics.spark.server`.

This process becomes the JVM, so its supervisor supervises the JVM itself: SIGTERM ends it. It listens on loopback only,
and only clients that know the token in `spark/token` may use it. SPARK_MASTER makes it the driver of a cluster; then
the data folder must be on storage that the cluster can access.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from analytics.spark import class_data_sharing, jvm
from brokerapp.errors import ConfigurationRefused
from brokerapp.system import atomic_files
from brokerapp.system.environment import PROJECT, Environment

#: Groups with texts (such as the newest message of each cause) that are hashed, a kilobyte each; more are sorted.
MAX_HASHED_GROUPS = 50_000
#: Files up to which the driver lists the archive itself, in a fraction of a millisecond each. By default Spark would
#: run a job with a task for each file before each analysis when there are more than 32.
MAX_LISTED_FILES = 10_000
#: Time for a Python worker to start and connect: Spark's 15 seconds are too few on a machine that is busy.
WORKER_CONNECT_TIMEOUT = "120s"
LOOPBACK = "127.0.0.1"
#: File in the folder `spark` that the JVM creates just before it ends for a full heap, so that clients learn why.
OUT_OF_MEMORY = "out-of-memory"
#: Log of garbage collection in the folder `spark`, and its size limit: some 10,000 pauses, more than the watchdog
#: needs, which reads all of it often. It is truncated at each start and at the limit.
GC_LOG, MAX_GC_LOG_BYTES = "gc.log", 1024 * 1024
#: File with the process id and start time of the server, in the folder `spark`.
PROCESS = "server.pid"
#: Whether clients record the source line of each column for errors, which takes longer than creating the column.
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
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(MAX_HASHED_GROUPS),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(MAX_LISTED_FILES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(environment.spark / "warehouse"),
        "spark.scheduler.mode": "FAIR",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch_folder(environment)),
        "spark.sql.python.filterPushdown.enabled": "true",
        CALL_SITES: "false",
        "spark.python.authenticate.socketTimeout": WORKER_CONNECT_TIMEOUT,
        # Executors of a cluster import the registered data source from our modules.
        "spark.executorEnv.PYTHONPATH": str(PROJECT),
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(environment.spark_port),
        "spark.connect.progress.reportInterval": "500ms",
        # An operation whose client was killed ends after the sum of these three.
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
    """Return the folder for Spark's temporary files; emptied at each start, as a killed JVM leaves its files behind."""
    return environment.spark / "scratch"


def ran_out_of_memory(environment: Environment, since: float) -> bool:
    """Return whether the server of this installation ran out of memory since a time in seconds since the epoch."""
    try:
        return (environment.spark / OUT_OF_MEMORY).stat().st_mtime >= since
    except FileNotFoundError:
        return False


def running_server(environment: Environment) -> int | None:
    """Return the process id of the server of this installation on this machine, if it runs."""
    try:
        pid, started = (environment.spark / PROCESS).read_text().split()
        return int(pid) if _start_time(int(pid)) == started else None
    except (OSError, ValueError):
        return None


def _start_time(pid: int) -> str:
    """Return the start time of a process in the kernel's ticks, which with its id is unique. Raises OSError."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def prepare(environment: Environment, flags: Sequence[str] | None = None) -> tuple[list[str], dict[str, str]]:
    """Create the server's folders and files; return its command line and environment variables.

    `flags` are options of the JVM, by default those for the fastest start.
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
        # Workers of Spark import the registered data source from our modules.
        "PYTHONPATH": os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH")))),
        "TZ": "UTC",
    }
    if environment.spark_master.startswith("local") or LOOPBACK in environment.spark_master:
        # Needed where the host's name does not resolve. Executors on other hosts could not reach loopback.
        variables["SPARK_LOCAL_IP"] = LOOPBACK
    pauses = f"-Xlog:gc:file={environment.spark / GC_LOG}:utctime:filecount=1,filesize={MAX_GC_LOG_BYTES}"
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
    atomic_files.replace(environment.spark / PROCESS, f"{os.getpid()} {_start_time(os.getpid())}".encode())
    os.execve(command[0], command, {**os.environ, **variables})


if __name__ == "__main__":
    main()
