"""Requests: what operators ask of a running node, because it may hold the messages concerned in memory."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from brokerapp.admin.handlers.bulk_moves import BulkMoves, check_here
from brokerapp.admin.handlers.connection_reports import ConnectionReports
from brokerapp.admin.handlers.message_operations import MessageOperations
from brokerapp.admin.handlers.operator_send import TestSender
from brokerapp.admin.handlers.route_explainer import RouteExplainer
from brokerapp.cluster.record import ClusterChange
from brokerapp.core.broker import Broker
from brokerapp.core.publishing.group_commit import GroupCommit
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.errors import BrokerError, RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.store import StoredLogEntry
from brokerapp.tracing.schema import REMOVE

logger = logging.getLogger(__name__)

#: Messages purged in one unit.
PURGE_BATCH = 1_000
#: How often a queue that gets messages while it is deleted is emptied again.
DELETE_ATTEMPTS = 100
#: Why a queue gives out nothing for a moment: its messages are being taken out.
PURGING = "purging"


class AdminRequests:
    """Carries out one kind of request after the other for a node."""

    def __init__(
        self,
        broker: Broker,
        committer: GroupCommit,
        pump: Callable[[], None],
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        self._broker, self._committer, self._pump = broker, committer, pump
        self.refresh = refresh  #: route by the definitions in force, when this returns

    async def purge(self, destination: str) -> int:
        """Remove all messages of a queue but those in flight."""
        return await self._purge(self._broker.queues.find(Destination.parse(destination)))

    async def _purge(self, log: MessageLog) -> int:
        """Nothing is dispatched meanwhile. What arrives meanwhile may go or stay."""
        check_here(log)
        wanted, removed, after = log.depth - log.in_flight, 0, 0
        log.stopped.add(PURGING)
        try:
            while removed < wanted:
                found, gone = await self._take_out(log, after)
                if not found:
                    break
                removed += gone
                after = found[-1].seq
            await self._committer.barrier()
        finally:
            log.stopped.discard(PURGING)
            self._broker.dispatcher.touch(log)
            self._pump()
        return removed

    async def _take_out(self, log: MessageLog, after: int) -> tuple[list[StoredLogEntry], int]:
        """Remove what can be removed of the next messages; those, and how many of them are gone.

        That is settled in the very moment in which the store's answer comes: later a consumer may hold other messages.
        """
        check_here(log)
        window, done = log.window, asyncio.get_running_loop().create_future()

        def read(found: list[StoredLogEntry]) -> None:
            gone = log.take_out(found) if window == log.window else set()
            entries = [log_entry_of(log.name, each) for each in found if each.seq in gone]
            self._committer.remove_settled(entries)
            now_us = time.time_ns() // 1000
            for entry in entries:
                self._broker.dead_letters.record(REMOVE, now_us, entry, None, "removed by an operator")
            log.counts.left([entry.message for entry in entries])
            self._broker.counters.mark_changed(log.counts)
            done.set_result((found, len(gone)))

        self._committer.read(log.name, after, PURGE_BATCH, read)
        return await done

    async def pause(self, destination: str, paused: bool) -> None:
        """Give out nothing of a queue any more, also after a restart, or do again."""
        self._broker.queues.pause(self._broker.queues.find(Destination.parse(destination)), paused)
        await self._committer.barrier()

    async def numbers(self, destination: str) -> dict[str, Any] | None:
        """The numbers of a queue or topic as this node counts them now, and whether it publishes them as its owner.

        None: it has none here.
        """
        found = self._broker.counters.find(Destination.parse(destination))
        if found is None:
            return None
        self._broker.gauges.update(found)
        homes = self._broker.placement
        return {
            "owner": homes.is_local(destination),
            "numbers": homes.stats_aggregation.with_remote_parts(found).to_json(),
        }

    async def groups(self, destination: str) -> list[list[str]]:
        """The message groups of a queue, each with the client and the subscription that own it."""
        groups = self._broker.queues.find(Destination.parse(destination)).groups
        return [[name, owner.client.client_id, owner.name] for name, owner in groups or ()]

    async def forget_groups(self, destination: str, group: str | None) -> int:
        """Let a group of a queue, or all, be assigned anew with its next message; how many had an owner."""
        log = self._broker.queues.find(Destination.parse(destination))
        if log.groups is None:
            return 0
        gone = log.groups.clear() if group is None else int(log.groups.close(group))
        self._broker.dispatcher.touch(log)
        self._pump()
        return gone

    async def forget_selectors(self, destination: str, selector: str | None) -> bool:
        """Remember one selector of a queue's former consumers no longer, or none; whether there was any."""
        log = self._broker.queues.find(Destination.parse(destination))
        found = self._broker.queues.remembering.forget(log, selector)
        await self._committer.barrier()
        return found

    async def create(self, destination: str) -> bool:
        """Let a queue or topic exist until it is deleted; whether it did not before."""
        wanted = Destination.parse(destination)
        if wanted.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{wanted} is the log of a subscription: create that by its topic and name")
        self._broker.creation.check_named(wanted)
        is_new = not self._broker.creation.exists(wanted)
        await self._record(ClusterChange.of_destination(wanted))
        self._broker.creation.declare(wanted)
        await self._committer.barrier()
        return is_new

    async def create_subscription(self, attributes: dict[str, Any]) -> str:
        """Let a named subscription exist; the native name of its log."""
        wanted = SubscriptionIdentity.from_attributes(attributes)
        if not wanted.durable:
            raise RequestRefused(f"a {wanted} is there while it has consumers")
        self._broker.durables.check_free(wanted)
        await self._record(ClusterChange.of_subscription(wanted))
        durable = self._broker.durables.known_as(wanted) or self._broker.durables.create(wanted)
        await self._committer.barrier()
        return durable.log.name

    async def cluster(self) -> dict[str, Any] | None:
        """The cluster as this broker sees it; None: it is in none."""
        return self._broker.cluster.status().to_json() if self._broker.cluster is not None else None

    async def forget_waiting(self, job: str) -> None:
        """Let a message that waits until it is due be delivered no more."""
        found = asyncio.get_running_loop().create_future()
        self._broker.scheduler.remove(job, found.set_result)
        if not await found:
            raise RequestRefused(f"no message waits as job {job!r}")

    async def delete(self, destination: str) -> int:
        """Remove a queue or subscription with all it holds, or a topic; refused while it has consumers."""
        wanted = Destination.parse(destination)
        if not wanted.is_queue:
            return await self._delete_topic(wanted)
        log = self._broker.queues.find(wanted)
        if wanted.kind is DestinationKind.SUBSCRIPTION:
            return await self._delete_subscription(log)
        return await self._delete_queue(log)

    async def _delete_topic(self, topic: Destination) -> int:
        if self._broker.dispatcher.subscribers(topic) or self._broker.placement.propagation.sessions_listening(topic):
            raise RequestRefused(f"{topic} has subscribers")
        if durables := self._broker.durables.of_topic(topic):
            raise RequestRefused(f"{topic} has the {durables[0].subscription}")
        await self._record_end(topic)
        self._broker.removal.delete_topics([topic])
        return 0

    async def _delete_subscription(self, log: MessageLog) -> int:
        check_here(log)
        durable = self._broker.durables.of_log(log)
        if durable.subscription.durable and not durable.active:
            await self._record(ClusterChange.of_subscription(durable.subscription, False))
        if self._broker.queues.holds(log):
            self._broker.durables.remove(durable)
        await self._committer.barrier()
        return log.depth

    async def _delete_queue(self, log: MessageLog) -> int:
        check_here(log)
        _check_unused(log)
        await self._record_end(log.destination)
        return await self._remove(log)

    async def _remove(self, log: MessageLog) -> int:
        """Empty a queue, and remove it; how many messages."""
        removed = 0
        for _ in range(DELETE_ATTEMPTS):
            _check_unused(log)
            removed += await self._purge(log)
            await self._committer.barrier()
            if not self._broker.queues.holds(log):
                return removed
            check_here(log)
            if not (log.depth or log.coming or log.consumers or self._committer.has_pending_for(log.name)):
                self._broker.removal.delete(log)
                await self._committer.barrier()
                return removed
        raise RequestRefused(f"{log.destination} goes on getting messages: stop its producers first")

    # -- what is so everywhere in a cluster

    async def _record(self, change: ClusterChange) -> None:
        """Let the record of the broker's cluster say so first, if it is in one. Raises RequestRefused."""
        if self._broker.cluster is None:
            return
        done = asyncio.get_running_loop().create_future()
        self._broker.cluster.change(change, lambda why_not: done.done() or done.set_result(why_not))
        if why_not := await done:
            raise RequestRefused(why_not)

    async def _record_end(self, destination: Destination) -> None:
        """The same for a destination that is to go; one that no operator made is in no record: the others are told."""
        if self._broker.cluster is not None and not self._broker.creation.is_declared(destination):
            self._broker.cluster.on_destroyed(destination)
            return
        await self._record(ClusterChange.of_destination(destination, False))

    async def destroy(self, destination: Destination) -> None:
        """Remove a destination with all it holds, whoever consumes from it: it is gone in the whole cluster."""
        if not destination.is_queue:
            self._broker.removal.delete_topics([destination])
        elif (log := self._broker.queues.get(str(destination))) is not None:
            self._broker.subscriptions.dismiss(log, RequestRefused(f"{destination} was deleted by an operator"))
            await self._remove(log)

    async def set_subscription(self, wanted: SubscriptionIdentity, exists: bool) -> None:
        """Let a durable subscription exist as it is wanted, or no longer, whoever consumes it."""
        durable = self._broker.durables.known_as(wanted)
        if durable is not None and not (exists and durable.subscription.has_same_contents(wanted)):
            why = RequestRefused(f"the {durable.subscription} was deleted, or keeps something else now")
            self._broker.subscriptions.dismiss(durable.log, why)
            self._broker.durables.remove(durable)
            durable = None
        if exists and durable is None:
            self._broker.durables.create(wanted)
        await self._committer.barrier()


