"""Create and read the key that signs sessions: one for each installation, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.data_directory import make_data_directory

#: Its file in the data folder.
KEY_FILE_NAME = "secret-key"


def stored_key(path: Path) -> str:
    """Return the key in the file `path`; "" where there is none yet. Raises ConfigurationRefused, as below."""
    try:
        return path.read_text() if path.exists() else ""
    except OSError as error:
        raise ConfigurationRefused(f"{path}: {(error.strerror or str(error)).lower()}") from error


def secret_key(path: Path) -> str:
    """Return the key in the file `path`; create the file with a random key if it does not exist.

    Raises ConfigurationRefused where the data folder, or the file in it, cannot be used.
    """
    try:
        if not path.exists():
            make_data_directory(path.parent)
        return _read_or_create(path)
    except OSError as error:
        raise ConfigurationRefused(f"{path}: {(error.strerror or str(error)).lower()}") from error


def _read_or_create(path: Path) -> str:
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
        # Several processes may start at once: linking lets exactly one of the drafts win, whole.
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()
