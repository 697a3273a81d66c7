"""Check files and addresses of an installation: who may read its secrets, and how browsers reach the console."""

from __future__ import annotations

import os
import stat
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.http.request import validate_host

from brokerapp.checks.installation import Installation
from brokerapp.checks.results import Finding
from brokerapp.model.transport_connector import is_loopback
from console.checks.services import NOT_STARTED

#: Files with secrets, within the data directory.
SECRET_FILES = ("secret-key", "admin-password")
#: The hosts that the console always answers to, see settings.
LOCAL_HOSTS = ["127.0.0.1", "localhost", "[::1]"]


# -- files


@dataclass(frozen=True, slots=True)
class FileMode:
    """Who may read a file or folder, and whether this user may write to it; `exists` is False where there is none."""

    path: Path
    mode: int
    is_writable: bool
    exists: bool = True


@dataclass(frozen=True, slots=True)
class FileModes:
    """The data directory, the files with secrets in it, and the folders of the archive and of backups."""

    data: FileMode
    secrets: tuple[FileMode, ...]
    archive: FileMode
    backups: FileMode


def measure_files(here: Installation) -> FileModes | None:
    """Return who may read and write the files of the installation; None before its first start."""
    assert here.environment is not None
    if not here.data.exists():
        return None
    secrets = (_mode(here.data / each) for each in SECRET_FILES)
    return FileModes(
        _mode(here.data), tuple(each for each in secrets if each.exists),
        archive=_mode(here.environment.archive), backups=_mode(here.environment.backups),
    )  # fmt: skip


def _mode(path: Path) -> FileMode:
    """Return the mode of a path, or that of the folder in which it will be made."""
    existing = next(each for each in (path, *path.parents) if each.exists())
    found = existing.stat()
    return FileMode(path, stat.S_IMODE(found.st_mode), os.access(existing, os.W_OK), exists=existing == path)


def judge_secrets(found: FileModes | None) -> Iterator[Finding]:
    """Judge whether only the owner can read secrets."""
    if found is None:
        yield Finding.skipped(NOT_STARTED)
        return
    open_ones = [each for each in found.secrets if each.mode & 0o077]
    is_closed = not found.data.mode & 0o077
    for each in open_ones:
        level = Finding.warning if is_closed else Finding.failure
        yield level(f"{each.path} can be read by others (mode {each.mode:o}).", f"chmod 600 {each.path}")
    if not is_closed:
        yield Finding.warning(
            f"{found.data.path} can be entered by others (mode {found.data.mode:o}).", f"chmod 700 {found.data.path}"
        )
    if is_closed and not open_ones:
        yield Finding.ok("Only its owner can read the data directory and the secrets in it.")


def judge_archive(found: FileModes | None) -> Iterator[Finding]:
    """Judge whether recorded traffic can be written."""
    yield _judge_folder(found and found.archive, "recorded traffic stays in the store")


def judge_backups(found: FileModes | None) -> Iterator[Finding]:
    """Judge whether the console can write backups."""
    yield _judge_folder(found and found.backups, "backups of the console fail")


def _judge_folder(folder: FileMode | None, consequence: str) -> Finding:
    if folder is None:
        return Finding.skipped(NOT_STARTED)
    if folder.is_writable:
        return Finding.ok(f"{folder.path} can be written.")
    return Finding.failure(
        f"{folder.path} cannot be written by this user: {consequence}.",
        "Check as the user that runs Sluice, or change the owner of the folder.",
    )


# -- addresses


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the console listens, and where browsers reach it."""

    bind: str
    url: str
    hosts: tuple[str, ...]  #: of SLUICE_HOSTS
    proxies: str
    has_tls: bool


def measure_addresses(here: Installation) -> Addresses:
    """Return how browsers reach the console, as the environment variables say it."""
    assert here.environment is not None
    hosts = os.environ.get("SLUICE_HOSTS", "").split(",")
    return Addresses(
        here.environment.bind, here.environment.console_url, tuple(each.strip() for each in hosts if each.strip()),
        here.environment.proxies, here.environment.console_tls,
    )  # fmt: skip


def judge_addresses(found: Addresses) -> Iterator[Finding]:
    """Judge whether links lead to the console, and whether passwords are encrypted on their way."""
    parts = urlsplit(found.url)
    host, is_public = parts.hostname or "", bool(found.hosts) or not is_loopback(_called(found.bind))
    problems = []
    if not validate_host(host, [*LOCAL_HOSTS, *found.hosts]):
        problems.append(
            Finding.failure(
                f"SLUICE_URL leads to {host}, which SLUICE_HOSTS does not name: the console refuses it.",
                f"Add {host} to SLUICE_HOSTS.",
            )
        )
    elif is_public and is_loopback(host):
        problems.append(
            Finding.warning(
                f"The console is reached from other machines, but links in mails lead to {host}.",
                "Set SLUICE_URL to its public address.",
            )
        )
    if "*" in found.hosts:
        problems.append(
            Finding.warning("SLUICE_HOSTS=* accepts any host name.", "Name the hosts by which browsers reach it.")
        )
    problems += _encryption(found, parts.scheme, is_public)
    yield from problems or [Finding.ok(f"Browsers reach the console at {found.url}.")]


def _encryption(found: Addresses, scheme: str, is_public: bool) -> Iterator[Finding]:
    if found.has_tls and scheme == "http":
        yield Finding.warning(
            "The console has a certificate, but SLUICE_URL begins with http://.", "Set SLUICE_URL to https://HOST:PORT."
        )
    elif scheme == "https" and not found.has_tls and not found.proxies:
        yield Finding.warning(
            "SLUICE_URL begins with https://, but the console has neither a certificate nor a proxy.",
            "Set SLUICE_TLS_CERTIFICATE, or SLUICE_PROXIES to the address of the proxy.",
        )
    elif is_public and scheme == "http" and not found.has_tls:
        yield Finding.warning(
            "The console is reached from other machines without TLS: passwords are sent unencrypted.",
            "Set SLUICE_TLS_CERTIFICATE, or put a reverse proxy with TLS before it.",
        )


def _called(bind: str) -> str:
    """Return the address, or one that is not of this machine alone where all are listened on."""
    return bind or "0.0.0.0"


# -- time zones


def measure_time_zones(_here: Installation) -> int:
    """Return how many time zones are known."""
    return len(zoneinfo.available_timezones())


def judge_time_zones(count: int) -> Iterator[Finding]:
    """Judge whether reports can be scheduled, and times be shown, in time zones."""
    if count:
        yield Finding.ok(f"{count} time zones are known.")
    else:
        yield Finding.failure("No time zones are known: reports cannot be scheduled in them.", "Install tzdata.")
