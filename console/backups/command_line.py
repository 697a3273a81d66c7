"""`backup` and `restore` of an installation with a console; `--data` or `--redis` name a broker without one."""

from __future__ import annotations

import argparse

from brokerapp.backup import command_line
from brokerapp.backup.command_line import backup_parser, check_restore, reporting, restore_parser, role_of, say
from brokerapp.errors import BackupRefused
from brokerapp.system.environment import Environment
from console.backups.installation import console_parts, restored_parts, source_of

_OF_BROKER = ("--data", "--redis")


def backup(arguments: list[str], program: str) -> int:
    """Write a backup; return the exit status."""
    if _is_of_broker(arguments):
        return command_line.backup(arguments, program)
    parser = backup_parser(program)
    parser.description = (
        "Write a backup of the installation that the environment describes (SLUICE_DATA) to one file. "
        "With --data DIR, or --redis URL --name NAME: of a broker without a console."
    )
    parser.add_argument("--with-archive", action="store_true", help="include recorded traffic and results of analyses")
    options = parser.parse_args(arguments)
    return reporting(lambda: _backup(options))


def restore(arguments: list[str], program: str) -> int:
    """Restore a backup; return the exit status."""
    if _is_of_broker(arguments):
        return command_line.restore(arguments, program)
    parser = restore_parser(program)
    parser.description = (
        "Restore a backup into the installation that the environment describes (SLUICE_DATA, REDIS_URL, DATABASE_URL), "
        "which must be empty, or say what a restored installation is. With --data DIR: a broker without a console."
    )
    options = parser.parse_args(arguments)
    check_restore(parser, options)
    return reporting(lambda: _restore(options, program))


def _is_of_broker(arguments: list[str]) -> bool:
    return any(each.partition("=")[0] in _OF_BROKER for each in arguments)


def _backup(options: argparse.Namespace) -> None:
    environment = Environment.read()
    if options.config is not None and not options.config.is_file():
        raise BackupRefused(f"configuration file {options.config} not found")
    if not environment.data.is_dir():
        raise BackupRefused(f"data folder {environment.data} not found: set SLUICE_DATA")
    parts = console_parts(environment, say, options.with_archive)
    command_line.make_backup(source_of(environment, options.config), options.file, options.passphrase_file, parts)


def _restore(options: argparse.Namespace, program: str) -> None:
    environment = Environment.read()
    decided, role = role_of(options)
    url = "" if environment.owns_store else environment.redis_url
    if options.file is None:
        name = options.name or environment.broker_name
        command_line.say_decision(name, role, data=environment.data, url=url)
        return
    console = restored_parts(environment, options.name)
    named = f" --name {options.name}" if options.name else ""
    command_line.make_restore(options, environment.data, url, decided, role, f"{program} %s{named}", console)
