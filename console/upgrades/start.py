"""Check, when Sluice starts, that this version can use what is stored, and upgrade what takes no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from analytics.archive.format_file import check_archives
from brokerapp.errors import StoreUnavailable
from brokerapp.system.checkout import command
from brokerapp.system.environment import Environment
from brokerapp.upgrades.store import check_store
from console.upgrades.database import check_current, check_known, migrate, record_version

Say = Callable[[str], None]


def prepare_start(environment: Environment, say: Say) -> None:
    """Check what is stored before any process starts, and migrate the database.

    Raises ConfigurationRefused for what a newer version wrote, and for what `sluice upgrade` must upgrade first.
    """
    earlier = check_archives(environment.archive)
    state = check_known()
    if not environment.owns_store:
        with suppress(StoreUnavailable):  # nodes wait for it, and check it then
            check_store(environment.redis_url, environment.broker_name)
    if state.applied and state.pending:
        say(f"upgrading the database: {len(state.pending)} migrations")
    if state.pending:
        migrate(lambda line: say(f"  {line}") if state.applied else None)
    record_version()
    _record_formats(earlier, say)


def _record_formats(archives: Sequence[Path], say: Say) -> None:
    """Record the format of archives without a record, unless there are files to be rewritten in them."""
    for broker in archives:
        # Here: it loads Arrow, which the supervisor does not need else.
        from analytics.archive.upgrade.rewriting import record_current_format

        if hours := record_current_format(broker):
            name = unquote(broker.name.removeprefix("broker="))
            say(
                f"an earlier version wrote {hours:,} hours of the archive of broker {name}, which can be read as they "
                f"are; `{command('upgrade')}` rewrites them"
            )


def check_installation(environment: Environment) -> None:
    """Check archive and database when a web process starts, which upgrades nothing. Raises ConfigurationRefused."""
    check_archives(environment.archive)
    check_current()
