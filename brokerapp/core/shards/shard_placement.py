"""Choose shards for new logs, by their families, and claim them so that all nodes agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from brokerapp.engine.sharding.families import Families
from brokerapp.engine.sharding.placement import place
from brokerapp.errors import ShardConflict
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import TEMPORARY_LOGS


class LogClaims(Protocol):
    """Keeps in the store where each log is."""

    async def claim_logs(self, wanted: Sequence[tuple[str, str, int]]) -> list[int]: ...


class ShardPlacement:
    """Chooses shards for new logs.

    `serving` are the shards that take new families, `assigned` says where families live that have a place already.
    """

    def __init__(
        self,
        definitions: Callable[[], Definitions],
        claims: LogClaims,
        serving: Collection[int],
        assigned: Mapping[str, int],
    ) -> None:
        self._definitions, self._claims = definitions, claims
        self._families = Families(definitions())
        self._families_of = definitions()
        self.serving, self.assigned = set(serving), dict(assigned)
        self._claimed: set[str] = set()

    @property
    def families(self) -> Families:
        """Return the families that the definitions in force make."""
        current = self._definitions()
        if current is not self._families_of:
            self._families, self._families_of = Families(current), current
        return self._families

    def place(self, log: str) -> int:
        """Return the shard where a new log belongs."""
        return place(self.families.family_of(log), self.serving, self.assigned)

    async def claim(self, shard: int, declarations: Sequence[tuple[str, str | None]]) -> None:
        """Keep in the store that these logs are in this shard, before they are there.

        Raises ShardConflict when another node has put one of them elsewhere.
        """
        new = [
            log
            for log, attributes in declarations
            if attributes is not None and log not in self._claimed and not log.startswith(TEMPORARY_LOGS)
        ]
        if not new:
            return
        family_of = self.families.family_of
        found = await self._claims.claim_logs([(log, family_of(log), shard) for log in new])
        for log, number in zip(new, found, strict=True):
            if number != shard:
                raise ShardConflict(f"{log} was put into shard {number} by another node, and into {shard} by this one")
            self.assigned.setdefault(family_of(log), shard)
        self._claimed.update(new)
