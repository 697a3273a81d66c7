"""The JVM that Spark runs in: which Java, and the command that starts it.

Spark's own script starts a JVM to find the command for the next one, which costs a second: what it would say is here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from brokerapp.errors import ConfigurationRefused

JAVA_MINIMUM = 17
HEAP = "1g"  # 10 million events join in half of it; with more the JVM only grows (docs/data.md)
SUBMIT = "org.apache.spark.deploy.SparkSubmit"
#: Packages of Java that Spark reaches into, as its launcher opens them.
_OPENED = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io",
    "java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
    "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)  # fmt: skip
_AS_LAUNCHED = (
    "-XX:+IgnoreUnrecognizedVMOptions", "--add-modules=jdk.incubator.vector",
    *(f"--add-opens={each}=ALL-UNNAMED" for each in _OPENED), "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled", "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED",
)  # fmt: skip
#: What ran so often is compiled again, with all care: 100 times as often as Java's own measure, by which the compiler
#: takes a third of the CPU of a start and of the first analyses. What goes through millions of events is soon there;
#: code with loops that is called once a batch of rows, too, since few calls suffice for it as before.
_COMPILED_LATER = (
    "-XX:Tier4InvocationThreshold=500000", "-XX:Tier4CompileThreshold=1500000", "-XX:Tier4BackEdgeThreshold=4000000",
)  # fmt: skip
_OURS = (
    f"-Xmx{HEAP}", "-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError", "-Djava.net.preferIPv4Stack=true",
    "-Duser.timezone=UTC",
)  # fmt: skip


def command(*flags: str) -> list[str]:
    """Java with Spark on its class path and these flags beside its own; the class to run follows."""
    return [str(java_home() / "bin/java"), "-cp", class_path(), *_OURS, *_COMPILED_LATER, *_AS_LAUNCHED, *flags]


def class_path() -> str:
    """As Spark's launcher has it: a folder that is not there, the logging interface, and then all."""
    home = spark_home()
    logging = sorted((home / "jars").glob("slf4j-api-*.jar"))
    return os.pathsep.join([f"{home}/conf/", *map(str, logging), f"{home}/jars/*"])


def java_home() -> Path:
    """Return the Java to run on: JAVA_HOME, the one on PATH or the newest installed; raises ConfigurationRefused."""
    named = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = [Path(found).resolve().parent.parent] if (found := shutil.which("java")) else []
    installed = sorted(Path("/usr/lib/jvm").glob("*/"), reverse=True)
    for home in (*named, *on_path, *installed):
        if _java_version(home) >= JAVA_MINIMUM:
            return home
    raise ConfigurationRefused(f"Spark needs Java {JAVA_MINIMUM} or later: none is on PATH or in /usr/lib/jvm")


def _java_version(home: Path) -> int:
    """0 where there is none. What Java says of itself stands in a file; older ones must be started to say it."""
    with suppress(OSError):
        if found := re.search(r'JAVA_VERSION="(\d+)', (home / "release").read_text()):
            return int(found[1]) if os.access(home / "bin/java", os.X_OK) else 0
    try:
        said = subprocess.run([home / "bin/java", "-version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', said.stderr)
    return int(found[1]) if found else 0


def spark_home() -> Path:
    """Where the pyspark package keeps Spark."""
    return Path(importlib.util.find_spec("pyspark").submodule_search_locations[0])
