"""`sluice upgrade` for an installation with a console: upgrade its store, database and archive."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import django
from django.core.exceptions import ImproperlyConfigured

from brokerapp.system.data_directory import check_data_directory
from brokerapp.system.environment import Environment
from brokerapp.upgrades.command_line import run_backup, stored
from brokerapp.upgrades.command_line import upgrade as upgrade_broker
from brokerapp.upgrades.plan import PartState, UpgradeFailed
from brokerapp.upgrades.run import Upgrade, add_options, exit_code, say
from brokerapp.upgrades.store import store_state


def upgrade(arguments: list[str], program: str) -> int:
    """Upgrade what an earlier version stored to the formats of this one; return the exit code."""
    parser = ArgumentParser(
        prog=program,
        description="Upgrade what an earlier version stored: store, database and archive. "
        "Sluice must be stopped, but for --check.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="data folder of a broker that runs without the console, that of runbroker "
        "(default: the installation in SLUICE_DATA)",
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    if options.data is not None:
        return upgrade_broker(arguments, program)
    return exit_code(lambda: _upgrade(options, program))


def _upgrade(options: Namespace, program: str) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    environment = Environment.read()
    data = environment.data
    check_data_directory(data)
    if not data.exists():
        say(f"Nothing to upgrade: {data} does not exist.")
        return 0
    set_up_django()
    from analytics.archive.upgrade.steps import archive_states
    from console.upgrades.database import database_state, reading_only  # whose models need the settings

    broker = environment.broker_name
    url = None if environment.owns_store else environment.redis_url
    with ExitStack() as context:
        opened = context.enter_context(stored(data, url, environment.store, check=options.check))
        if options.check:
            context.enter_context(reading_only())

        def inspect() -> Sequence[PartState]:
            return [store_state(opened, broker), database_state(), *archive_states(environment)]

        def backup(arguments: list[str]) -> int:
            # Recorded traffic only if it is about to be rewritten: it may be large.
            rewrites = any(each.steps for each in archive_states(environment))
            more = ["--with-archive"] if rewrites else []
            return run_backup("console.backups.command_line", [*arguments, *more], program)

        work = Upgrade(data, inspect, backup, say)
        return work.check() if options.check else work.run(options)


def set_up_django() -> None:
    """Load Django's settings. Raises UpgradeFailed for a variable that they cannot use."""
    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise UpgradeFailed(str(error)) from error
