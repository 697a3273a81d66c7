"""Compile and run Java programs that use the real client of ActiveMQ."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
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
#: What was compiled, in a folder for each content of the sources: compiling takes longer than most programs run.
_COMPILED = Path(sys.prefix) / "java-programs"


def compile_programs(*sources: Path) -> Path:
    """Compile Java sources, unless the same ones were compiled before, and return the folder of their classes."""
    folder = _COMPILED / _digest(sources)
    if not folder.exists():
        _COMPILED.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_COMPILED) as made:
            classes = Path(made) / "classes"
            subprocess.run(
                ["javac", "-nowarn", "-encoding", "UTF-8", "-d", classes, "-cp", _CLASS_PATH, *sources],
                check=True, timeout=_COMPILING,
            )  # fmt: skip
            try:
                classes.rename(folder)
            except OSError:
                if not folder.exists():  # else another process was faster
                    raise
    return folder


def _digest(sources: Iterable[Path]) -> str:
    """Hash what the classes depend on: the sources, the libraries, and the compiler."""
    tools = [Path(shutil.which("javac") or "").resolve(), *(each.resolve() for each in JARS)]
    content = [each.read_bytes() for each in sources]
    versions = [f"{each} {each.stat().st_mtime_ns}".encode() for each in tools]
    return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in (*content, *versions))).hexdigest()[:16]


def java(main: str, folder: Path, *arguments: str) -> list[str]:
    """Return the command that runs a compiled program."""
    return ["java", *OPTIONS, "-cp", f"{folder}:{_CLASS_PATH}", main, *arguments]


def compile_program(name: str) -> list[str]:
    """Compile NAME.java of this folder, and return the command that runs it."""
    return java(name, compile_programs(HERE / f"{name}.java"))
