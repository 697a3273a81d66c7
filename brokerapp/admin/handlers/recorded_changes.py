"""Makes at this broker what its cluster has recorded."""

from __future__ import annotations

from brokerapp.admin.handlers.destination_operations import DeleteOperations
from brokerapp.core.ports import BrokerContext, DestinationRemovalPort, Destinations
from brokerapp.core.subscriptions.durable_subscriptions import DurableSubscriptions
from brokerapp.core.subscriptions.subscriptions import Subscriptions
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity


class RecordedChanges:
    """Makes changes that the cluster has recorded, even where consumers are connected."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        queues: Destinations,
        durables: DurableSubscriptions,
        subscriptions: Subscriptions,
        removal: DestinationRemovalPort,
        deletion: DeleteOperations,
    ) -> None:
        self._commits, self._queues, self._durables = context.commits, queues, durables
        self._subscriptions, self._removal, self._deletion = subscriptions, removal, deletion

    async def destroy(self, destination: Destination) -> None:
        """Delete a destination with its messages, and end its subscriptions."""
        if not destination.is_queue:
            self._removal.delete_topics([destination])
        elif (log := self._queues.get(str(destination))) is not None:
            self._subscriptions.dismiss(log, RequestRefused(f"{destination} was deleted by an operator"))
            await self._deletion.delete_queue(log)

    async def set_subscription(self, wanted: SubscriptionIdentity, exists: bool) -> None:
        """Create or replace a durable subscription, or delete it."""
        durable = self._durables.find_identity(wanted)
        if durable is not None and not (exists and durable.identity.has_same_contents(wanted)):
            refusal = RequestRefused(f"the {durable.identity} was deleted or replaced")
            self._subscriptions.dismiss(durable.log, refusal)
            self._durables.remove(durable)
            durable = None
        if exists and durable is None:
            self._durables.create(wanted)
        await self._commits.barrier()
