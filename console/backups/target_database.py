"""A PostgreSQL database that a backup is restored into: claim it, and empty it again where the restore does not end.

A table says which restore fills the database. If that one is killed, the next restore into the same data folder removes
what it did. The table is removed when the restore is complete, and no backup has it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from brokerapp.backup.data_folder import RestoreOwner
from brokerapp.errors import BackupRefused
from console.backups.postgresql import program_path, running

#: The table that says which restore fills the database.
MARK = "sluice_restore"
#: Tables, views and sequences of users, without those that an extension brought.
_RELATIONS = """
SELECT n.nspname AS schema, c.relname AS name, c.relkind AS kind
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
)
ORDER BY kind, schema, name"""
#: What removes them. What depends on one that was removed before is gone.
_REMOVE = f"""
DO $$ DECLARE each record; BEGIN
FOR each IN {_RELATIONS} LOOP
    EXECUTE format(
        'DROP %s IF EXISTS %I.%I CASCADE',
        CASE each.kind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
        each.schema, each.name
    );
END LOOP;
END $$"""

Settings = Mapping[str, Any]


def check_empty(settings: Settings) -> None:
    """Raise BackupRefused for a database that holds something, unless a restore marked it."""
    found = _relations(settings)
    if found and MARK not in found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise BackupRefused(
            f"the database {settings['NAME']} is not empty, it holds {', '.join(found[:3])}{more}: name an empty one "
            "with DATABASE_URL"
        )


@contextmanager
def claimed(settings: Settings, owner: RestoreOwner, former: RestoreOwner | None) -> Iterator[None]:
    """Claim an empty database, or what a killed restore left; remove what is in it if the context fails.

    Raises BackupRefused.
    """
    check_empty(settings)
    if MARK in _relations(settings):
        filled_by = _asked(settings, f"TABLE {MARK}")
        if former is None or filled_by != [former.id]:
            raise BackupRefused(
                f"another restore fills the database {settings['NAME']}, or was killed as it did: restore into the "
                "data folder of that one, or name an empty database with DATABASE_URL"
            )
        _asked(settings, _REMOVE)
    _asked(settings, f"CREATE TABLE {MARK} AS SELECT '{owner.id}'::text AS owner")
    try:
        yield
    except BaseException:
        with suppress(BackupRefused):  # the mark says that it is incomplete
            _asked(settings, _REMOVE)
        raise
    with suppress(BackupRefused):  # nothing reads it in a database that is complete
        _asked(settings, f"DROP TABLE {MARK}")


def _relations(settings: Settings) -> list[str]:
    """Return the names of what is in a database."""
    return [line.split("|")[1] for line in _asked(settings, _RELATIONS)]


def _asked(settings: Settings, statement: str) -> list[str]:
    """Return the lines of the answer to a statement."""
    command = [program_path("psql"), "-XAtq", "--no-password", "--set=ON_ERROR_STOP=1", f"--command={statement}"]
    answer = b""
    with running(command, dict(settings), stdout=subprocess.PIPE) as program:
        assert program.process.stdout is not None
        while block := program.read(program.process.stdout):
            answer += block
        program.end(f"the database {settings['NAME']} cannot be used")
    return answer.decode().splitlines()
