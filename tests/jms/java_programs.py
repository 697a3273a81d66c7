"""Compile and run Java programs that use the real client of ActiveMQ."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
#: The client and what it needs, as Debian packages them.
JARS = tuple(
    Path("/usr/share/java") / f"{name}.jar"
    for name in (
        "activemq-client",
        "activemq-openwire-legacy",
        "geronimo-j2ee-management-1.1-spec",
        "geronimo-jms_1.1_spec",
        "geronimo-jta-1.2-spec",
        "hawtbuf",
        "slf4j-api",
        "slf4j-nop",
    )
)
#: `make test` installs them where there are packages.
IS_INSTALLED = shutil.which("javac") is not None and all(each.exists() for each in JARS)
needs_java_client = pytest.mark.skipif(
    not IS_INSTALLED,
    reason="the JDK or ActiveMQ's client is not installed: apt-get install default-jdk-headless libactivemq-java "
    "libgeronimo-jta-1.2-spec-java libslf4j-java",
)
_CLASS_PATH = ":".join(map(str, JARS))
#: A program runs for seconds: what optimizes code for hours is left out.
OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx600m")
#: Seconds that the compiler may take beside other tests.
_COMPILING = 120


def compile_programs(sources: Iterable[Path], folder: Path) -> None:
    """Compile Java sources into a folder."""
    subprocess.run(
        ["javac", "-nowarn", "-encoding", "UTF-8", "-d", folder, "-cp", _CLASS_PATH, *sources],
        check=True, timeout=_COMPILING,
    )  # fmt: skip


def java(main: str, folder: Path, *arguments: str) -> list[str]:
    """Return the command that runs a compiled program."""
    return ["java", *OPTIONS, "-cp", f"{folder}:{_CLASS_PATH}", main, *arguments]


def compile_program(name: str, folder: Path) -> list[str]:
    """Compile NAME.java of this folder into another one, and return the command that runs it."""
    compile_programs([HERE / f"{name}.java"], folder)
    return java(name, folder)
