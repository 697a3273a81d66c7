"""The configuration in a backup: variables of the environment, the broker's file, and the files of secrets.

Secrets are in the backup only if it is encrypted. A restore changes no environment: it writes `configuration.env` into
the data folder, for the operator to use.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from brokerapp.backup.container import BackupReader, BackupWriter
from brokerapp.backup.passphrase import FILE_VARIABLE, VARIABLE
from brokerapp.errors import BackupRefused

#: Parts of a backup.
VARIABLES, SECRETS, CONFIG_FILE = "configuration.json", "secrets.json", "broker.xml"
#: The file in the data folder that a restore writes variables into.
RESTORED_VARIABLES = "configuration.env"
#: Variables that are part of the configuration: those that begin so, and these.
_PREFIX = "SLUICE_"
_OTHERS = ("REDIS_URL", "DATABASE_URL", "SPARK_MASTER", "SPARK_REMOTE")
#: Not among them: the key to the backup itself, and where the data is, which a restore chooses.
_EXCLUDED = (VARIABLE, FILE_VARIABLE, "SLUICE_DATA")
#: Variables that are secrets by their names; URLs are where they hold a password.
_SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|PASSPHRASE|PRIVATE")
_REFERS_TO_FILE = "_FILE"
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_SAFE = re.compile(r"[\w@%+=:,./-]*")


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret itself."""
    if name.endswith(_REFERS_TO_FILE):
        return False
    if _SECRET_NAME.search(name):
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return "://" in value
    return bool(parts.scheme) and ("@" in parts.netloc or "password" in value or "token" in value)


def configured(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that are part of the configuration."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if (name.startswith(_PREFIX) or name in _OTHERS) and name not in _EXCLUDED
    }


def add_configuration(
    writer: BackupWriter,
    *,
    is_encrypted: bool,
    config_file: Path | None = None,
    secret_files: Iterable[Path] = (),
    variables: Mapping[str, str] = os.environ,
) -> list[str]:
    """Add the configuration; return sentences about what was left out. Raises BackupRefused, OSError.

    `secret_files` are files of the data folder that hold secrets; those that do not exist are skipped.
    """
    found = configured(variables)
    secrets = {name: value for name, value in found.items() if is_secret(name, value)}
    writer.add(VARIABLES, _json({name: value for name, value in found.items() if name not in secrets}))
    files = {each.name: each for each in secret_files if each.exists()}
    left_out = []
    if is_encrypted:
        content = {name: each.read_text() for name, each in files.items()}
        named = {name: _read_named(name, value) for name, value in found.items() if _names_secret(name)}
        writer.add(SECRETS, _json({"variables": secrets, "files": content, "named": named}))
    elif names := [*secrets, *files, *(name for name in found if _names_secret(name))]:
        left_out.append(f"secrets, as the backup is not encrypted: {', '.join(names)}")
    if config_file is not None and is_encrypted:
        with config_file.open("rb") as source:
            writer.add_file(CONFIG_FILE, source)
    elif config_file is not None:
        left_out.append(f"{config_file.name}, which may hold passwords, as the backup is not encrypted")
    return left_out


def _names_secret(name: str) -> bool:
    """Return whether a variable names a file that holds a secret."""
    return name.endswith(_REFERS_TO_FILE) and bool(_SECRET_NAME.search(name))


def _read_named(name: str, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeError) as error:
        raise BackupRefused(f"the file of {name}, {path}, cannot be read: {error}") from None


def restore_configuration(reader: BackupReader, folder: Path, secret_files: Iterable[str] = ()) -> list[str]:
    """Write the configuration into a new data folder; return sentences about what the operator has to do."""
    sentences: list[str] = []
    variables = json.loads(reader.read(VARIABLES)) if reader.has(VARIABLES) else {}
    secrets = json.loads(reader.read(SECRETS)) if reader.has(SECRETS) else {"variables": {}, "files": {}, "named": {}}
    for name in secret_files:
        if name in secrets["files"]:
            _write_private(folder / name, secrets["files"][name])
    for name, content in secrets["named"].items():
        if not _VARIABLE_NAME.fullmatch(name):  # names become those of files
            raise BackupRefused(f"{reader.path} is damaged: {name!r} is not the name of an environment variable")
        path = folder / "restored-secrets" / name.removesuffix(_REFERS_TO_FILE).lower()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write_private(path, content)
        sentences.append(f"{path.relative_to(folder)} is the secret of {name}: move it to the file that {name} names")
    if lines := {**variables, **secrets["variables"]}:
        text = "".join(f"{name}={_quoted(value)}\n" for name, value in sorted(lines.items()))
        _write_private(folder / RESTORED_VARIABLES, text)
        sentences.append(
            f"{RESTORED_VARIABLES} has the {len(lines)} environment variables of the original: set those that hold here"
        )
    if reader.has(CONFIG_FILE):
        reader.extract(CONFIG_FILE, folder / CONFIG_FILE)
        sentences.append(f"{CONFIG_FILE} is the configuration file of the original: start the broker with it")
    return sentences


def _quoted(value: str) -> str:
    """Quote a value for a shell, and for systemd, which reads the same."""
    if _SAFE.fullmatch(value):
        return value
    return '"' + re.sub(r'(["\\$`])', r"\\\1", value) + '"'


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _json(content: object) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode()
