"""`sluice upgrade` for a broker that runs without a console: upgrade the store in its data folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from brokerapp.backup.data_folder import check_decided
from brokerapp.store.server.embedded import open_store
from brokerapp.store.server.reading_copy import has_data, open_for_reading
from brokerapp.system.data_directory import NODE, DataDirectory, check_data_directory
from brokerapp.upgrades.plan import UpgradeFailed
from brokerapp.upgrades.run import Upgrade, add_options, exit_code, say, stopped_installation
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
    if folder.is_of_installation:
        raise UpgradeFailed(
            f"{folder.path} is of an installation with a console: use SLUICE_DATA={folder.path} {program}"
        )
    broker, url = folder.stored_broker()
    check_data_directory(folder.path, NODE)
    with stored(folder.path, url, folder.store, check=options.check) as opened:

        def backup(arguments: list[str]) -> int:
            return run_backup("brokerapp.backup.command_line", [*arguments, "--data", str(folder.path)], program)

        work = Upgrade(folder.path, lambda: [store_state(opened, broker)], backup, say)
        return work.check() if options.check else work.run(options)


@contextmanager
def stored(data: Path, url: str | None, store: Path, *, check: bool) -> Iterator[str | None]:
    """Yield the URL of the store of a data folder, None where it has none; `url` None: the embedded one in `store`.

    For a check nothing is written; else others are kept from the folder. Raises UpgradeFailed, StoreUnavailable, and
    ConfigurationRefused for a restored folder of which is not said yet what it is.
    """
    check_decided(data)
    if check:
        with open_for_reading(url, store) as opened:
            yield opened
        return
    with stopped_installation(data):
        if url is None and not has_data(store):
            yield None
            return
        with open_store(url, store, may_be_in_use=False) as opened:
            yield opened


def run_backup(module: str, arguments: Sequence[str], program: str) -> int:
    """Call the `backup` command of a module; return its exit code. Raises UpgradeFailed when it is not installed."""
    try:
        command = import_module(module)
    except ModuleNotFoundError as error:
        raise UpgradeFailed(f"no backup can be made here ({error}): make one yourself and use --no-backup") from error
    code: int = command.backup(list(arguments), program)
    return code
