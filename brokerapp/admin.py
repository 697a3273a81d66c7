"""BrokerAdmin: what an operator can ask of a broker. One door for brokerctl and for the console.

It needs the store only. What touches messages a node may hold (purge) is asked of the home node through the store and
done on the store itself when no node is alive.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from brokerapp.clock import now_ms
from brokerapp.definitions import Definitions, from_json, to_json
from brokerapp.destination import Destination
from brokerapp.engine.bindings import Binding, is_at
from brokerapp.engine.job import Job
from brokerapp.engine.loops import find_loop
from brokerapp.errors import (
    BrokerError,
    DefinitionRefused,
    DestinationNotFound,
    LimitExceeded,
    RequestRefused,
    StoreUnavailable,
)
from brokerapp.message import Message
from brokerapp.named_subscription import SUBSCRIPTION, NamedSubscription
from brokerapp.peers_admin import PeersAdmin
from brokerapp.selectors import Seen, compile_selector
from brokerapp.snapshot import (
    BrowsedMessage,
    BrowsePage,
    DestinationStats,
    NodeStatus,
    StepOutcome,
    SubscriptionStats,
    WaitingMessage,
)
from brokerapp.store import DISCARDED, StoredEntry, StoredJob
from brokerapp.store.redis import RedisStore

#: Seconds a node may take over a request; a purge of a million messages takes some ten.
REQUEST_SECONDS = 60.0
#: A moment after all others, milliseconds since the epoch.
END_OF_TIME_MS = 10**15
#: Messages looked at in one call of the store while browsing.
BROWSE_PAGE = 500


class BrokerAdmin:
    """Asynchronous; belongs to the event loop it is opened on. Raises BrokerError's branches only."""

    def __init__(self, redis_url: str, broker: str) -> None:
        self.redis_url, self.broker = redis_url, broker
        self._store = RedisStore(redis_url, broker)
        self.rings = self._store.rings  #: the history: see brokerapp.history
        self.peers = PeersAdmin(self._store, self._ask)  #: who is connected, and what subscriptions keep
        self._opened = False

    async def close(self) -> None:
        """Give back the connections."""
        await self._store.close()

    # -- numbers

    async def stats(self, since: int = 0) -> tuple[int, list[DestinationStats], list[Destination]]:
        """The snapshot's version, the destinations changed after version `since`, and those deleted after it.

        With `since=0` all that exist. Nodes write a new version once a second when something changed. Without a node
        the queues of the store are listed, with their depths.
        """
        version, rows, gone = await self._store.stats(since)
        changed = [DestinationStats.from_json(json.loads(row)) for row in rows]
        if since == 0 and await self._store.node() is None:
            changed = await self._stored_queues()
        return version, changed, [Destination.parse(name) for name in gone]

    async def _stored_queues(self) -> list[DestinationStats]:
        logs = await self._logs()
        depths = await self._store.depths(list(logs))
        return [DestinationStats(Destination.parse(name), QueueSize=depth) for name, depth in depths.items()]

    async def _logs(self) -> dict[str, dict[str, Any]]:
        """The logs that exist, with their attributes."""
        return {name: each for name, each in (await self._store.logs()).items() if each.get("kind") != DISCARDED}

    async def subscriptions(self) -> list[SubscriptionStats]:
        """The named subscriptions of topics, durable and shared, online or not."""
        _, stats, _ = await self.stats()
        numbers = {str(each.destination): each for each in stats}
        return [
            SubscriptionStats(
                NamedSubscription.from_attributes(attributes),
                numbers.get(name) or DestinationStats(Destination.parse(name)),
            )
            for name, attributes in (await self._logs()).items()
            if attributes.get("kind") == SUBSCRIPTION
        ]

    async def watch(self) -> AsyncIterator[int]:
        """Version numbers of snapshots as they come; a lost one is of no consequence. Ends with StoreUnavailable."""
        async for signal in self._store.signals():
            word, _, version = signal.partition(" ")
            if word == "stats":
                yield int(version)

    async def nodes(self) -> list[NodeStatus]:
        """The live nodes."""
        status = await self._store.node()
        if status is None:
            return []
        known = NodeStatus.__dataclass_fields__
        return [NodeStatus(**{name: value for name, value in status.items() if name in known})]

    async def used(self) -> tuple[int, dict[str, int]]:
        """Bytes that all messages in the store take, and those of each log, by its native name."""
        return await self._store.used()

    # -- messages

    async def browse(
        self, destination: Destination, after: int = 0, limit: int = 50, selector: str | None = None,
        scan: int = 10_000,
    ) -> BrowsePage:  # fmt: skip
        """Messages of a queue or subscription with seq > after, without consuming them.

        At most `scan` are looked at in one call.

        Raises SelectorSyntaxError, DestinationNotFound.
        """
        wanted = compile_selector(selector) if selector else None
        log = await self._log(destination)
        found: list[BrowsedMessage] = []
        scanned = 0
        while scanned < scan:
            page = await self._store.read(log, after, min(BROWSE_PAGE, scan - scanned))
            for entry in page:
                message = _browsed(entry, destination)
                scanned, after = scanned + 1, entry.seq
                if wanted is None or wanted.matches(Seen(message.headers, message.body)):
                    found.append(message)
                    if len(found) == limit:
                        more = await self._store.read(log, after, 1)
                        return BrowsePage(found, scanned, after if more else None)
            if not page:
                return BrowsePage(found, scanned, None)
        return BrowsePage(found, scanned, after)

    async def message(self, destination: Destination, seq: int) -> BrowsePage:
        """The one message at seq (a page of one, or of none when it is gone)."""
        log = await self._log(destination)
        page = await self._store.read(log, seq - 1, 1)
        found = [_browsed(entry, destination) for entry in page if entry.seq == seq]
        return BrowsePage(found, len(page), None)

    async def place(self, destination: Destination, before: int | None = None, count: int = 50) -> int:
        """The number after which the last `count` messages before `before` begin; without it, the newest ones."""
        return await self._store.back(await self._log(destination), before, count)

    async def last(self, destination: Destination) -> int:
        """The number of the newest message; 0 when there is none."""
        return await self._store.newest(await self._log(destination))

    async def depth(self, destination: Destination) -> int:
        """How many messages it holds."""
        log = await self._log(destination)
        return (await self._store.depths([log]))[log]

    async def place_at(self, destination: Destination, time_ms: int) -> int:
        """The number after which messages begin that came at this moment (ms since the epoch) or later.

        Messages are in the order in which they came, so that some thirty of a million need to be looked at.
        """
        log = await self._log(destination)
        low, high = 0, await self._store.newest(log)
        while low < high:
            middle = (low + high) // 2
            [entry] = await self._store.read(log, middle, 1) or [None]
            if entry is None or came_ms(entry.message) >= time_ms:
                high = middle
            else:
                low = entry.seq
        return low

    async def _log(self, destination: Destination) -> str:
        """The log of a queue or subscription that exists."""
        if not destination.is_queue:
            raise DestinationNotFound(f"{destination} is a topic: it stores no messages")
        queue = destination.physical
        attributes = (await self._logs()).get(str(queue))
        if attributes is None or not is_at(destination, Binding.from_json(queue.name, attributes)):
            raise DestinationNotFound(f"there is no {destination}")
        return str(queue)

    async def purge(self, destination: Destination) -> int:
        """Remove all messages not in flight; how many."""
        log = await self._log(destination)
        if await self._store.node() is None:
            await self._open()
            return await self._store.drop(log, "", keep=True)
        return await self._ask("purge", destination=str(destination))

    async def create(self, destination: Destination) -> None:
        """Make the queue or topic exist. Needs a live node."""
        await self._ask("create", destination=str(destination))

    async def create_subscription(self, subscription: NamedSubscription) -> Destination:
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
        if destination.is_queue and await self._store.node() is None:
            await self._open()
            return await self._store.drop(await self._log(destination), "")
        return await self._ask("delete", destination=str(destination))

    # -- what is done to a queue, and to some of its messages: needs a live node

    async def pause(self, queue: Destination, paused: bool = True) -> None:
        """Give out nothing of a queue any more, also after a restart; or do again. What comes is kept."""
        await self._ask("pause", destination=str(queue), paused=paused)

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
        self, action: str, queue: Destination, seqs: Sequence[int], target: Destination | None = None, actor: str = ""
    ) -> list[StepOutcome]:
        """Move, copy, retry or remove these messages, named by their numbers, at most 500; how it ended for each.

        Messages leave the queue and come to where they go in one moment: who repeats a step that moves, retries or
        removes does nothing twice.
        """
        to = str(target) if target is not None else None
        found = await self._ask("step", action=action, queue=str(queue), seqs=list(seqs), target=to, actor=actor)
        return [StepOutcome(*each) for each in found]

    async def edit(self, queue: Destination, seq: int, message: dict[str, Any], actor: str = "") -> dict[str, Any]:
        """Send a message (TestSend as JSON) in place of this one, in one moment; its id, and `places` it came to."""
        return await self._ask("edit", queue=str(queue), seq=seq, message=message, actor=actor)

    async def send(self, message: dict[str, Any], count: int = 1, actor: str = "") -> dict[str, Any]:
        """Send messages (TestSend as JSON) as a client would; the first's `id`, `count`, `queues` and `topics`."""
        return await self._ask("send", message=message, count=count, actor=actor)

    async def routes(self, messages: Sequence[tuple[Destination, dict[str, str]]]) -> list[dict[str, Any]]:
        """Where messages with these headers would come now: of each `queues`, `topics`, or an `error`."""
        return await self._ask("routes", messages=[[str(destination), headers] for destination, headers in messages])

    async def groups(self, queue: Destination) -> list[list[str]]:
        """The message groups of a queue, each with the client and the subscription that own it."""
        return await self._ask("groups", destination=str(queue))

    async def forget_groups(self, queue: Destination, group: str | None = None) -> int:
        """Let one group, or all, be assigned anew with their next messages; how many had an owner."""
        return await self._ask("forget_groups", destination=str(queue), group=group)

    async def selectors(self) -> dict[Destination, dict[str, int]]:
        """What is remembered of consumers: by queue, selectors with the time of their last use (ms since the epoch)."""
        logs = await self._store.logs()
        return {Destination.parse(name): each["selectors"] for name, each in logs.items() if each.get("selectors")}

    async def selectors_of(self, queue: Destination) -> dict[str, int]:
        """The same of one queue."""
        return (await self._store.attributes(str(queue))).get("selectors", {})

    async def forget_selectors(self, queue: Destination, selector: str | None = None) -> bool:
        """Remember one selector of a queue's former consumers no longer, or none; whether there was any."""
        return await self._ask("forget_selectors", destination=str(queue), selector=selector)

    async def _ask(self, verb: str, **arguments: Any) -> Any:
        if await self._store.node() is None:
            raise StoreUnavailable(f"no node of broker {self.broker!r} is running")
        reply = await self._store.request(verb, arguments, REQUEST_SECONDS)
        if "error" in reply:
            raise _ERRORS.get(reply["code"], BrokerError)(reply["error"])
        return reply["result"]

    # -- messages that wait until they are due

    async def waiting(
        self, start_ms: int = 0, end_ms: int = END_OF_TIME_MS, skip: int = 0, limit: int = 50
    ) -> tuple[int, list[WaitingMessage]]:
        """How many wait, and those due from one moment to another, in order of time, after the first `skip`."""
        found = await self._store.jobs(start_ms, end_ms, skip, limit)
        return await self._store.job_count(), [_waiting(each) for each in found]

    async def forget_waiting(self, job: str) -> None:
        """Let a message that waits be delivered no more. Needs a live node; RequestRefused for no such job."""
        await self._ask("forget_waiting", job=job)

    # -- definitions

    async def definitions(self, version: int | None = None) -> Definitions:
        """The definitions in force, or as they stood at `version`. Raises DefinitionRefused for one that never was."""
        current, text = await self._store.definitions(version)
        if text is None:
            if version:
                raise DefinitionRefused(f"there is no version {version} of the definitions")
            return Definitions()
        return from_json({**json.loads(text), "version": current if version is None else version})

    async def explain(
        self, destination: Destination, headers: Mapping[str, str], body: str = "",
        definitions: Definitions | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Where a message would go and why, see Explaining.explain. Needs a live node."""
        proposed = None if definitions is None else to_json(definitions)
        return await self._ask(
            "explain", destination=str(destination), headers=dict(headers), body=body, definitions=proposed
        )

    async def definitions_version(self) -> int:
        """The version of the definitions in force."""
        return await self._store.definitions_version()

    async def define(self, definitions: Definitions, author: str, comment: str = "") -> Definitions:
        """Put these in force at once on all nodes; returns them with their new version.

        `definitions.version` must be the version they were derived from, else DefinitionConflict. Raises
        DefinitionRefused when they cannot work (selector, loop, duplicate name), naming the definition and the rule.
        """
        check(definitions)
        await self._open()
        about = {"author": author, "comment": comment, "time_ms": now_ms()}
        new = await self._store.define(definitions.version, json.dumps(to_json(definitions)), about)
        if await self._store.node() is not None:  # "at once" means: before this returns
            await self._store.request("refresh", {}, REQUEST_SECONDS)
        return replace(definitions, version=new)

    async def lease(self, name: str, holder: str, milliseconds: int) -> bool:
        """Be the one process that does something, or stay it; False while another one is."""
        await self._open()
        return await self.rings.lease(name, holder, milliseconds)

    async def _open(self) -> None:
        """Load the functions that change things, where no node has done so yet."""
        if not self._opened:
            await self._store.open()
            self._opened = True

    async def history(self, limit: int = 50) -> list[dict[str, Any]]:
        """Versions, newest first: version, author, comment, time_ms."""
        return await self._store.definition_history(limit)


def check(definitions: Definitions) -> None:
    """Raise DefinitionRefused when these definitions cannot work."""
    seen: set[str] = set()
    for each in definitions.virtual_destinations:
        if each.id in seen:
            raise DefinitionRefused(f"{each.id} is defined twice")
        seen.add(each.id)
        for leg in getattr(each, "legs", ()):
            try:
                if leg.selector:
                    compile_selector(leg.selector)
            except RequestRefused as error:
                raise DefinitionRefused(f"{each.id}, leg {leg.destination}: {error}") from error
    loop = find_loop(definitions)
    if loop:
        raise DefinitionRefused("a message would go round for ever: " + " -> ".join(map(str, loop)))


def came_ms(message: Message) -> int:
    """When a message came to the queue it is in, as far as it says: failed, was sent again, or was sent."""
    for name in ("dlqTime", "resubmittedTime"):
        text = message.headers.get(name, "")
        if text.isdecimal() and len(text) < 15:
            return int(text)
    return message.born_us // 1000


def _browsed(entry: StoredEntry, destination: Destination) -> BrowsedMessage:
    message = entry.message
    headers = dict(message.headers)
    headers["destination"] = entry.shown or destination.stomp
    if entry.original:
        headers["original-destination"] = entry.original
    return BrowsedMessage(
        entry.seq, message.id, destination.stomp, headers.get("original-destination"), headers, message.body,
        len(message.body),
    )  # fmt: skip


def _waiting(stored: StoredJob) -> WaitingMessage:
    job = Job.load(stored.record)
    headers = {**job.message.headers, **job.schedule.headers()}
    return WaitingMessage(stored.id, stored.due_ms, job.purpose, job.to, headers, len(job.message.body))


def _checked(which: Mapping[str, Any]) -> dict[str, Any]:
    """Which messages, as the node is asked. Raises SelectorSyntaxError."""
    if unknown := sorted(which.keys() - {"selector", "ids", "limit"}):
        raise TypeError(f"messages are not chosen by {', '.join(unknown)}")
    if which.get("selector"):
        compile_selector(which["selector"])
    return {name: list(value) if name == "ids" else value for name, value in which.items() if value is not None}


_ERRORS: dict[str, type[BrokerError]] = {
    each.code: each
    for each in (DestinationNotFound, LimitExceeded, RequestRefused, DefinitionRefused, StoreUnavailable)
}
