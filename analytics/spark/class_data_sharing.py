"""Find the archive of Spark's classes, with which Spark starts faster.

Loading, checking and linking some 20,000 classes is most of the cost of a start of Spark. Java can keep the outcome in
a file (application class-data sharing) and map it at the next start. The file is stored beside the packages, for one
Java, one Spark and their location; `make setup` creates it once (build_class_archive.py). Where that fails, a note
beside it says so, and it is not tried again. Without the file a start is slower and otherwise the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path

from analytics.spark import jvm

_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")  # a file that does not fit is no error


def path() -> Path | None:
    """Return the path of the archive for this Java and this Spark, existing or not; None for an unknown Java.

    Java accepts it only for the class path it was made with, so the name contains the location of Spark.
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


def archive_exists() -> bool:
    """Return whether the archive exists and is newer than the Spark installation."""
    archive = path()
    return archive is not None and _is_newer_than_spark(archive)


def has_failed() -> bool:
    """Return whether creating the archive failed before, for this Java and this Spark."""
    archive = path()
    return archive is not None and _is_newer_than_spark(failure_note(archive))


def flags() -> list[str]:
    """Return the JVM options that use the archive; none while it does not exist."""
    return [f"-XX:SharedArchiveFile={path()}", *_QUIET] if archive_exists() else []


def failure_note(archive: Path) -> Path:
    """Return the path of the note that creating an archive failed."""
    return archive.with_suffix(".none")


def _is_newer_than_spark(file: Path) -> bool:
    """Return whether the file is newer than the Spark installation."""
    return file.exists() and file.stat().st_mtime > (jvm.spark_home() / "jars").stat().st_mtime
