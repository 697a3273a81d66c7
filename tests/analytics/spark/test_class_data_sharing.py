"""Test that the archive of Spark's classes is used only if it fits and is complete. No Java runs here."""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from analytics.requests.errors import SparkStopped
from analytics.spark import build_class_archive, class_data_sharing, jvm, server
from brokerapp.errors import BrokerError


def name_of(spark, java="17.0.15"):
    """What the archive for this Java and a Spark in this folder is called."""
    place = hashlib.sha256(str(spark).encode()).hexdigest()[:8]
    return f"spark-classes-{version('pyspark')}-java-{java}-{place}.jsa"


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
    ours = prefix / name_of(prefix / "spark")
    assert class_data_sharing.flags() == []
    ours.touch()
    assert class_data_sharing.flags()[0] == f"-XX:SharedArchiveFile={ours}"
    os.utime(prefix / "spark/jars")  # Spark was installed anew
    os.utime(ours, (2_000_000, 2_000_000))
    assert class_data_sharing.flags() == []
    (prefix / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert class_data_sharing.path().name == name_of(prefix / "spark", java="21.0.1")
    (prefix / "release").unlink()
    assert class_data_sharing.path() is None
    assert class_data_sharing.flags() == []


def test_one_that_was_copied_with_the_packages_is_not_taken_for_that_of_where_they_are_now(prefix, monkeypatch):
    (prefix / name_of(prefix / "spark")).touch()
    assert class_data_sharing.archive_exists()
    (prefix / "copy/spark/jars").mkdir(parents=True)
    os.utime(prefix / "copy/spark/jars", (1_000_000, 1_000_000))
    (prefix / "copy" / name_of(prefix / "spark")).touch()
    monkeypatch.setattr(sys, "prefix", str(prefix / "copy"))
    monkeypatch.setattr(jvm, "spark_home", lambda: prefix / "copy/spark")
    assert not class_data_sharing.archive_exists()


def test_what_java_does_not_read_back_leaves_nothing_and_what_it_reads_takes_the_place_of_the_oldest(
    prefix, monkeypatch
):
    older = [prefix / f"spark-classes-4.0.0-java-17.0.{number}.jsa" for number in (1, 2)]
    for number, each in enumerate(older):
        each.touch()
        os.utime(each, (number, number))
    monkeypatch.setattr(build_class_archive, "_run", lambda _, staged: staged.write_bytes(b"classes"))
    monkeypatch.setattr(jvm, "command", lambda *_: ["false"])
    with pytest.raises(BrokerError, match="does not read"):
        build_class_archive.make()
    assert _archives(prefix) == [each.name for each in older]
    monkeypatch.setattr(jvm, "command", lambda *_: ["true"])
    build_class_archive.make()
    assert _archives(prefix) == sorted([name_of(prefix / "spark"), older[1].name])


def _archives(prefix):
    return sorted(each.name for each in prefix.iterdir() if "jsa" in each.name)


@pytest.mark.parametrize(
    "error", [subprocess.TimeoutExpired("java", 600), SparkStopped("no memory"), ValueError("odd")]
)
def test_that_there_is_none_fails_nothing_and_is_not_tried_again_until_somebody_says_so(
    prefix, monkeypatch, capsys, error
):
    tried = []

    def fails():
        tried.append(error)
        raise error

    monkeypatch.setattr(build_class_archive, "make", fails)
    build_class_archive.main()
    assert "slower" in (said := capsys.readouterr().err)
    build_class_archive.main()
    assert tried == [error]
    assert not capsys.readouterr().err
    (note,) = prefix.glob("*.none")
    assert f"remove {note}" in said
    note.unlink()
    build_class_archive.main()
    assert tried == [error, error]


def test_a_server_that_ends_as_it_starts_is_not_waited_for(prefix, monkeypatch):
    monkeypatch.setattr(server, "prepare", lambda environment, _: (["false"], _folder(environment)))
    with pytest.raises(BrokerError, match="ended with code 1"):
        build_class_archive.make()
    assert not list(prefix.glob(".spark-classes-*"))


def _folder(environment):
    environment.spark.mkdir(parents=True)
    return {}


def test_which_java_it_is_stands_in_its_release_file(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.1"\n')
    assert jvm._java_version(tmp_path) == 0  # nothing to start
    (tmp_path / "bin/java").touch(mode=0o755)
    assert jvm._java_version(tmp_path) == 21
