"""Find the passphrase of a backup: in a file, in the environment, or by asking. Never on the command line, which other
users of the machine see.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from brokerapp.errors import BackupRefused

#: The variable with the passphrase, and the one with the path of a file that has it.
VARIABLE, FILE_VARIABLE = "SLUICE_BACKUP_PASSPHRASE", "SLUICE_BACKUP_PASSPHRASE_FILE"
#: The fewest characters of a new passphrase: whoever has the file can try as many as a machine can.
MIN_CHARACTERS = 12
_HOW = f"use --passphrase-file FILE, {VARIABLE} or {FILE_VARIABLE}"


def passphrase_source(file: Path | None = None, variables: Mapping[str, str] = os.environ) -> str:
    """Return the option or the variable that gives the passphrase; "" where none does."""
    if file is not None:
        return "--passphrase-file"
    return next((name for name in (VARIABLE, FILE_VARIABLE) if variables.get(name)), "")


def find_passphrase(file: Path | None = None, variables: Mapping[str, str] = os.environ) -> str | None:
    """Return the passphrase of this file, or of the environment; None where neither is given. Raises BackupRefused."""
    if file is None and variables.get(VARIABLE):
        return variables[VARIABLE]
    if file is None and variables.get(FILE_VARIABLE):
        file = Path(variables[FILE_VARIABLE])
    if file is None:
        return None
    try:
        found = file.read_text().rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BackupRefused(f"the passphrase file {file} cannot be read: {reason}") from None
    if not found:
        raise BackupRefused(f"the passphrase file {file} is empty")
    return found


def check_new(passphrase: str) -> str:
    """Return a passphrase for a new backup. Raises BackupRefused for a short one."""
    if len(passphrase) < MIN_CHARACTERS:
        raise BackupRefused(f"the passphrase must have at least {MIN_CHARACTERS} characters")
    return passphrase


def ask_new() -> str | None:
    """Ask for the passphrase of a new backup twice; None without a terminal, or where nothing was entered.

    Raises BackupRefused.
    """
    if not sys.stdin.isatty():
        return None
    entered = getpass.getpass("Passphrase (empty: without secrets, not encrypted): ")
    if not entered:
        return None
    check_new(entered)
    if getpass.getpass("Passphrase again: ") != entered:
        raise BackupRefused("the two passphrases differ")
    return entered


def ask_existing() -> str:
    """Ask for the passphrase of a backup. Raises BackupRefused without a terminal."""
    if not sys.stdin.isatty():
        raise BackupRefused(f"the backup is encrypted: {_HOW}")
    return getpass.getpass("Passphrase of the backup: ")
