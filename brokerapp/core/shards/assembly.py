"""Build what takes the writes of a broker: one group commit, or one for each shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.core.publishing.group_commit import GroupCommit
from brokerapp.core.shards.log_locations import LogLocations
from brokerapp.core.shards.shard_placement import ShardPlacement
from brokerapp.core.shards.sharded_commits import ShardedCommits
from brokerapp.model.definitions import Definitions
from brokerapp.store import CommitBatch, StoreLimits


@dataclass(frozen=True, slots=True)
class ShardStores:
    """The stores of a broker with shards. `placement` chooses where new logs go, for the definitions in force."""

    stores: Mapping[int, CommitStore]
    limits: Mapping[int, StoreLimits]  #: of each: its quota of the broker's
    placement: Callable[[Callable[[], Definitions]], ShardPlacement]


def build_commits(
    *,
    store: CommitStore,
    shards: ShardStores | None,
    session: str,
    limits: StoreLimits,
    definitions: Callable[[], Definitions],
    on_spread: Callable[[Iterable[str]], None],
    on_batch: Callable[[CommitBatch], None],
    **options: Any,
) -> GroupCommit | ShardedCommits:
    """Return what takes the writes of a broker: of one store, or of several shards."""
    if shards is None:
        return GroupCommit(store=store, session=session, store_limits=limits, on_batch=on_batch, **options)
    placement = shards.placement(definitions)
    commits: ShardedCommits

    def on_batch_of_shard(batch: CommitBatch) -> None:
        on_batch(batch)
        commits.on_batch(batch)

    groups = {
        number: GroupCommit(
            store=each,
            session=session,
            store_limits=shards.limits[number],
            on_batch=on_batch_of_shard,
            claim=partial(placement.claim, number),
            **options,
        )
        for number, each in shards.stores.items()
    }
    commits = ShardedCommits(groups, LogLocations(placement.place), store, session, limits, on_spread)
    return commits
