"""DataFolder: what `runbroker --data FOLDER` keeps, and where those who come later find its store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokerapp.errors import StoreUnavailable


@dataclass(frozen=True, slots=True)
class DataFolder:
    """One folder, of one broker."""

    path: Path

    @property
    def store(self) -> Path:
        """The embedded store's own folder."""
        return self.path / "store"

    @property
    def _name(self) -> Path:
        return self.path / "broker.name"

    def remember(self, broker: str) -> None:
        """Note the broker's name."""
        self._name.write_text(broker)

    def whereabouts(self) -> tuple[str, str]:
        """URL of the store and name of the broker; raises StoreUnavailable when no broker ever ran here."""
        url = self.store / "store.url"
        for each in (url, self._name):
            if not each.exists():
                raise StoreUnavailable(f"{self.path} is no data folder of runbroker: {each} is missing")
        return url.read_text().strip(), self._name.read_text().strip()
