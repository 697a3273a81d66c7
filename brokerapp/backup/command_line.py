"""`backup` and `restore` of a broker without a console."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokerapp.backup.broker_backup import AddParts, BackupResult, BackupSource, write_backup
from brokerapp.backup.broker_restore import RestoreParts, RestoreTarget, restore_backup
from brokerapp.backup.container import BackupReader
from brokerapp.backup.data_folder import HARMLESS, check_restored
from brokerapp.backup.decision import decide
from brokerapp.backup.manifest import BackupManifest
from brokerapp.backup.passphrase import ask_existing, ask_new, check_new, find_passphrase, passphrase_source
from brokerapp.errors import BackupRefused, BrokerError, StoreUnavailable, StoreUnreachable
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.system.checkout import command
from brokerapp.system.data_directory import DataDirectory
from brokerapp.system.store_address import check_store_url, without_password

FAILED = 1
#: What a restored broker does in its role.
_IS_NOW = {None: "acts as the original, which must not run", RestoredRole.COPY: "is a copy beside the original"}
_FILE_HELP = "file with the passphrase (default: SLUICE_BACKUP_PASSPHRASE, SLUICE_BACKUP_PASSPHRASE_FILE, or asked for)"


def backup(arguments: list[str], program: str) -> int:
    """Write a backup of a broker; return the exit status."""
    options = backup_parser(program).parse_args(arguments)
    return reporting(lambda: _backup(options))


def backup_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser with what all backups have."""
    parser = argparse.ArgumentParser(program, description="Write a backup of a running broker to one file.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the backup; it must not exist yet")
    parser.add_argument("--passphrase-file", type=Path, metavar="FILE", help=_FILE_HELP)
    parser.add_argument("--config", type=Path, metavar="XML", help="configuration file of the broker, to be included")
    of_broker = parser.add_argument_group("broker without a console")
    of_broker.add_argument("--data", type=Path, metavar="DIR", help="its data folder")
    of_broker.add_argument("--redis", metavar="URL", help="its store (default: as the data folder says)")
    of_broker.add_argument("--name", help="its name (default: as the data folder says)")
    return parser


def restore_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser with what all restores have."""
    parser = argparse.ArgumentParser(
        program,
        description="Restore a backup into an empty data folder and empty stores, or say what a restored broker is.",
    )
    parser.add_argument(
        "file", type=Path, nargs="?", metavar="FILE", help="the backup (none: one that was restored before)"
    )
    roles = parser.add_mutually_exclusive_group()
    roles.add_argument("--replace", action="store_true", help="the original no longer runs: act as it")
    roles.add_argument(
        "--as-copy", action="store_true", help="run beside the original: no network connectors, cluster, notifications"
    )
    parser.add_argument("--name", help="name that the broker gets (default: that of the original)")
    parser.add_argument(
        "--shard", action="append", default=[], metavar="N=URL", help="empty store for shard N of a broker with several"
    )
    parser.add_argument("--passphrase-file", type=Path, metavar="FILE", help=_FILE_HELP)
    of_broker = parser.add_argument_group("broker without a console")
    of_broker.add_argument("--data", type=Path, metavar="DIR", help="its data folder; it must be empty")
    of_broker.add_argument("--redis", metavar="URL", help="empty store (default: the embedded one in the data folder)")
    return parser


def restore(arguments: list[str], program: str) -> int:
    """Restore a broker; return the exit status."""
    parser = restore_parser(program)
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("name the data folder of the broker with --data DIR")
    check_restore(parser, options)
    return reporting(lambda: _restore(options, program))


def check_restore(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a usage error where neither a backup nor a role is named, or options of a backup without one."""
    if options.file is not None:
        return
    if not (options.replace or options.as_copy):
        parser.error("name the backup FILE, or --replace or --as-copy for what was restored before")
    if options.shard or options.passphrase_file:
        given = "--shard" if options.shard else "--passphrase-file"
        parser.error(f"{given} needs the backup FILE")


def reporting(do: Callable[[], None]) -> int:
    """Do this; print what goes wrong, and return the exit status."""
    try:
        do()
    except BrokerError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201  # the answer of a command
        return FAILED
    except (KeyboardInterrupt, EOFError):  # Ctrl-C, or Ctrl-D where a passphrase is asked for
        print("error: interrupted", file=sys.stderr)  # noqa: T201
        return FAILED
    return 0


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, flush=True)  # noqa: T201


def role_of(options: argparse.Namespace) -> tuple[bool, RestoredRole | None]:
    """Return whether the operator said what the restored broker is, and its role."""
    if options.replace:
        return True, None
    return options.as_copy, RestoredRole.COPY if options.as_copy else RestoredRole.UNDECIDED


# -- backup


def _backup(options: argparse.Namespace) -> None:
    make_backup(_source_of(options), options.file, options.passphrase_file)


def _source_of(options: argparse.Namespace) -> BackupSource:
    if options.config is not None and not options.config.is_file():
        raise BackupRefused(f"configuration file {options.config} not found")
    url, name = options.redis, options.name
    if url is not None:
        check_store_url(url)
    if url is not None and name is not None:
        return BackupSource(name, url, config_file=options.config)
    if options.data is None:
        raise BackupRefused("name the broker: --data DIR, or --redis URL with --name NAME")
    stored, stored_url = DataDirectory(options.data.resolve()).stored_broker()
    url = url or stored_url or ""
    return BackupSource(
        name or stored, url, store=None if url else options.data.resolve() / "store", config_file=options.config
    )


