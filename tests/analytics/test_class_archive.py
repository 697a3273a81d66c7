"""The archive of Spark's classes: used only where it fits, and never in parts. No Java runs here."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from analytics import class_archive, jvm
from brokerapp.errors import BrokerError

NAME = f"spark-classes-{version('pyspark')}-java-17.0.15.jsa"


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """Where packages are, with a Spark installed some time ago and a Java that says which it is."""
    (tmp_path / "spark/jars").mkdir(parents=True)
    os.utime(tmp_path / "spark/jars", (1_000_000, 1_000_000))
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.15"\n')
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(jvm, "java_home", lambda: tmp_path)
    monkeypatch.setattr(jvm, "spark_home", lambda: tmp_path / "spark")
    return tmp_path


def test_it_is_used_where_it_was_made_with_this_java_and_this_spark(prefix):
    assert class_archive.flags() == []
    (prefix / NAME).touch()
    assert class_archive.flags()[0] == f"-XX:SharedArchiveFile={prefix / NAME}"
    os.utime(prefix / "spark/jars")  # Spark was installed anew
    os.utime(prefix / NAME, (2_000_000, 2_000_000))
    assert class_archive.flags() == []
    (prefix / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert class_archive.path().name.endswith("java-21.0.1.jsa")
    (prefix / "release").unlink()
    assert class_archive.path() is None
    assert class_archive.flags() == []


def test_what_java_does_not_read_back_leaves_nothing_and_what_it_reads_takes_the_place_of_older_ones(
    prefix, monkeypatch
):
    older = prefix / "spark-classes-4.0.0-java-17.0.1.jsa"
    older.touch()
    monkeypatch.setattr(class_archive, "_run", lambda _, staged: staged.write_bytes(b"classes"))
    monkeypatch.setattr(jvm, "command", lambda *_: ["false"])
    with pytest.raises(BrokerError, match="does not read"):
        class_archive.make()
    assert [each.name for each in prefix.iterdir() if "jsa" in each.name] == [older.name]
    monkeypatch.setattr(jvm, "command", lambda *_: ["true"])
    class_archive.make()
    assert [each.name for each in prefix.iterdir() if "jsa" in each.name] == [NAME]


def test_that_there_is_none_fails_nothing(prefix, monkeypatch, capsys):
    def fails():
        raise subprocess.TimeoutExpired("java", 600)

    monkeypatch.setattr(class_archive, "make", fails)
    class_archive.main()
    assert "slower" in capsys.readouterr().err
