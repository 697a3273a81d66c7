"""Find the Java that Spark runs on, and build the command that starts it.

Spark's own script starts a JVM only to compute this command, which costs a second.
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
#: Packages of Java that Spark's launcher opens for reflection.
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
#: Thresholds of the optimizing compiler (C2): 100 times Java's default, with which it takes a third of the CPU time of
#: a start and of the first analyses. Code that processes millions of events soon reaches them. So does code with loops
#: that is called once for each batch of rows, as the minimum of calls is unchanged.
_COMPILED_LATER = (
    "-XX:Tier4InvocationThreshold=500000", "-XX:Tier4CompileThreshold=1500000", "-XX:Tier4BackEdgeThreshold=4000000",
)  # fmt: skip
_OURS = (
    f"-Xmx{HEAP}", "-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError", "-Djava.net.preferIPv4Stack=true",
    "-Duser.timezone=UTC",
)  # fmt: skip


def command(*flags: str) -> list[str]:
    """Return the command of a JVM with Spark on its class path and additional flags; append the class to run."""
    return [str(java_home() / "bin/java"), "-cp", class_path(), *_OURS, *_COMPILED_LATER, *_AS_LAUNCHED, *flags]


def class_path() -> str:
    """Return the class path as Spark's launcher builds it: a missing folder, the logging interface, all jars."""
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
    """Return the major version of a Java, from its `release` file or by starting it; 0 if there is none."""
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
    """Return the folder of Spark within the pyspark package."""
    return Path(importlib.util.find_spec("pyspark").submodule_search_locations[0])
