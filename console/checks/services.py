"""Check what the console needs besides the broker: database, Java and Spark, workers, mail server."""

from __future__ import annotations

import smtplib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from brokerapp.checks.installation import Installation
from brokerapp.checks.results import CHECK_LATER, Finding
from brokerapp.errors import ConfigurationRefused
from brokerapp.system import extras

#: Seconds that a worker, the mail server and a Spark server elsewhere have to answer.
WORKER_SECONDS, MAIL_SECONDS, SPARK_SECONDS = 2.0, 5.0, 4.0
#: Names of the workers that the installation starts, before the host name; without the extra `analytics` the first.
WORKERS = ("default", "spark")
#: Port of a Spark Connect server whose URL names none.
SPARK_PORT = 15002
NOT_STARTED = "Sluice was not started yet: the data directory does not exist."


# -- database


@dataclass(frozen=True, slots=True)
class DatabaseReading:
    """The database of the console; `skipped` and `problem` say why nothing else is known."""

    name: str = ""
    version: str = ""
    unapplied: tuple[str, ...] = ()  #: migrations
    unknown: tuple[str, ...] = ()  #: migrations of a newer version that were applied
    skipped: str = ""
    problem: str = ""


def measure_database(here: Installation) -> DatabaseReading:
    """Connect, and compare the migrations that were applied with those that there are. Nothing is migrated."""
    if not here.data.exists():
        return DatabaseReading(skipped=NOT_STARTED)
    from django.db import DatabaseError, connections

    from console.upgrades.database import DatabaseUnavailable, read_migrations

    connection = connections["default"]
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite" and not Path(name).exists():  # connecting would make the file
        return DatabaseReading(skipped=f"{name} is created when Sluice starts.")
    try:
        connection.ensure_connection()
        migrations = read_migrations()
        version = ".".join(map(str, connection.get_database_version()))
    except (DatabaseError, DatabaseUnavailable, OSError) as error:
        return DatabaseReading(f"{connection.display_name}", problem=f"{error}".strip())
    finally:
        connection.close()
    return DatabaseReading(connection.display_name, version, migrations.pending, migrations.unknown)


def judge_database(found: DatabaseReading) -> Iterator[Finding]:
    """Judge whether the database can be reached, and has the tables of this version."""
    if found.skipped:
        yield Finding.skipped(found.skipped)
    elif found.problem:
        yield Finding.failure(
            f"{found.name} cannot be reached: {found.problem.splitlines()[0]}.", "Start it, or correct DATABASE_URL."
        )
    elif found.unapplied:
        yield Finding.warning(
            f"{found.name} {found.version} lacks {len(found.unapplied)} migrations, the first is {found.unapplied[0]}.",
            "Start Sluice, which migrates it.",
        )
    elif found.unknown:
        yield Finding.failure(
            f"{found.name} {found.version} has migrations of a newer version: {', '.join(found.unknown)}.",
            "Install the version of Sluice that was used before, or restore a backup.",
        )
    else:
        yield Finding.ok(f"{found.name} {found.version} answers and is migrated.")


# -- Spark


@dataclass(frozen=True, slots=True)
class SparkReading:
    """Java and Spark of this machine, or a Spark Connect server elsewhere."""

    java: str = ""
    spark: str = ""
    remote: str = ""
    skipped: str = ""
    problem: str = ""


def measure_spark(here: Installation) -> SparkReading:
    """Find Java and Spark, or connect to the server that is to be used."""
    assert here.environment is not None
    if not extras.is_installed(extras.ANALYTICS):
        return SparkReading(skipped=f"{extras.missing(extras.ANALYTICS, 'Analyses need')}.")
    if here.environment.spark_remote:
        parts = urlsplit(here.environment.spark_remote)
        remote = f"{parts.hostname}:{parts.port or SPARK_PORT}"
        try:
            socket.create_connection((parts.hostname, parts.port or SPARK_PORT), SPARK_SECONDS).close()
        except OSError as error:
            return SparkReading(remote=remote, problem=f"{error.strerror or error}")
        return SparkReading(remote=remote)
    from importlib import metadata

    from analytics.spark.jvm import java_home

    try:
        return SparkReading(str(java_home()), metadata.version("pyspark"))
    except ConfigurationRefused as error:
        return SparkReading(problem=str(error))


