"""Read the format of a broker's store, and the table of its upgrades."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.store.client.continuity import FORMAT_OF_ONE_STORE, FORMATS
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.probe import probe_server
from brokerapp.store.redis import RedisStore
from brokerapp.upgrades.plan import FormatStep, PartState, PlannedStep, plan_steps

#: How the plan calls this part.
STORE = "store"


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """The store of a broker that is upgraded."""

    url: str
    broker: str

    def opened(self) -> RedisStore:
        """Return the store, of whatever older format it is."""
        return RedisStore(self.url, self.broker, formats=replace(FORMATS, oldest=FORMAT_OF_ONE_STORE))

    def run(self, work: Callable[[RedisStore], Awaitable[Any]]) -> Any:
        """Do something with the store, and return the result."""

        async def once() -> Any:
            store = self.opened()
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(once())


#: How stores get from one format to the next. None is needed so far: a store of format 1 gets format 2 when a shard is
#: added to it, and both are used as they are.
STORE_STEPS: tuple[FormatStep[StoreTarget], ...] = ()


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What an upgrade needs to know of a store that was started before."""

    format: int
    position: str  #: another one after each start of a node and each message
    nodes: tuple[str, ...]  #: its members; some may be dead


def read_store(url: str, broker: str) -> StoreFacts | None:
    """Return what is known of a broker's store; None before the first start. Nothing is written.

    Raises StoreUnavailable.
    """
    keys = StoreKeys(broker)
    asked = [("EXISTS", keys.state), ("HMGET", keys.state, "format", "epoch", "seq"), ("HKEYS", keys.nodes)]
    exists, (found, epoch, seq), nodes = _ask(url, keys.state, asked)
    if not exists:
        return None
    position = f"{int(epoch or 0)}:{int(seq or 0)}"
    return StoreFacts(int(found or FORMAT_OF_ONE_STORE), position, tuple(sorted(each.decode() for each in nodes)))


def _ask(url: str, key: str, commands: Sequence[Sequence[str]]) -> tuple[Any, ...]:
    server = probe_server(url, key, commands)
    if server.problem:
        raise StoreUnavailable(f"the store {server.url} does not answer: {server.problem}")
    return server.answers


def store_state(url: str | None, broker: str) -> PartState:
    """Return the state of a broker's store; None is that of a folder without one. Raises StoreUnavailable."""
    found = None if url is None else read_store(url, broker)
    if url is None or found is None:
        return PartState(STORE, "", str(FORMATS))
    target = StoreTarget(url, broker)
    try:
        steps = tuple(_planned(each, target) for each in plan_steps(FORMATS, found.format, STORE_STEPS))
    except ConfigurationRefused as refused:
        return PartState(STORE, "another format", str(FORMATS), refusal=str(refused))
    in_use = _in_use(url, broker, found.nodes) if steps else ""
    return PartState(STORE, f"format {found.format}", str(FORMATS), steps, position=found.position, in_use=in_use)


def _in_use(url: str, broker: str, nodes: Sequence[str]) -> str:
    """Return a sentence about the nodes that run on the store; "" if none does."""
    keys = StoreKeys(broker)
    answers = _ask(url, keys.state, [("EXISTS", keys.node(each)) for each in nodes])
    running = [name for name, lives in zip(nodes, answers, strict=True) if lives]
    return f"nodes run on the store ({', '.join(running)}): stop them first" if running else ""


def check_store(url: str, broker: str) -> None:
    """Raise ConfigurationRefused for a store that this version cannot use, StoreUnavailable if it does not answer."""
    found = read_store(url, broker)
    if found is not None:
        FORMATS.check(found.format)


def _planned(step: FormatStep[StoreTarget], target: StoreTarget) -> PlannedStep:
    summary = f"{STORE}, format {step.source} to {step.target}: {step.does}"
    return PlannedStep(summary, lambda report: step.run(target, report))
