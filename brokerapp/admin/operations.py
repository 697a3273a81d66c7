"""Operations: what is done to destinations and to messages. It needs a live node, unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brokerapp.admin.client_base import AdminClientBase
from brokerapp.cluster.status import ClusterStatus
from brokerapp.model.destination import Destination, check_one
from brokerapp.model.stats_records import MessageOperationOutcome
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.selectors import compile_selector


class OperationsAdmin(AdminClientBase):
    """A part of BrokerAdmin."""

    # -- destinations

    async def create(self, destination: Destination) -> bool:
        """Make the queue or topic exist until it is deleted; whether it did not before. Needs a live node."""
        check_one(destination, or_pattern=True)  # the node knows which queue may be called like one
        return await self._ask("create", destination=str(destination))

    async def create_subscription(self, subscription: SubscriptionIdentity) -> Destination:
        """Let a durable subscription exist; what its messages are named by. Needs a live node.

        Raises RequestRefused when it is there already, SelectorSyntaxError.
        """
        if subscription.selector:
            compile_selector(subscription.selector)
        return Destination.parse(await self._ask("create_subscription", attributes=subscription.attributes()))

    async def delete(self, destination: Destination) -> int:
        """Remove the queue, topic or subscription with all it holds; how many messages.

        Refused while it has consumers.
        """
        if destination.is_queue and not await self._store.nodes.has_live_node():
            await self._open()
            return await self._store.logs.drop(await self._log(destination), "")
        return await self._ask("delete", destination=str(destination))

    async def purge(self, destination: Destination) -> int:
        """Remove all messages not in flight; how many."""
        log = await self._log(destination)
        if not await self._store.nodes.has_live_node():
            await self._open()
            return await self._store.logs.drop(log, "", keep=True)
        return await self._ask("purge", destination=str(destination))

    async def pause(self, queue: Destination, paused: bool = True) -> None:
        """Give out nothing of a queue any more, also after a restart; or do again. What comes is kept."""
        await self._ask("pause", destination=str(queue), paused=paused)

    async def is_paused(self, queue: Destination) -> bool:
        """Whether nothing of it is given out. Raises DestinationNotFound."""
        return bool((await self._store.logs.attributes(await self._log(queue))).get("paused"))

    async def cluster(self) -> ClusterStatus | None:
        """The cluster as this broker sees it: members, master, record; None: it is in none. Needs a live node."""
        found = await self._ask("cluster")
        return None if found is None else ClusterStatus.from_json(found)

    # -- messages

    async def move(self, queue: Destination, target: Destination, **which: Any) -> int:
        """Move messages to another destination, in order; how many.

        `which`: selector, ids (message-ids) and limit; without any of them all that consumers do not hold.
        """
        return await self._ask("move", queue=str(queue), target=str(target), **_checked(which))

    async def copy(self, queue: Destination, target: Destination, **which: Any) -> int:
        """Copy messages to another destination, in order; how many. LimitExceeded when that is full."""
        return await self._ask("copy", queue=str(queue), target=str(target), **_checked(which))

    async def retry(self, queue: Destination, **which: Any) -> int:
        """Move dead letters back to where they failed, in order; how many."""
        return await self._ask("retry", queue=str(queue), **_checked(which))

    async def remove(self, queue: Destination, **which: Any) -> int:
        """Remove messages; how many."""
        return await self._ask("remove", queue=str(queue), **_checked(which))

    async def step(
        self,
        action: str,
        queue: Destination,
        seqs: Sequence[int],
        target: Destination | None = None,
        actor: str = "",
        edit: dict[str, Any] | None = None,
    ) -> list[MessageOperationOutcome]:
        """Move, copy, retry, remove or edit (Edit as JSON) these messages, by number, at most 500; how each ended.

        Messages leave the queue and come to where they go in one moment: who repeats a step that moves, retries,
        removes or edits does nothing twice. What is edited goes to the target, or else a dead letter to where it
        failed and others to where they are.
        """
        to = str(target) if target is not None else None
        what = {"action": action, "queue": str(queue), "seqs": list(seqs), "target": to, "actor": actor}
        found = await self._ask("step", **what, edit=edit)
        return [MessageOperationOutcome(*each) for each in found]

    async def edit(self, queue: Destination, seq: int, message: dict[str, Any], actor: str = "") -> dict[str, Any]:
        """Send a message (an OperatorMessage) in place of this one, atomically; its id, and `places` it came to."""
        return await self._ask("edit", queue=str(queue), seq=seq, message=message, actor=actor)

    async def send(self, message: dict[str, Any], count: int = 1, actor: str = "") -> dict[str, Any]:
        """Send messages (OperatorMessage) as a client would; the first's `id`, `count`, `queues` and `topics`."""
        return await self._ask("send", message=message, count=count, actor=actor)

    async def routes(self, messages: Sequence[tuple[Destination, dict[str, str]]]) -> list[dict[str, Any]]:
        """Where messages with these headers would come now: of each `queues`, `topics`, or an `error`."""
        return await self._ask("routes", messages=[[str(destination), headers] for destination, headers in messages])

    async def forget_waiting(self, job: str) -> None:
        """Let a message that waits be delivered no more. Needs a live node; RequestRefused for no such job."""
        await self._ask("forget_waiting", job=job)

    # -- what a node remembers of a queue's consumers

    async def groups(self, queue: Destination) -> list[list[str]]:
        """The message groups of a queue, each with the client and the subscription that own it."""
        return await self._ask("groups", destination=str(queue))

    async def forget_groups(self, queue: Destination, group: str | None = None) -> int:
        """Let one group, or all, be assigned anew with their next messages; how many had an owner."""
        return await self._ask("forget_groups", destination=str(queue), group=group)

    async def selectors(self) -> dict[Destination, dict[str, int]]:
        """What is remembered of consumers: by queue, selectors with the time of their last use (ms since the epoch)."""
        logs = await self._store.logs.all_attributes()
        return {Destination.parse(name): each["selectors"] for name, each in logs.items() if each.get("selectors")}

    async def selectors_of(self, queue: Destination) -> dict[str, int]:
        """The same of one queue."""
        return (await self._store.logs.attributes(str(queue))).get("selectors", {})

    async def forget_selectors(self, queue: Destination, selector: str | None = None) -> bool:
        """Remember one selector of a queue's former consumers no longer, or none; whether there was any."""
        return await self._ask("forget_selectors", destination=str(queue), selector=selector)


def _checked(which: Mapping[str, Any]) -> dict[str, Any]:
    """Which messages, as the node is asked. Raises SelectorSyntaxError."""
    if unknown := sorted(which.keys() - {"selector", "ids", "limit"}):
        raise TypeError(f"unknown criteria: {', '.join(unknown)}")
    if which.get("selector"):
        compile_selector(which["selector"])
    return {name: list(value) if name == "ids" else value for name, value in which.items() if value is not None}
