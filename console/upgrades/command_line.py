"""`sluice upgrade` for an installation with a console: upgrade its store, database and archive."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import django

from brokerapp.store.server.embedded import open_store
from brokerapp.system.environment import Environment
from brokerapp.upgrades.command_line import run_backup
from brokerapp.upgrades.command_line import upgrade as upgrade_broker
from brokerapp.upgrades.plan import PartState
from brokerapp.upgrades.run import Upgrade, add_options, exit_code, say, stopped_installation
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
    if not environment.data.exists():
        say(f"nothing to upgrade: {environment.data} does not exist")
        return 0
    with ExitStack() as context:
        if not options.check:
            context.enter_context(stopped_installation(environment.data))
        external = None if environment.owns_store else environment.redis_url
        url = context.enter_context(open_store(external, environment.store, may_be_in_use=options.check))
        django.setup()
        from analytics.archive.upgrade.steps import archive_states
        from console.upgrades.database import database_state  # whose models need the settings

        def inspect() -> Sequence[PartState]:
            return [store_state(url, environment.broker_name), database_state(), *archive_states(environment)]

        def backup(arguments: list[str]) -> int:
            # Recorded traffic only if it is about to be rewritten: it may be large.
            rewrites = any(each.steps for each in archive_states(environment))
            more = ["--with-archive"] if rewrites else []
            return run_backup("console.backups.command_line", [*arguments, *more], program)

        work = Upgrade(environment.data, inspect, backup, say)
        return work.check() if options.check else work.run(options)
