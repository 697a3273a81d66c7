"""Compare the console's database with the migrations of this version, and migrate it.

Django records which migrations a database has. One that has others than this version knows was used by a newer
version: this one refuses it, since its tables may be different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from brokerapp.errors import BrokerError, ConfigurationRefused
from brokerapp.system.checkout import command
from brokerapp.upgrades.plan import PartState, PlannedStep, Report
from brokerapp.version import VERSION
from console.upgrades.models import UsedVersion

#: Migrations that a sentence names; of more it says how many.
NAMED = 3
#: The number of PostgreSQL's advisory lock that a migration holds; any other program of this database may know it.
MIGRATION_LOCK = 7_585_423


class DatabaseUnavailable(BrokerError):
    """The database does not answer."""

    code = "database-unavailable"


class DatabaseInUse(BrokerError):
    """Another process upgrades the database."""

    code = "database-in-use"


@dataclass(frozen=True, slots=True)
class MigrationState:
    """How a database differs from this version: migrations by their names, `app.number_name`."""

    applied: int
    pending: tuple[str, ...]
    unknown: tuple[str, ...]
    last_version: str  #: of Sluice that used it; "": not known, or none

    @property
    def refusal(self) -> str:
        """Return why this version cannot use the database; "" if it can."""
        if not self.unknown:
            return ""
        by = f"Sluice {self.last_version}" if self.last_version else "a newer version of Sluice"
        return (
            f"the database was last used by {by} and has migrations that Sluice {VERSION} does not know "
            f"({_named(self.unknown)}): use that version or a later one, or restore a backup that was made before the "
            "upgrade"
        )


def read_migrations() -> MigrationState:
    """Return how the database differs from this version. Raises DatabaseUnavailable."""
    try:
        executor = MigrationExecutor(connection)
        loader = executor.loader
        pending = executor.migration_plan(loader.graph.leaf_nodes())
        last_version = _last_version()
    except DatabaseError as error:
        raise DatabaseUnavailable(f"the database cannot be read: {str(error).strip()}") from error
    on_disk = loader.disk_migrations or {}
    known = {*on_disk, *(each for migration in on_disk.values() for each in migration.replaces)}
    applied = [key for key in loader.applied_migrations if key[0] in loader.migrated_apps]
    unknown = sorted(".".join(key) for key in applied if key not in known)
    return MigrationState(
        len(applied), tuple(f"{each.app_label}.{each.name}" for each, _ in pending), tuple(unknown), last_version
    )


def _last_version() -> str:
    if UsedVersion._meta.db_table not in connection.introspection.table_names():
        return ""
    found = UsedVersion.objects.order_by("-pk").first()
    return "" if found is None else found.version


def check_known() -> MigrationState:
    """Return the state of the database. Raises ConfigurationRefused for one that a newer version changed."""
    state = read_migrations()
    if state.refusal:
        raise ConfigurationRefused(state.refusal)
    return state


def check_current() -> None:
    """Raise ConfigurationRefused unless the database has exactly the migrations of this version."""
    state = check_known()
    if state.pending:
        raise ConfigurationRefused(
            f"the database lacks migrations of Sluice {VERSION} ({_named(state.pending)}): stop Sluice and run "
            f"`{command('upgrade')}`"
        )
    record_version()


def _sqlite_file() -> Path | None:
    """Return the file of the database; None for PostgreSQL, and for one in memory."""
    name = str(connection.settings_dict["NAME"])
    return Path(name) if connection.vendor == "sqlite" and name.startswith("/") else None


@contextmanager
def reading_only() -> Iterator[None]:
    """Change no file of the database while the context is open: SQLite would finish what a killed process wrote."""
    file = _sqlite_file()
    if file is None:
        yield
        return
    log = file.with_name(f"{file.name}-wal")
    # With a log behind it others may be writing; without one SQLite would create it even for reading.
    mode = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    options = connection.settings_dict["OPTIONS"]
    changed = {"NAME": f"file:{quote(str(file))}?{mode}", "OPTIONS": {"timeout": options.get("timeout", 5)}}
    former = {name: connection.settings_dict[name] for name in changed}
    connection.close()
    connection.settings_dict.update(changed)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(former)


def _is_missing() -> bool:
    """Return whether there is no file of SQLite yet: to open it would create it."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite":
        return False
    path = unquote(urlsplit(name).path) if name.startswith("file:/") else name
    return path.startswith("/") and not Path(path).exists()


def database_state() -> PartState:
    """Return the state of the database as a part of an upgrade; an empty one is left to the start of Sluice."""
    if _is_missing():
        return PartState("database", "", "")
    state = read_migrations()
    if not state.applied:
        return PartState("database", "", "")
    used = f", last used by Sluice {state.last_version}" if state.last_version else ""
    found = f"{state.applied} migrations{used}"
    steps = [PlannedStep(f"database: apply {_named(state.pending)}", migrate)] if state.pending else []
    supported = f"{state.applied - len(state.unknown) + len(state.pending)} migrations"
    return PartState("database", found, supported, tuple(steps), state.refusal)


def migrate(report: Report) -> None:
    """Apply all pending migrations, each in a transaction of its own, and record the version.

    Raises DatabaseUnavailable, and DatabaseInUse where another process migrates the same database.
    """
    with _alone():
        try:
            call_command("migrate", verbosity=1, interactive=False, stdout=_Lines(report), no_color=True)
            record_version()
        except DatabaseError as error:
            raise DatabaseUnavailable(f"the database cannot be upgraded: {str(error).strip()}") from error


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes from migrating a database of PostgreSQL, which may be on other machines.

    The lock ends with the connection, also when this process is killed. SQLite's file is in a locked data folder.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
        (is_free,) = cursor.fetchone()
        if not is_free:
            raise DatabaseInUse("another process upgrades this database: wait until it is done, then try again")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


def record_version() -> None:
    """Record that this version uses the database, once for each change of versions."""
    if _last_version() != VERSION:
        UsedVersion.objects.create(version=VERSION)


def _named(migrations: Sequence[str]) -> str:
    names = ", ".join(migrations[:NAMED])
    return names if len(migrations) <= NAMED else f"{names} and {len(migrations) - NAMED} more"


class _Lines:
    """Takes the output of Django's command, and reports each line about a migration when it is complete."""

    def __init__(self, report: Report) -> None:
        self._report, self._line = report, ""

    def write(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip().startswith("Applying"):
                self._report(line.strip())

    def flush(self) -> None:
        """Do nothing: an incomplete line waits for its end."""
