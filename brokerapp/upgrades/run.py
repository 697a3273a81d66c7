"""Run an upgrade: check, confirm, back up, run the steps in order, verify."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from brokerapp.errors import BrokerError
from brokerapp.system.process_lock import DirectoryInUse, lock_directory, make_private_directory
from brokerapp.upgrades.journal import UpgradeJournal, UpgradeRecord
from brokerapp.upgrades.plan import PartState, all_steps, describe
from brokerapp.version import VERSION

#: Calls the command `backup` with these arguments and returns its exit code.
Backup = Callable[[list[str]], int]


class UpgradeFailed(BrokerError):
    """The upgrade was not run, or not to its end."""

    code = "upgrade-failed"


def add_options(parser: ArgumentParser) -> None:
    """Add the options that both commands have."""
    parser.add_argument(
        "--check", action="store_true", help="only show what would be done; exit code 1 if anything is to be done"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--passphrase-file", type=Path, metavar="FILE", help="file with the passphrase of the backup")
    backup = parser.add_mutually_exclusive_group()
    backup.add_argument(
        "--backup",
        type=Path,
        metavar="FILE",
        help="backup to make first (default: a new file in the folder backups of the data folder)",
    )
    backup.add_argument(
        "--no-backup",
        action="store_true",
        help="make no backup: without one of your own you cannot return to the version before",
    )


class Upgrade:
    """The upgrade of one data folder. `inspect` returns the state of its parts, `say` prints a line."""

    def __init__(
        self, data: Path, inspect: Callable[[], Sequence[PartState]], backup: Backup, say: Callable[[str], None]
    ) -> None:
        self._data, self._inspect, self._backup, self._say = data, inspect, backup, say
        self._journal = UpgradeJournal(data)

    def check(self) -> int:
        """Show the state of all parts and the steps; return 1 if there are any. Raises UpgradeFailed."""
        parts = self._accepted_parts()
        for line in describe(parts):
            self._say(line)
        if not all_steps(parts):
            self._say(f"nothing to upgrade: Sluice {VERSION} uses all of it as it is")
            return 0
        return 1

    def run(self, options: Namespace) -> int:
        """Upgrade what has to be; return the exit code. Raises UpgradeFailed."""
        if not self.check():
            return 0
        interrupted = self._journal.interrupted(VERSION)
        if interrupted:
            self._say(f"continuing the upgrade that began at {interrupted.began}")
        if not options.yes and not _is_confirmed():
            raise UpgradeFailed("not confirmed, and nothing was changed; --yes upgrades without a question")
        record = interrupted or self._begin(options)
        self._run_steps()
        self._journal.write(replace(record, ended=_now()))
        self._say(f"done: everything has the formats of Sluice {VERSION}")
        return 0

    def _begin(self, options: Namespace) -> UpgradeRecord:
        """Make the backup, unless none is wanted, and record that the upgrade begins."""
        record = UpgradeRecord(VERSION, _now())
        if not options.no_backup:
            file = options.backup or self._data / "backups" / f"before-{VERSION}-{record.began.replace(':', '')}"
            make_private_directory(file.resolve().parent)
            passphrase = ["--passphrase-file", str(options.passphrase_file)] if options.passphrase_file else []
            self._say(f"backing up to {file}")
            if self._backup([str(file), *passphrase]):
                raise UpgradeFailed("the backup failed, and nothing was changed")
            record = replace(record, backup=str(file))
        self._journal.write(record)
        return record

    def _run_steps(self) -> None:
        steps = all_steps(self._accepted_parts())
        for number, step in enumerate(steps, 1):
            self._say(f"step {number} of {len(steps)}: {step.summary}")
            step.run(lambda line: self._say(f"  {line}"))
        if left := all_steps(self._accepted_parts()):
            raise UpgradeFailed(f"still to be done after all steps: {left[0].summary}")

    def _accepted_parts(self) -> Sequence[PartState]:
        """Return the state of all parts. Raises UpgradeFailed when this version cannot use one of them."""
        parts = self._inspect()
        if refusals := [each.refusal for each in parts if each.refusal]:
            raise UpgradeFailed("; ".join(refusals))
        return parts


def _is_confirmed() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input("Upgrade now? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def stopped_installation(data: Path) -> Iterator[None]:
    """Keep others from starting on the data folder while the context is open. Raises UpgradeFailed if one runs."""
    try:
        lock = lock_directory(data)
    except DirectoryInUse as taken:
        raise UpgradeFailed(f"{taken}; `--check` works while Sluice is running") from taken
    try:
        yield
    finally:
        lock.release()


def say(line: str) -> None:
    """Print one line at once: who watches sees how far a step is."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def exit_code(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; print what is wrong as one sentence, with exit code 1."""
    try:
        return command()
    except KeyboardInterrupt:
        sentence = "interrupted; run the upgrade again to continue"
    except (BrokerError, OSError) as error:
        sentence = str(error)
    sys.stderr.write(f"error: {sentence}\n")
    return 1
