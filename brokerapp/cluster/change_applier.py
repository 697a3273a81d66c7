"""Apply the changes of a cluster's record at this broker, one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from brokerapp.cluster.record import ClusterChange
from brokerapp.core.ports import Commits, DestinationDeclarations, DurablesPort
from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity

logger = logging.getLogger(__name__)


class OperatorRequests(Protocol):
    """Carries out what operators ask."""

    async def set_subscription(self, subscription: SubscriptionIdentity, exists: bool) -> None: ...

    async def destroy(self, destination: Destination) -> None: ...


class LogPlacement(Protocol):
    """Knows the owner of each log among the nodes of the broker."""

    @property
    def is_alone(self) -> bool: ...

    def is_local(self, log: str) -> bool: ...


class ChangeApplier:
    """Applies changes of what this node owns, in the order in which they come.

    `operations` deletes destinations and sets subscriptions.
    """

    def __init__(
        self,
        *,
        creation: DestinationDeclarations,
        durables: DurablesPort,
        commits: Commits,
        operations: OperatorRequests,
        placement: LogPlacement,
    ) -> None:
        self._placement = placement
        self._creation, self._durables, self._commits, self._operations = creation, durables, commits, operations
        self._queue: asyncio.Queue[ClusterChange | Callable[[], None]] = asyncio.Queue()

    # -- see ChangeTarget

    def apply_later(self, change: ClusterChange) -> None:
        if self.concerns(change):
            self._queue.put_nowait(change)

    def call_when_applied(self, then: Callable[[], None]) -> None:
        self._queue.put_nowait(then)

    def existing(self) -> list[ClusterChange]:
        subscriptions = (each.identity for each in self._durables)
        return [
            *map(ClusterChange.of_destination, self._creation.declared()),
            *(ClusterChange.of_subscription(each) for each in subscriptions if each.durable),
        ]

    def concerns(self, change: ClusterChange) -> bool:
        if (subscription := change.subscription) is None:
            return self._placement.is_local(str(change.destination))
        durable = self._durables.find_identity(subscription)
        return self._placement.is_local(str(subscription.log(1)) if durable is None else durable.log.name)

    @property
    def is_shared(self) -> bool:
        return not self._placement.is_alone

    # -- the loop

    async def run(self) -> None:
        """Apply queued changes, one after the other, until cancelled."""
        while True:
            next_one = await self._queue.get()
            if not isinstance(next_one, ClusterChange):
                next_one()
                continue
            try:
                await self._apply(next_one)
            except StoreUnavailable:
                raise
            except BrokerError as error:
                logger.warning("cluster: %s differs from the record: %s", next_one.name, error)

    async def _apply(self, change: ClusterChange) -> None:
        subscription = change.subscription
        if subscription is not None:
            await self._operations.set_subscription(subscription, change.exists)
        elif change.exists:
            self._creation.declare(change.destination)
            await self._commits.barrier()
        else:
            await self._operations.destroy(change.destination)
