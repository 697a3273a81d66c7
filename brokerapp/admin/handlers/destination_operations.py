"""Creates and deletes destinations and durable subscriptions, for operators and for clients that manage those."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from brokerapp.admin.handlers.cluster_changes import ClusterChanges
from brokerapp.admin.handlers.log_pages import require_local
from brokerapp.admin.handlers.queue_operations import QueueOperations
from brokerapp.cluster.record import ClusterChange
from brokerapp.core.clients.authorizer import ClientAuthorizer
from brokerapp.core.destinations.auto_creation import AutoCreation
from brokerapp.core.ports import (
    BrokerContext,
    DestinationRemovalPort,
    Destinations,
    Replies,
    TopicListenersPort,
    TopicSubscribers,
)
from brokerapp.core.publishing.send_admission import SendAdmission
from brokerapp.core.subscriptions.durable_subscriptions import DurableSubscriptions
from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.errors import BrokerError, DestinationNotFound, RequestRefused
from brokerapp.model import JsonObject
from brokerapp.model.commands import DestinationCommand
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.store.requests import RequestStore

#: How often a queue that receives messages while it is deleted is purged again.
DELETE_ATTEMPTS = 100
#: Seconds that the deletion of what a client deletes may take: one of a million messages takes some ten.
DELETE_SECONDS = 60.0


class CreateOperations:
    """Creates what exists until it is deleted."""

    def __init__(
        self, *, context: BrokerContext, creation: AutoCreation, durables: DurableSubscriptions, cluster: ClusterChanges
    ) -> None:
        self._commits, self._creation, self._durables, self._cluster = context.commits, creation, durables, cluster

    async def create(self, destination: str) -> bool:
        """Create a queue or topic; return whether it did not exist before."""
        wanted = Destination.parse(destination)
        if wanted.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{wanted} belongs to a subscription. Create the subscription by topic and name.")
        self._creation.check_named(wanted)
        is_new = not self._creation.exists(wanted)
        await self._cluster.record(ClusterChange.of_destination(wanted))
        self._creation.declare(wanted)
        await self._commits.barrier()
        return is_new

    async def create_subscription(self, attributes: JsonObject) -> str:
        """Create a durable subscription; return the native name of its log."""
        wanted = SubscriptionIdentity.from_attributes(attributes)
        if not wanted.durable:
            raise RequestRefused(f"the {wanted} is not durable: it exists while it has consumers")
        self._durables.check_free(wanted)
        await self._cluster.record(ClusterChange.of_subscription(wanted))
        durable = self._durables.find_identity(wanted) or self._durables.create(wanted)
        await self._commits.barrier()
        return durable.log.name


class DeleteOperations:
    """Deletes destinations and subscriptions that have no consumers."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        queues: Destinations,
        durables: DurableSubscriptions,
        removal: DestinationRemovalPort,
        subscribers: TopicSubscribers,
        listeners: TopicListenersPort,
        queue_operations: QueueOperations,
        cluster: ClusterChanges,
    ) -> None:
        self._commits, self._queues, self._durables, self._removal = context.commits, queues, durables, removal
        self._subscribers, self._listeners = subscribers, listeners
        self._queue_operations, self._cluster = queue_operations, cluster

    async def delete(self, destination: str) -> int:
        """Delete a queue or subscription with its messages, or a topic; return how many messages.

        Raises RequestRefused while it has consumers.
        """
        wanted = Destination.parse(destination)
        if not wanted.is_queue:
            return await self._delete_topic(wanted)
        log = self._queues.find(wanted)
        require_local(log)
        if wanted.kind is DestinationKind.SUBSCRIPTION:
            return await self._delete_subscription(log)
        _require_unused(log)
        await self._cluster.record_removal(log.destination)
        return await self.delete_queue(log)

    async def _delete_topic(self, topic: Destination) -> int:
        if self._subscribers.of(topic) or self._listeners.sessions_listening(topic):
            raise RequestRefused(f"{topic} has subscribers")
        if durables := self._durables.of_topic(topic):
            raise RequestRefused(f"{topic} has the {durables[0].identity}")
        await self._cluster.record_removal(topic)
        self._removal.delete_topics([topic])
        return 0

    async def _delete_subscription(self, log: MessageLog) -> int:
        durable = self._durables.of_log(log)
        if durable.identity.durable and not durable.is_active:
            await self._cluster.record(ClusterChange.of_subscription(durable.identity, False))
        if self._queues.holds(log):
            self._durables.remove(durable)
        await self._commits.barrier()
        return log.depth

    async def delete_queue(self, log: MessageLog) -> int:
        """Purge a queue and delete it; return how many messages were removed."""
        removed = 0
        for _ in range(DELETE_ATTEMPTS):
            _require_unused(log)
            removed += await self._queue_operations.purge_log(log)
            await self._commits.barrier()
            if not self._queues.holds(log):
                return removed
            require_local(log)
            if not (log.depth or log.uncommitted_bytes or log.consumers or self._commits.has_pending_for(log.name)):
                self._removal.delete(log)
                await self._commits.barrier()
                return removed
        raise RequestRefused(
            f"Cannot delete {log.destination}: it is still receiving messages. Stop its producers first."
        )


def _require_unused(log: MessageLog) -> None:
    if log.consumers or log.in_flight:
        raise RequestRefused(f"{log.destination} has consumers")


class ClientDeletions:
    """Creates destinations for clients (JMS: ActiveMQConnection), and has those deleted that clients delete.

    These are deleted as operators do it: with their messages, by the node that owns them, unless they have consumers.
    """

    def __init__(
        self,
        *,
        admission: SendAdmission,
        authorizer: ClientAuthorizer,
        perform_temporary: Callable[[Client, DestinationCommand], None],
        replies: Replies,
        request_dispatch: Callable[[], None],
        requests: RequestStore,
    ) -> None:
        self._admission, self._authorizer, self._replies = admission, authorizer, replies
        self._perform_temporary, self._request_dispatch = perform_temporary, request_dispatch
        self._requests = requests
        self._wanted: asyncio.Queue[tuple[Client, DestinationCommand]] = asyncio.Queue()

    def perform(self, client: Client, command: DestinationCommand) -> None:
        """Create a destination, or have it deleted. Raises RequestRefused."""
        if command.destination.is_temporary:
            self._perform_temporary(client, command)
            return
        self._authorizer.require(client, "admin", command.destination)
        if command.is_created:
            self._admission.ensure(command.destination)
            self._replies.confirm_after(client, command.receipt)
        else:
            self._wanted.put_nowait((client, command))

    async def run(self) -> None:
        """Delete one destination after the other, until cancelled."""
        while True:
            client, command = await self._wanted.get()
            try:
                reply = await self._requests.send("delete", {"destination": str(command.destination)}, DELETE_SECONDS)
            except BrokerError as error:
                reply = {"error": str(error), "code": error.code}
            if "error" in reply and reply["code"] != DestinationNotFound.code:
                self._replies.refuse(client, RequestRefused(reply["error"]), command.receipt)
            else:
                self._replies.confirm_after(client, command.receipt)
            self._request_dispatch()
