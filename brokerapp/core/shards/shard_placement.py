"""Choose shards for new logs, by their families, and claim them so that all nodes agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from brokerapp.engine.sharding.families import Families, feeds_of
from brokerapp.engine.sharding.placement import place
from brokerapp.errors import ShardConflict
from brokerapp.model.definitions import Definitions
from brokerapp.model.destination import TEMPORARY_LOGS, Destination


class LogClaims(Protocol):
    """Keeps in the store where each log is."""

    async def claim_logs(self, wanted: Sequence[tuple[str, str, int]]) -> list[int]: ...


class ShardPlacement:
    """Chooses shards for new logs: shard 0, until it is told of others."""

    def __init__(self, definitions: Callable[[], Definitions], claims: LogClaims) -> None:
        self._definitions, self._claims = definitions, claims
        self._families: Families | None = None  # of the definitions that follow
        self._families_of: Definitions | None = None
        self._fed_by: dict[str, tuple[Destination, ...]] = {}  # by log: what its name does not say
        self._serving: Collection[int] = (0,)
        self._assigned: dict[str, int] = {}
        self._is_sharded = False
        self._claimed: set[str] = set()

    def follow(self, serving: Collection[int], assigned: Mapping[str, int]) -> None:
        """Put new families into these shards from now on; these have their places."""
        self._serving, self._assigned, self._is_sharded = serving, dict(assigned), True

    async def adopt(self, shard_of: Mapping[str, int]) -> None:
        """Keep in the store where logs are that were there before, so that their families stay together."""
        await self._claim([(log, shard) for log, shard in shard_of.items() if not log.startswith(TEMPORARY_LOGS)])

    def note(self, log: str, attributes: Mapping[str, Any]) -> None:
        """Note what feeds a log: the topics of a named subscription, the address that a queue is bound to."""
        if fed_by := feeds_of(attributes):
            self._fed_by[log] = fed_by

    def forget(self, log: str) -> bool:
        """Forget a log that is removed, unless what feeds it says where it was; return whether it is forgotten."""
        if log in self._fed_by:
            return False
        self._claimed.discard(log)
        return True

    def unclaim(self, log: str) -> None:
        """Claim a log again when it is declared: the record lacks it."""
        self._claimed.discard(log)

    def family_of(self, log: str) -> str:
        """Return the family of a log by the definitions in force."""
        current = self._definitions()
        if self._families is None or current is not self._families_of:
            self._families, self._families_of = Families(current), current
        return self._families.family_of(log, self._fed_by.get(log, ()))

    @property
    def version(self) -> int:
        """Return the version of the definitions that say what the families are."""
        return self._definitions().version

    def assign(self, family: str, shard: int) -> None:
        """Know that a family lives in a shard."""
        self._assigned[family] = shard

    def place_anew(self, family: str) -> int:
        """Return the shard where a family would live that has no place."""
        return place(family, self._serving, {})

    def place_of(self, family: str) -> int:
        """Return the shard where a family lives, or would live."""
        return place(family, self._serving, self._assigned)

    def place(self, log: str) -> int:
        """Return the shard where a new log belongs."""
        return self.place_of(self.family_of(log)) if self._is_sharded else 0

    async def claim(self, shard: int, declarations: Sequence[tuple[str, str | None]]) -> None:
        """Keep in the store that these logs are in this shard, before they are there.

        Raises ShardConflict when another node has put one of them elsewhere.
        """
        if self._is_sharded:
            lasting = [log for log, attributes in declarations if attributes is not None]
            await self._claim([(log, shard) for log in lasting if not log.startswith(TEMPORARY_LOGS)])

    async def _claim(self, located: Sequence[tuple[str, int]]) -> None:
        new = [(log, shard) for log, shard in located if log not in self._claimed]
        if not new:
            return
        found = await self._claims.claim_logs([(log, self.family_of(log), shard) for log, shard in new])
        for (log, shard), number in zip(new, found, strict=True):
            if number != shard:
                raise ShardConflict(f"{log} was put into shard {number} by another node, and into {shard} by this one")
            self._assigned.setdefault(self.family_of(log), shard)
            self._claimed.add(log)
