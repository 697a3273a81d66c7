"""Build what takes the writes of a broker: one group commit for each of its shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.core.ports.commit_store import CommitStore
from brokerapp.core.shards.log_locations import LogLocations
from brokerapp.core.shards.shard_placement import ShardPlacement
from brokerapp.core.shards.sharded_commits import ShardedCommits
from brokerapp.store import CommitBatch, StoreLimits


class CommitsBuilder:
    """Builds the group commits of a broker, and that of a shard which is added later.

    `store` answers questions about all logs, `stores` are the shards with their quotas of the limits, `options` those
    of GroupCommit which all have in common.
    """

    def __init__(
        self,
        *,
        store: CommitStore,
        stores: Mapping[int, tuple[CommitStore, StoreLimits]],
        session: str,
        placement: ShardPlacement,
        on_spread: Callable[[Iterable[str]], None],
        on_batch: Callable[[CommitBatch], None],
        **options: Any,
    ) -> None:
        self._session, self._placement, self._on_batch, self._options = session, placement, on_batch, options
        groups = {number: self._group(number, *each) for number, each in stores.items()}
        locations = LogLocations(placement)
        self.commits = ShardedCommits(groups, locations, store, session, on_spread)

    def add(self, number: int, store: CommitStore, limits: StoreLimits) -> None:
        """Let the broker write to one more shard."""
        self.commits.add(number, self._group(number, store, limits))

    def _group(self, number: int, store: CommitStore, limits: StoreLimits) -> GroupCommit:
        return GroupCommit(
            store=store,
            session=self._session,
            store_limits=limits,
            claim=partial(self._placement.claim, number),
            on_batch=self._report,
            **self._options,
        )

    def _report(self, batch: CommitBatch) -> None:
        self._on_batch(batch)
        self.commits.on_batch(batch)
