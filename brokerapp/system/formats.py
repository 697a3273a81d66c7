"""SupportedFormats: decides whether this version of Sluice can use what is stored, by its format number. Pure.

The number of each thing has one home: the store's in `store/client/continuity.py`, the archive's in
`analytics/archive/upgrade/format_file.py`. The database has Django's migrations instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.errors import ConfigurationRefused
from brokerapp.system.checkout import command


@dataclass(frozen=True, slots=True)
class SupportedFormats:
    """The range of formats of one thing that this version can use."""

    thing: str  #: as a sentence names it: `the store`
    oldest: int
    newest: int

    def check(self, found: int) -> None:
        """Raise ConfigurationRefused for a format out of the range: what was found, what is supported, what to do."""
        if found > self.newest:
            raise ConfigurationRefused(
                f"{self.thing} has format {found}, and this version of Sluice supports formats up to {self.newest}: "
                "use the newer version that wrote it, or restore a backup that was made before the upgrade"
            )
        if found < self.oldest:
            raise ConfigurationRefused(
                f"{self.thing} has format {found}, and this version of Sluice supports formats from {self.oldest}: "
                f"stop Sluice and run `{command('upgrade')}`"
            )

    def __str__(self) -> str:
        return f"{self.oldest} to {self.newest}" if self.oldest < self.newest else str(self.newest)
