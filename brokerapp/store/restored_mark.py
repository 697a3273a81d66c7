"""RestoredMark: what a store that was restored from a backup knows of that, until it acts as the original."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from brokerapp.store.client.client import StorePart
from brokerapp.system.checkout import command

#: How an operator says which of the two a restored broker is.
HOW_TO_DECIDE = (
    f"run `{command('restore')} --replace` if the original no longer runs, or `{command('restore')} --as-copy` if it "
    "does"
)


class RestoredRole(StrEnum):
    """The role of a restored broker; one that replaced the original has no mark any more."""

    INCOMPLETE = "incomplete"  #: the restore did not end
    UNDECIDED = "undecided"  #: nothing starts on it
    COPY = "copy"  #: it runs beside the original


@dataclass(frozen=True, slots=True)
class RestoredMark:
    """Describes the backup that a store or a data folder was restored from, and the role that it has since."""

    role: RestoredRole
    broker: str  #: as the original is called
    host: str  #: where the backup was made
    made: str  #: when, ISO 8601 in UTC

    @property
    def origin(self) -> str:
        """Return what it was restored from, as part of a sentence."""
        return f"restored from the backup of {self.made_at} of broker {self.broker} on {self.host}"

    @property
    def made_at(self) -> str:
        """Return when the backup was made, to the second."""
        return f"{self.made[:19].replace('T', ' ')} UTC"

    @property
    def refusal(self) -> str:
        """Return why nothing may start on it; "" where something may."""
        match self.role:
            case RestoredRole.INCOMPLETE:
                return f"this store was not completely {self.origin}: run the restore again"
            case RestoredRole.UNDECIDED:
                return f"this broker was {self.origin}: {HOW_TO_DECIDE}"
        return ""

    @property
    def is_copy(self) -> bool:
        """Return whether it runs beside the original."""
        return self.role is RestoredRole.COPY

    def to_json(self) -> str:
        """Return the mark as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> RestoredMark:
        """Return the mark of a JSON text. Raises ValueError, TypeError."""
        fields = json.loads(text)
        return RestoredMark(**{**fields, "role": RestoredRole(fields["role"])})


class RestoredMarkStore(StorePart):
    """Reads the mark of a store."""

    async def read(self) -> RestoredMark | None:
        """Return the mark; None for a store that was not restored, or acts as the original."""
        found = await self._client.execute("GET", self._keys.restored)
        return RestoredMark.from_json(found) if found else None
