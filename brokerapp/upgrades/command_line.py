"""`sluice upgrade` for a broker that runs without a console: upgrade the store in its data folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from brokerapp.store.server.embedded import open_store
from brokerapp.system.data_directory import DataDirectory
from brokerapp.upgrades.run import Upgrade, UpgradeFailed, add_options, exit_code, say
from brokerapp.upgrades.store import store_state


def upgrade(arguments: list[str], program: str) -> int:
    """Upgrade the store of a broker's data folder to the formats of this version; return the exit code."""
    parser = ArgumentParser(prog=program, description="Upgrade what an earlier version stored.")
    parser.add_argument("--data", type=Path, required=True, help="data folder of the broker, that of runbroker")
    add_options(parser)
    options = parser.parse_args(arguments)
    return exit_code(lambda: _upgrade(options, program))


def _upgrade(options: Namespace, program: str) -> int:
    folder = DataDirectory(options.data.resolve())
    broker, url = folder.stored_broker()
    with open_store(url, folder.store, may_be_in_use=options.check) as opened:

        def backup(arguments: list[str]) -> int:
            return run_backup("brokerapp.backup.command_line", [*arguments, "--data", str(folder.path)], program)

        work = Upgrade(folder.path, lambda: [store_state(opened, broker)], backup, say)
        return work.check() if options.check else work.run(options)


def run_backup(module: str, arguments: Sequence[str], program: str) -> int:
    """Call the `backup` command of a module; return its exit code. Raises UpgradeFailed when it is not installed."""
    try:
        command = import_module(module)
    except ModuleNotFoundError as error:
        raise UpgradeFailed(f"no backup can be made here ({error}): make one yourself and use --no-backup") from error
    code: int = command.backup(list(arguments), program)
    return code