def judge_spark(found: SparkReading) -> Iterator[Finding]:
    """Judge whether analyses can run."""
    if found.skipped:
        yield Finding.skipped(found.skipped)
    elif found.remote and found.problem:
        yield Finding.failure(
            f"The Spark Connect server at {found.remote} does not answer: {found.problem}.",
            "Start it, or correct SPARK_REMOTE.",
        )
    elif found.problem:
        yield Finding.failure(
            f"{found.problem[0].upper()}{found.problem[1:]}: analyses cannot run.",
            "Install openjdk-17-jre-headless or a later one.",
        )
    elif found.remote:
        yield Finding.ok(f"The Spark Connect server at {found.remote} accepts connections.")
    else:
        yield Finding.ok(f"Spark {found.spark} on Java in {found.java}.")


# -- workers


@dataclass(frozen=True, slots=True)
class WorkerReading:
    """Which of the workers answered; `skipped` says why none was asked."""

    answered: tuple[str, ...] = ()
    expected: tuple[str, ...] = WORKERS
    skipped: str = ""
    problem: str = ""
    is_starting: bool = False  #: whether Sluice was started just now


def measure_workers(here: Installation) -> WorkerReading:
    """Ask the Celery workers whether they are there."""
    if not here.is_running:
        return WorkerReading(skipped="Workers are started with Sluice, which is stopped.")
    from celery import current_app
    from kombu.exceptions import OperationalError

    try:
        answers = current_app.control.ping(timeout=WORKER_SECONDS)
    except (OperationalError, OSError) as error:
        return WorkerReading(problem=str(error))
    answered = sorted(name.partition("@")[0] for each in answers for name in each)
    expected = WORKERS if extras.is_installed(extras.ANALYTICS) else WORKERS[:1]
    return WorkerReading(tuple(answered), expected, is_starting=here.is_starting)


def judge_workers(found: WorkerReading) -> Iterator[Finding]:
    """Judge whether each of the workers answered."""
    if found.skipped:
        yield Finding.skipped(found.skipped)
        return
    if found.problem:
        yield Finding.failure(f"Workers cannot be asked: {found.problem}.", "See whether the store answers.")
        return
    missing = [each for each in found.expected if each not in found.answered]
    if missing and found.is_starting:
        yield Finding.warning(f"Workers that do not answer yet: {', '.join(missing)}.", CHECK_LATER)
    elif missing:
        yield Finding.failure(
            f"Workers that do not answer: {', '.join(missing)}. Reports, alerts by mail or analyses wait.",
            "See the log files worker-*.log.",
        )
    else:
        yield Finding.ok(f"Workers that answer: {', '.join(found.answered)}.")


# -- mail


@dataclass(frozen=True, slots=True)
class MailReading:
    """The mail server; without an address mails are written to files."""

    address: str = ""
    offers_tls: bool = False
    wants_tls: bool = False
    problem: str = ""


def measure_mail(_here: Installation) -> MailReading:
    """Greet the mail server. No mail is sent, and nobody logs in."""
    from console.ops.mail_settings import MailServer

    try:
        server = MailServer.read()
    except ConfigurationRefused as error:
        return MailReading("SLUICE_MAIL", problem=str(error))
    if not server.host:
        return MailReading()
    address = f"{server.host}:{server.port}"
    kind = smtplib.SMTP_SSL if server.is_secure else smtplib.SMTP
    try:
        with kind(server.host, server.port, timeout=MAIL_SECONDS) as session:
            session.ehlo_or_helo_if_needed()
            return MailReading(address, session.has_extn("starttls"), server.becomes_secure)
    except (OSError, smtplib.SMTPException) as error:
        return MailReading(address, problem=str(error))


def judge_mail(found: MailReading) -> Iterator[Finding]:
    """Judge whether alerts and reports can be mailed."""
    if not found.address:
        yield Finding.skipped("No mail server is configured: mails are written to files in the folder outbox.")
    elif found.problem:
        yield Finding.failure(
            f"The mail server at {found.address} does not answer: {found.problem}.", "Start it, or correct SLUICE_MAIL."
        )
    elif found.wants_tls and not found.offers_tls:
        yield Finding.failure(
            f"The mail server at {found.address} does not offer STARTTLS: no mail is sent to it.",
            "Use smtps:// or a server with STARTTLS in SLUICE_MAIL.",
        )
    else:
        yield Finding.ok(f"The mail server at {found.address} answers.")
