"""Decide in which shard a family of logs lives, and which families to move when the load is uneven. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from brokerapp.engine.sharding.families import TEMPORARY_FAMILY

#: The shard that has the definitions, and all logs of a broker without others.
FIRST_SHARD = 0
#: Load of the most loaded shard, in means of all, up to which moves are not worth their work.
EVEN_ENOUGH = 1.25
#: Load, in means of all shards, of the families that leave a shard which one of its families alone keeps above the
#: limit: hundreds of moves of lighter ones would hardly be noticed there.
WORTH_MOVING = 0.05
#: Moves that are suggested at a time: operators read the list, and each move holds up the consumers of its family.
MAX_MOVES = 100


@dataclass(frozen=True, slots=True)
class Move:
    """A family that is to move from one shard to another."""

    family: str
    source: int
    target: int


def place(family: str, serving: Collection[int], assigned: Mapping[str, int]) -> int:
    """Return the shard where a family lives, or is to live.

    A family that is assigned stays where it is, whatever the state of the shard, as its logs stay together. Others are
    spread over the serving shards so that a new shard takes families from each and the rest stay where they are
    (rendezvous hashing).
    """
    if family == TEMPORARY_FAMILY:
        return FIRST_SHARD
    found = assigned.get(family)
    if found is not None:
        return found
    if not serving:
        raise ValueError(f"no shard is serving, so the family {family!r} has no place")
    return max(serving, key=lambda shard: (_weight(family, shard), shard))


def _weight(family: str, shard: int) -> bytes:
    """Return a number that is the same in every process and evenly spread over families and shards."""
    return blake2b(f"{shard} {family}".encode(errors="surrogatepass"), digest_size=8).digest()


def suggest_moves(
    loads: Mapping[str, float],
    where: Mapping[str, int],
    serving: Collection[int],
    threshold: float = EVEN_ENOUGH,
) -> list[Move]:
    """Suggest few moves that bring every shard to at most `threshold` times the mean load of the serving shards.

    `loads` are those of the families in any one unit, `where` is the shard of each. Families on shards that are not
    serving all move. No family moves twice, and none that would only exchange one overloaded shard for another; so a
    family that alone is above the threshold stays, and only families worth moving leave its shard.
    """
    if not serving:
        return []
    shards: dict[int, float] = dict.fromkeys(sorted(serving), 0.0)
    families: dict[int, list[str]] = {shard: [] for shard in shards}
    leaving = []
    for family in sorted(loads):
        if family == TEMPORARY_FAMILY:
            if FIRST_SHARD in shards:
                shards[FIRST_SHARD] += loads[family]
        elif where[family] in shards:
            shards[where[family]] += loads[family]
            families[where[family]].append(family)
        else:
            leaving.append(family)
    moves = []
    for family in sorted(leaving, key=lambda each: (-loads[each], each)):
        target = min(shards, key=lambda shard: (shards[shard], shard))
        shards[target] += loads[family]
        moves.append(Move(family, where[family], target))
    mean = sum(shards.values()) / len(shards)
    return (moves + _relieving(loads, shards, families, mean, threshold * mean))[:MAX_MOVES]


def combined_load(parts: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    """Return the load of each family as one number: the sum of its shares of each kind of load, weighted alike."""
    totals = [sum(each) for each in zip(*parts.values(), strict=True)]
    return {
        family: sum(part / total for part, total in zip(of_family, totals, strict=True) if total)
        for family, of_family in parts.items()
    }


def _relieving(
    loads: Mapping[str, float], shards: dict[int, float], families: dict[int, list[str]], mean: float, limit: float
) -> list[Move]:
    """Suggest moves away from the shards above the limit, the most loaded first."""
    moves: list[Move] = []
    for source in sorted(shards, key=lambda shard: (-shards[shard], shard)):
        stays_above = any(loads[family] > limit for family in families[source])
        least = WORTH_MOVING * mean if stays_above else 0.0
        movable = [family for family in families[source] if loads[family] > least]
        while shards[source] > limit:
            target = min(shards, key=lambda shard: (shards[shard], shard))
            family = _best(loads, movable, shards[source] - limit, limit - shards[target])
            if family is None:
                break
            movable.remove(family)
            shards[source] -= loads[family]
            shards[target] += loads[family]
            moves.append(Move(family, source, target))
    return moves


def _best(loads: Mapping[str, float], families: Collection[str], excess: float, room: float) -> str | None:
    """Return the lightest family that takes the whole excess away, else the heaviest that the target has room for."""
    fitting = [family for family in families if loads[family] <= room]
    enough = [family for family in fitting if loads[family] >= excess]
    if enough:
        return min(enough, key=lambda family: (loads[family], family))
    return max(fitting, key=lambda family: (loads[family], family), default=None)