def _check_unused(log: MessageLog) -> None:
    """Raise RequestRefused when a queue has consumers."""
    if log.consumers or log.in_flight:
        raise RequestRefused(f"{log.destination} has consumers")


async def answer(
    broker: Broker,
    committer: GroupCommit,
    pump: Callable[[], None],
    refresh: Callable[[], Awaitable[None]],
    request: dict[str, Any],
    others: Mapping[str, Callable[..., Awaitable[Any]]],
) -> dict[str, Any]:
    """The reply to a request: {"result": ...} or {"error": sentence, "code": code}. `others` are further verbs."""
    desk, peers = AdminRequests(broker, committer, pump, refresh), ConnectionReports(broker, pump)
    transfers, steps = BulkMoves(broker), MessageOperations(broker)
    verbs: dict[str, Callable[..., Awaitable[Any]]] = {
        "purge": desk.purge,
        "create": desk.create,
        "create_subscription": desk.create_subscription,
        "delete": desk.delete,
        "forget_waiting": desk.forget_waiting,
        "refresh": desk.refresh,
        "pause": desk.pause,
        "numbers": desk.numbers,
        "groups": desk.groups,
        "forget_groups": desk.forget_groups,
        "forget_selectors": desk.forget_selectors,
        "cluster": desk.cluster,
        "peers": peers.peers,
        "offline": peers.offline,
        "close_connection": peers.close_connection,
        "move": transfers.move,
        "copy": transfers.copy,
        "retry": transfers.retry,
        "remove": transfers.remove,
        "step": steps.step,
        "edit": steps.edit,
        "send": TestSender(broker).send,
        "routes": TestSender(broker).routes,
        "explain": RouteExplainer(broker).explain,
        "circumstances": RouteExplainer(broker).circumstances,
        **others,
    }
    verb = verbs.get(request["verb"])
    if verb is None:
        return {"error": f"the node knows no {request['verb']!r}", "code": BrokerError.code}
    try:
        return {"result": await verb(**request["args"])}
    except BrokerError as error:
        return {"error": str(error), "code": error.code}
    except Exception:  # a fault of ours: who asked must not wait for an answer that never comes
        logger.exception("the request %s could not be carried out", request["verb"])
        return {"error": f"the node failed at {request['verb']}: see its log", "code": BrokerError.code}
