"""Read the format of a broker's store, and the table of its upgrades."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.client.continuity import FORMAT_OF_ONE_STORE, FORMATS
from brokerapp.store.redis import RedisStore
from brokerapp.upgrades.plan import FormatStep, PartState, PlannedStep, plan_steps


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


def store_state(url: str, broker: str) -> PartState:
    """Return the state of a broker's store. Raises StoreUnavailable."""
    target = StoreTarget(url, broker)
    try:
        found = target.run(read_format)
        steps = [] if found is None else plan_steps(FORMATS, found, STORE_STEPS)
    except ConfigurationRefused as refused:
        return PartState("store", "another format", str(FORMATS), refusal=str(refused))
    shown = "empty" if found is None else f"format {found}"
    return PartState("store", shown, str(FORMATS), tuple(_planned(each, target) for each in steps))


def check_store(url: str, broker: str) -> None:
    """Raise ConfigurationRefused for a store that this version cannot use, StoreUnavailable if it does not answer."""
    found = StoreTarget(url, broker).run(read_format)
    if found is not None:
        FORMATS.check(found)


async def read_format(store: RedisStore) -> int | None:
    """Return the format of a store; None before the first start. Raises ConfigurationRefused, StoreUnavailable."""
    exists, found = await store.client.execute_many(
        [("EXISTS", store.keys.state), ("HGET", store.keys.state, "format")]
    )
    return int(found or FORMAT_OF_ONE_STORE) if exists else None


def _planned(step: FormatStep[StoreTarget], target: StoreTarget) -> PlannedStep:
    summary = f"store, format {step.source} to {step.target}: {step.does}"
    return PlannedStep(summary, lambda report: step.run(target, report))