def make_backup(
    source: BackupSource, file: Path, passphrase_file: Path | None, add_parts: AddParts | None = None
) -> BackupResult:
    """Write a backup and print what is in it. Raises BackupRefused, StoreUnavailable."""
    passphrase = find_passphrase(passphrase_file) or ask_new()
    if passphrase is not None:
        check_new(passphrase)
    file = file.absolute()
    try:
        result = write_backup(source, file, passphrase, say, add_parts)
    except StoreUnreachable as error:
        if not source.url.startswith("unix:"):
            raise
        raise StoreUnavailable(f"{error}: start Sluice, it is backed up while it runs") from error
    kept = "encrypted" if passphrase else "not encrypted: all messages are readable in the file"
    say(f"{file}: {result.bytes:,} bytes in {result.seconds:.1f} s, {kept}")
    return result


# -- restore


def _restore(options: argparse.Namespace, program: str) -> None:
    decided, role = role_of(options)
    if options.redis:
        check_store_url(options.redis)
    data = options.data.resolve()
    if options.file is None:
        check_restored(data)
        broker, url = DataDirectory(data).stored_broker()
        say_decision(broker, role, data=data, url=options.redis or url or "")
        return
    roles = f"{program} %s --data {shlex.quote(str(data))}"
    make_restore(options, data, options.redis or "", decided, role, roles)


def say_decision(broker: str, role: RestoredRole | None, *, data: Path, url: str) -> None:
    """Give a restored broker its role, and print what follows. Raises BackupRefused, StoreUnavailable."""
    mark = decide(broker, role, data=data, url=url)
    say(f"broker {broker}, {mark.origin}, {_IS_NOW[role]}: start it, or restart it if it runs")


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the restore of a console has beside that of a broker."""

    restore_parts: Callable[[BackupReader], RestoreParts]
    secret_files: tuple[str, ...]
    harmless: frozenset[str]
    archived: Callable[[BackupReader], tuple[str, int] | None]
    told: str  #: how sentences on what the backup lacks begin of which `restore_parts` says what is missing here


def make_restore(
    options: argparse.Namespace,
    data: Path,
    url: str,
    decided: bool,
    role: RestoredRole | None,
    how_to_decide: str,
    console: ConsoleParts | None = None,
) -> None:
    """Restore a backup and print what the operator has to do. Raises BackupRefused, StoreUnavailable.

    `how_to_decide`: the command that says later what was restored, with `%s` for the option.
    """
    with BackupReader(options.file) as reader:
        if reader.manifest.encryption is not None:
            reader.unlock(find_passphrase(options.passphrase_file) or ask_existing())
        elif given := passphrase_source(options.passphrase_file):
            # A plain file may have been put in the place of an encrypted one.
            raise BackupRefused(f"{options.file} is not encrypted: leave out {given} if it never was")
        target = RestoreTarget(
            data, options.name or reader.manifest.broker, role,
            url=url, shard_urls=_shard_urls(options.shard),
            harmless=console.harmless if console else HARMLESS,
            archived=console.archived(reader) if console else None,
            is_of_console=console is not None,
        )  # fmt: skip
        sentences = restore_backup(
            reader, target, say,
            restore_parts=console.restore_parts(reader) if console else None,
            secret_files=console.secret_files if console else (),
        )  # fmt: skip
        left_out = [each for each in reader.manifest.left_out if console is None or not each.startswith(console.told)]
        _say_restored(target, reader.manifest, [*(f"the backup lacks {each}" for each in left_out), *sentences])
    quoted = shlex.quote(str(data))
    of_broker = f"{command('broker')} --config FILE.xml --data {quoted}"
    start = f"SLUICE_DATA={quoted} {command('up')}" if console else of_broker
    if decided:
        say(f"It {_IS_NOW[role]}. Next: {start}")
        return
    say("It does not start before you say what it is:")
    say(f"  {how_to_decide % '--replace'}   if the original no longer runs")
    say(f"  {how_to_decide % '--as-copy'}   if it does: no network connectors, cluster, notifications")
    say(f"Then: {start}")


def _say_restored(target: RestoreTarget, manifest: BackupManifest, remarks: Sequence[str]) -> None:
    mark = RestoredMark(RestoredRole.UNDECIDED, manifest.broker, manifest.host, manifest.made)
    say(f"Broker {target.broker} was {mark.origin}.")
    say(f"  data folder: {target.data}")
    stores = [without_password(url) for url in (target.url, *target.shard_urls.values()) if url]
    say(f"  store: {', '.join(stores) if stores else 'embedded, in the data folder'}")
    if remarks:
        say("Before you start it:")
        for each in remarks:
            say(f"  - {each}")


def _shard_urls(options: Sequence[str]) -> dict[int, str]:
    """Read N=URL. Raises BackupRefused, ConfigurationRefused."""
    found: dict[int, str] = {}
    for each in options:
        number, equals, url = each.partition("=")
        if not equals or not number.isdecimal() or int(number) in found:
            raise BackupRefused(f"--shard {each.partition('=')[0]}: expected N=URL once for each shard")
        found[int(number)] = check_store_url(url)
    return found
