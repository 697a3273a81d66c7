"""Run an upgrade: check, confirm, back up, run the steps in order, verify."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from brokerapp.errors import BrokerError
from brokerapp.system.process_lock import DirectoryInUse, lock_directory, make_private_directory
from brokerapp.upgrades.journal import UpgradeJournal, UpgradeRecord
from brokerapp.upgrades.plan import PartState, PlannedStep, Report, UpgradeFailed, all_steps, describe
from brokerapp.version import VERSION

#: Calls the command `backup` with these arguments and returns its exit code.
Backup = Callable[[list[str]], int]
#: Seconds between two lines about the progress of a step: often enough to see that it continues.
PROGRESS_SECONDS = 5.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options that both commands have."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="only show what would be done, and write nothing; exit code 1 if anything is to be done",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--verbose", action="store_true", help="show each migration and each hour of the archive")
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
        return int(bool(all_steps(self._shown_parts())))

    def run(self, options: Namespace) -> int:
        """Upgrade what has to be; return the exit code. Raises UpgradeFailed."""
        parts = self._shown_parts()
        if not all_steps(parts):
            return 0
        if in_use := next((each.in_use for each in parts if each.in_use), ""):
            raise UpgradeFailed(in_use)
        if not options.no_backup and not any(each.position for each in parts):
            raise UpgradeFailed(
                f"{self._data} has no store of the broker, with which each backup begins, and nothing was changed: "
                "copy what is there to another place and use --no-backup"
            )
        self._say("")
        position = ",".join(each.position for each in parts)
        begun = self._interrupted(options, position)
        if not options.yes and not _is_confirmed():
            raise UpgradeFailed("not confirmed, and nothing was changed; --yes upgrades without a question")
        started = time.monotonic()
        record = begun or self._begin(options, position)
        self._run_steps(options.verbose)
        self._journal.write(replace(record, ended=_now()))
        self._say(f"Upgraded to Sluice {VERSION} in {time.monotonic() - started:.1f} s.")
        if record.backup:
            self._say(f"Keep the backup {record.backup}: with it you can return to the version before.")
        self._say("Next: start Sluice.")
        return 0

    def _shown_parts(self) -> Sequence[PartState]:
        """Show the state of all parts and the steps, and return it. Raises UpgradeFailed."""
        parts = self._accepted_parts()
        if not any(each.found for each in parts):
            self._say(f"Nothing to upgrade: nothing of Sluice is stored in {self._data}.")
            return parts
        self._say(f"Sluice {VERSION}, data folder {self._data}")
        for line in describe(parts):
            self._say(line)
        if not all_steps(parts):
            self._say("Nothing to upgrade.")
        return parts

    def _interrupted(self, options: Namespace, position: str) -> UpgradeRecord | None:
        """Return the record of an interrupted upgrade that is continued; None where one begins, with its backup."""
        found = self._journal.interrupted(VERSION)
        if found is None:
            return None
        self._say(f"An upgrade that began at {found.began} was interrupted and is continued.")
        if options.no_backup:
            return found
        if reason := _why_backup_is_needed(found, options.backup, position):
            self._say(f"A new backup is made: {reason}.")
            return None
        self._say(f"Its backup is still valid, as no node has run since: {found.backup}")
        return found

    def _begin(self, options: Namespace, position: str) -> UpgradeRecord:
        """Make the backup, unless none is wanted, and record that the upgrade begins."""
        record = UpgradeRecord(VERSION, _now(), position=position)
        if not options.no_backup:
            file = options.backup.absolute() if options.backup else self._default_backup(record)
            passphrase = ["--passphrase-file", str(options.passphrase_file)] if options.passphrase_file else []
            self._say("Making a backup")
            if self._backup([str(file), *passphrase]):
                raise UpgradeFailed("the backup failed, and nothing was changed")
            record = replace(record, backup=str(file))
        self._journal.write(record)
        return record

    def _default_backup(self, record: UpgradeRecord) -> Path:
        folder = self._data / "backups"
        make_private_directory(folder)
        return folder / f"before-{VERSION}-{record.began.replace(':', '')}.backup"

    def _run_steps(self, verbose: bool) -> None:
        steps = all_steps(self._accepted_parts())
        for number, step in enumerate(steps, 1):
            self._say(f"Step {number} of {len(steps)}: {step.summary}")
            began = time.monotonic()
            self._run_step(step, self._line if verbose else _seldom(self._line))
            self._line(f"done in {time.monotonic() - began:.1f} s")
        if left := all_steps(self._accepted_parts()):
            raise UpgradeFailed(f"still to be done after all steps: {left[0].summary}")

    @staticmethod
    def _run_step(step: PlannedStep, report: Report) -> None:
        try:
            step.run(report)
        except (BrokerError, OSError) as error:
            raise UpgradeFailed(
                f"{sentence_of(error)}. The upgrade is not complete, and nothing is lost: correct this and run it again"
            ) from error

    def _line(self, line: str) -> None:
        self._say(f"  {line}")

    def _accepted_parts(self) -> Sequence[PartState]:
        """Return the state of all parts. Raises UpgradeFailed when this version cannot use one of them."""
        parts = self._inspect()
        if refusals := [each.refusal for each in parts if each.refusal]:
            raise UpgradeFailed("; ".join(refusals))
        return parts


def _why_backup_is_needed(found: UpgradeRecord, wanted: Path | None, position: str) -> str:
    """Return why the backup of an interrupted upgrade is not enough; "" if it is."""
    if not found.backup:
        return "the interrupted upgrade made none"
    if not Path(found.backup).exists():
        return f"{found.backup} does not exist"
    if found.position != position:
        return f"the broker has run since {found.backup} was made"
    if wanted is not None and wanted.absolute() != Path(found.backup):
        return "--backup names another file"
    return ""


def _seldom(say: Report) -> Report:
    """Return what passes a line on when none was for PROGRESS_SECONDS."""
    last = time.monotonic()

    def report(line: str) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say(line)

    return report


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
        lock = lock_directory(data, purpose="sluice upgrade")
    except DirectoryInUse as taken:
        raise UpgradeFailed(f"{taken}; `--check` works while Sluice is running") from taken
    except OSError as error:
        raise UpgradeFailed(f"{data} cannot be locked: {(error.strerror or str(error)).lower()}") from error
    try:
        yield
    finally:
        lock.release()


def say(line: str) -> None:
    """Print one line at once: who watches sees how far a step is."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def sentence_of(error: Exception) -> str:
    """Return what is wrong; of an error of the system the file and the reason."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror.lower()}"
    return str(error)


def exit_code(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; print what is wrong as one sentence, with exit code 1."""
    try:
        return command()
    except KeyboardInterrupt:
        sentence = "interrupted; run the upgrade again to continue"
    except (BrokerError, OSError) as error:
        sentence = sentence_of(error)
    sys.stderr.write(f"error: {sentence}\n")
    return 1
