"""`python -m benchmarks.shards.simulation`: how evenly families share 4, 16 and 64 shards under skewed load.

Computed, not measured: families with a load by Zipf's law are placed as a broker places them, then moved as it
suggests. The same seed gives the same figures.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.comparison.report import table
from brokerapp.engine.sharding.placement import Move, place, suggest_moves

HEAD = (
    "shards", "exponent", "largest family", "by hashing", "after moves", "moves", "moved load", "moved to a new shard",
)  # fmt: skip
SHARDS = (4, 16, 64)
#: Exponents of Zipf's law: from a moderate to a strong skew.
EXPONENTS = (0.5, 0.8, 1.0)
#: Calls of suggest_moves, each of which returns a limited number, after which a shard is as even as it gets.
MAX_CALLS = 20


@dataclass(frozen=True, slots=True)
class Evenness:
    """Figures of one simulation. Loads are in means of all shards."""

    shards: int
    exponent: float
    largest_family: float  #: no shard can have less than that
    by_hashing: float  #: load of the most loaded shard
    after_moves: float
    moves: int
    moved_load: float  #: share of the whole load
    joined: float  #: share of the families that move when a shard is added

    def row(self) -> tuple[str, ...]:
        """Return the figures as texts, for a table."""
        loads = (f"{each:.2f}" for each in (self.largest_family, self.by_hashing, self.after_moves))
        return (
            str(self.shards),
            f"{self.exponent:g}",
            *loads,
            str(self.moves),
            f"{self.moved_load:.1%}",
            f"{self.joined:.2%}",
        )


def simulate(shards: int, families: int, exponent: float, seed: int) -> Evenness:
    """Place families of a load that falls with their rank, move them as suggested, and add a shard."""
    ranks = list(range(1, families + 1))
    random.Random(seed).shuffle(ranks)
    loads = {f"topic://VirtualTopic.Orders.{number}": rank**-exponent for number, rank in enumerate(ranks)}
    serving, mean = range(shards), sum(loads.values()) / shards
    where = {family: place(family, serving, {}) for family in loads}
    moved = dict(where)
    moves = [move for batch in _batches(loads, moved, serving) for move in batch]
    joined = sum(place(family, range(shards + 1), {}) != where[family] for family in loads)
    return Evenness(
        shards,
        exponent,
        max(loads.values()) / mean,
        _largest(loads, where) / mean,
        _largest(loads, moved) / mean,
        len(moves),
        sum(loads[each.family] for each in moves) / sum(loads.values()),
        joined / families,
    )


def _batches(loads: Mapping[str, float], where: dict[str, int], serving: Sequence[int]) -> Iterator[list[Move]]:
    """Yield suggested moves and make them, until there are none."""
    for _ in range(MAX_CALLS):
        moves = suggest_moves(loads, where, serving)
        if not moves:
            return
        where.update((each.family, each.target) for each in moves)
        yield moves


def _largest(loads: Mapping[str, float], where: Mapping[str, int]) -> float:
    found: dict[int, float] = {}
    for family, load in loads.items():
        found[where[family]] = found.get(where[family], 0.0) + load
    return max(found.values())


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    rows = [simulate(shards, asked.families, exponent, asked.seed).row() for exponent in EXPONENTS for shards in SHARDS]
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
