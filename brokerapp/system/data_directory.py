"""DataDirectory: what `runbroker --data FOLDER` keeps, and where those who come later find its store."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.system.process_lock import make_private_directory

#: What names the data folder of an installation in errors; that of a node is named by its option.
INSTALLATION, NODE = "SLUICE_DATA=", "--data "


def check_data_directory(folder: Path, setting: str = INSTALLATION) -> None:
    """Raise ConfigurationRefused where a data folder can neither be used nor created. Nothing is created."""
    existing = next(each for each in (folder, *folder.parents) if _can_be_seen(each))
    if not existing.is_dir():
        found = "not a folder" if existing == folder else f"{existing} is not a folder"
        raise ConfigurationRefused(f"{setting}{folder}: {found}")
    if not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
        done = "used" if existing == folder else "created"
        reason = "read-only file system" if _is_read_only(existing) else "permission denied"
        raise ConfigurationRefused(f"{setting}{folder}: cannot be {done}: {reason}")


def _is_read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:  # it may not be looked at
        return False


def _can_be_seen(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # it may not be looked at
        return False


def make_data_directory(folder: Path, setting: str = INSTALLATION) -> None:
    """Create a data folder that only its owner may enter, or close an existing one. Raises ConfigurationRefused."""
    check_data_directory(folder, setting)
    try:
        make_private_directory(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationRefused(f"{setting}{folder}: cannot be created: {reason}") from error


def _noted(note: Path) -> str:
    """Return the text of a file of one line; "" if there is none. Raises ConfigurationRefused if it is unreadable."""
    try:
        return note.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ConfigurationRefused(f"{note}: {(error.strerror or str(error)).lower()}{_owner_of(note)}") from error


def _owner_of(path: Path) -> str:
    """Return what to do about a path that belongs to another user, as the end of a sentence."""
    seen = next(each for each in (path, *path.parents) if _can_be_seen(each))
    owner, user = seen.stat().st_uid, os.geteuid()
    if owner == user:
        return ""
    who = f"{seen} belongs to {_name_of(owner)}, and this is {_name_of(user)}"
    return f": {who}: run this as its owner, or change the owner"


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # of a container, or deleted
        return f"user {user}"


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """One folder, of one broker."""

    path: Path

    @property
    def store(self) -> Path:
        """The embedded store's own folder."""
        return self.path / "store"

    @property
    def _external_url(self) -> Path:
        """The URL of a store that is not the folder's own. It may hold a password: only its owner may read it."""
        return self.path / "redis.url"

    @property
    def _name(self) -> Path:
        return self.path / "broker.name"

    @property
    def is_of_installation(self) -> bool:
        """Return whether `sluice up` keeps its data here, whose broker environment variables describe."""
        return (self.path / "secret-key").exists() and not self._name.exists()

    def remember(self, broker: str, elsewhere: str | None = None) -> None:
        """Note the broker's name, and the URL of its store where that is not the folder's own."""
        self._external_url.unlink(missing_ok=True)  # it may have been readable by others, or be true no more
        if elsewhere is not None:
            self._external_url.touch(mode=0o600)
            self._external_url.write_text(elsewhere)
        self._name.write_text(broker)

    def external_url(self) -> str:
        """Return the URL of a store elsewhere that the last node here used; "" where it used the embedded one."""
        return _noted(self._external_url)

    def embedded_url(self) -> str:
        """Return where the embedded store listens, or will as far as is known before it has started.

        It says so itself, because a long path makes it go elsewhere; on a full disk it may have left an empty file.
        """
        return _noted(self.store / "store.url") or f"unix://{self.store}/valkey.sock"

    def locate_store(self) -> tuple[str, str]:
        """URL of the store and name of the broker; raises StoreUnavailable when no broker has come up here yet."""
        if not self.path.is_dir():
            raise StoreUnavailable(f"data folder {self.path} not found: use the --data of a broker")
        url = self._external_url if self._external_url.exists() else self.store / "store.url"
        for each in (self._name, url):
            if each.exists():
                continue
            if each is url and self._name.exists():
                name = self._name.read_text().strip()
                raise StoreUnavailable(f"broker {name} of --data {self.path} is not running, or still starting")
            raise StoreUnavailable(
                f"no broker is running with --data {self.path}, or it is still starting: {each.name} is missing"
            )
        return url.read_text().strip(), self._name.read_text().strip()

    def stored_broker(self) -> tuple[str, str | None]:
        """Return the name of the broker that was started here last, and the URL of its store; None: the folder's own.

        Raises StoreUnavailable when none was.
        """
        if not self._name.exists():
            raise StoreUnavailable(f"no broker was started with --data {self.path}: use the --data of a broker")
        url = self._external_url.read_text().strip() if self._external_url.exists() else None
        return self._name.read_text().strip(), url
