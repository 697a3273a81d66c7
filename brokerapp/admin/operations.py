"""Operations on destinations and messages. They need a running node unless they say otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brokerapp.admin.client_base import AdminClientBase
from brokerapp.cluster.status import ClusterStatus
from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.destination import Destination, check_one
from brokerapp.model.selector_prefixes import condition_of
from brokerapp.model.stats_records import MessageOperationOutcome
from brokerapp.model.subscription_identity import SubscriptionIdentity, check_subscription_name
from brokerapp.selectors import compile_selector


class OperationsAdmin(AdminClientBase):
    """Creates, changes and deletes destinations, and operates on their messages."""

    # -- destinations

    async def create(self, destination: Destination) -> bool:
        """Create a queue or topic; return whether it did not exist before. Needs a live node."""
        check_one(destination, or_pattern=True)  # the node knows which queue may be called like one
        return await self._ask("create", destination=str(destination))

    async def create_subscription(self, subscription: SubscriptionIdentity) -> Destination:
        """Create a durable subscription; return the destination of its messages. Needs a live node.

        Raises RequestRefused when it is there already, SelectorSyntaxError.
        """
        check_subscription_name(subscription.name)
        if subscription.selector:
            compile_selector(subscription.selector)
        return Destination.parse(await self._ask("create_subscription", attributes=subscription.attributes()))

    async def delete(self, destination: Destination) -> int:
        """Delete a queue, topic or subscription with its messages; return how many messages.

        Refused while it has consumers.
        """
        if destination.is_queue and not await self._store.nodes.has_live_node():
            await self._open()
            return await self._store.logs.drop(await self._log(destination), "")
        return await self._ask("delete", destination=str(destination))

    async def purge(self, destination: Destination) -> int:
        """Remove all messages that are not in flight; return how many."""
        log = await self._log(destination)
        if not await self._store.nodes.has_live_node():
            await self._open()
            return await self._store.logs.drop(log, "", keep=True)
        return await self._ask("purge", destination=str(destination))

    async def pause(self, queue: Destination, paused: bool = True) -> None:
        """Pause delivery from a queue until it is resumed, also after a restart; or resume it."""
        await self._ask("pause", destination=str(queue), paused=paused)

    async def is_paused(self, queue: Destination) -> bool:
        """Return whether delivery is paused. Raises DestinationNotFound."""
        return bool((await self._store.logs.attributes(await self._log(queue))).get("paused"))

    async def cluster(self) -> ClusterStatus | None:
        """Return the cluster as this broker sees it; None without a cluster. Needs a live node."""
        found = await self._ask("cluster")
        return None if found is None else ClusterStatus.from_json(found)

    # -- messages

    async def move(self, queue: Destination, target: Destination, **which: JsonValue) -> int:
        """Move messages to another destination, in order; return how many.

        `which`: selector, ids (message-ids) and limit; without any of them all that consumers do not hold.
        """
        return await self._ask("move", queue=str(queue), target=str(target), **_checked(which))

    async def copy(self, queue: Destination, target: Destination, **which: JsonValue) -> int:
        """Copy messages to another destination, in order; return how many. Raises LimitExceeded when that is full."""
        return await self._ask("copy", queue=str(queue), target=str(target), **_checked(which))

    async def resubmit(self, queue: Destination, **which: JsonValue) -> int:
        """Resubmit dead letters to their original destinations, in order; return how many."""
        return await self._ask("retry", queue=str(queue), **_checked(which))

    async def remove(self, queue: Destination, **which: JsonValue) -> int:
        """Remove messages; return how many."""
        return await self._ask("remove", queue=str(queue), **_checked(which))

    async def step(
        self,
        action: str,
        queue: Destination,
        seqs: Sequence[int],
        target: Destination | None = None,
        actor: str = "",
        edit: JsonObject | None = None,
    ) -> list[MessageOperationOutcome]:
        """Move, copy, resubmit (`retry`), remove or edit (MessageEdit as JSON) up to 500 messages; return the outcomes.

        Each message leaves the queue and reaches its target in one unit of the store, so that repeating a step does
        nothing twice, unless it copies. Edited messages go to the target; without one, dead letters go to their
        original destination and other messages stay in their queue.
        """
        to = str(target) if target is not None else None
        what = {"action": action, "queue": str(queue), "seqs": list(seqs), "target": to, "actor": actor}
        found = await self._ask("step", **what, edit=edit)
        return [MessageOperationOutcome(*each) for each in found]

    async def edit(self, queue: Destination, seq: int, message: JsonObject, actor: str = "") -> JsonObject:
        """Replace a message by another one (OperatorMessage) atomically; return its id and the `places` it reached."""
        return await self._ask("edit", queue=str(queue), seq=seq, message=message, actor=actor)

    async def send(self, message: JsonObject, count: int = 1, actor: str = "") -> JsonObject:
        """Send copies of an OperatorMessage; return `id` of the first, `count`, `queues` and `topics`."""
        return await self._ask("send", message=message, count=count, actor=actor)

    async def routes(self, messages: Sequence[tuple[Destination, dict[str, str]]]) -> list[JsonObject]:
        """Return for messages with these headers `queues` and `topics` that they would reach, or an `error`."""
        return await self._ask("routes", messages=[[str(destination), headers] for destination, headers in messages])

    async def cancel_scheduled(self, job: str) -> None:
        """Cancel a scheduled message. Needs a live node. Raises RequestRefused if there is none."""
        await self._ask("forget_waiting", job=job)

    # -- what a node remembers of a queue's consumers

    async def groups(self, queue: Destination) -> list[list[str]]:
        """Return the message groups of a queue, each with the client and the subscription that own it."""
        return await self._ask("groups", destination=str(queue))

    async def reset_groups(self, queue: Destination, group: str | None = None) -> int:
        """Reset the assignment of one message group, or of all; return how many had an owner."""
        return await self._ask("forget_groups", destination=str(queue), group=group)

    async def selectors(self) -> dict[Destination, dict[str, int]]:
        """Return the remembered selectors by queue, with the time of their last use (ms since the epoch)."""
        logs = await self._store.logs.all_attributes()
        return {
            Destination.parse(name): _conditions(each["selectors"])
            for name, each in logs.items()
            if each.get("selectors")
        }

    async def selectors_of(self, queue: Destination) -> dict[str, int]:
        """Return the remembered selectors of one queue, with the time of their last use."""
        return _conditions((await self._store.logs.attributes(str(queue))).get("selectors", {}))

    async def delete_selectors(self, queue: Destination, selector: str | None = None) -> bool:
        """Delete one remembered selector of a queue, or all; return whether there was one."""
        return await self._ask("forget_selectors", destination=str(queue), selector=selector)


def _conditions(selectors: Mapping[str, int]) -> dict[str, int]:
    """Return selectors as their clients wrote them."""
    return {condition_of(each): used_ms for each, used_ms in selectors.items()}


def _checked(which: Mapping[str, JsonValue]) -> JsonObject:
    """Return criteria in the form of a request. Raises SelectorSyntaxError."""
    if unknown := sorted(which.keys() - {"selector", "ids", "limit"}):
        raise TypeError(f"unknown criteria: {', '.join(unknown)}")
    if which.get("selector"):
        compile_selector(which["selector"])
    return {name: list(value) if name == "ids" else value for name, value in which.items() if value is not None}
