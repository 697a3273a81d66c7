"""DataDirectory: what `runbroker --data FOLDER` keeps, and where those who come later find its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokerapp.errors import StoreUnavailable


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

    def remember(self, broker: str, elsewhere: str | None = None) -> None:
        """Note the broker's name, and the URL of its store where that is not the folder's own."""
        self._external_url.unlink(missing_ok=True)  # it may have been readable by others, or be true no more
        if elsewhere is not None:
            self._external_url.touch(mode=0o600)
            self._external_url.write_text(elsewhere)
        self._name.write_text(broker)

    def external_url(self) -> str:
        """Return the URL of a store elsewhere that the last node here used; "" where it used the embedded one."""
        return self._external_url.read_text().strip() if self._external_url.exists() else ""

    def embedded_url(self) -> str:
        """Return where the embedded store listens, or will as far as is known before it has started."""
        note = self.store / "store.url"
        return note.read_text().strip() if note.exists() else f"unix://{self.store}/valkey.sock"

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
