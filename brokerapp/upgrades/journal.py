"""UpgradeJournal: records that an upgrade was begun, and whether its backup still holds when it was interrupted.

    upgrade.json    in the data folder: the version, when it began and ended, and the backup that was made first

What was done is recorded where it was done: each thing has its format. The journal only says what came before.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from brokerapp.system import atomic_files

NAME = "upgrade.json"


@dataclass(frozen=True, slots=True)
class UpgradeRecord:
    """The last upgrade of an installation. Times are in ISO 8601, UTC."""

    version: str  #: of Sluice, which upgraded it
    began: str
    backup: str = ""  #: the file; "": none was made
    ended: str = ""  #: "": it was interrupted, or is running
    position: str = ""  #: of the store when the backup was made: another one when nodes have run since


class UpgradeJournal:
    """Reads and writes the record of the last upgrade in a data folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def read(self) -> UpgradeRecord | None:
        """Return the record; None when no upgrade was begun here, or the file is not one of ours."""
        try:
            return UpgradeRecord(**json.loads(self._path.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def interrupted(self, version: str) -> UpgradeRecord | None:
        """Return the record of an upgrade to this version that has not ended; None when there is none."""
        found = self.read()
        return found if found is not None and found.version == version and not found.ended else None

    def write(self, record: UpgradeRecord) -> None:
        """Replace the record atomically."""
        atomic_files.replace(self._path, json.dumps(asdict(record)).encode())
