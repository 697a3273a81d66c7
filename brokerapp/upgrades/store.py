"""Read the format of a broker's store, and the table of its upgrades."""

from __future__ import annotations

import asyncio

from brokerapp.errors import ConfigurationRefused
from brokerapp.store.client.continuity import FORMAT_OF_ONE_STORE, FORMATS
from brokerapp.store.redis import RedisStore
from brokerapp.upgrades.plan import FormatStep, PartState, PlannedStep, Report, steps_from

#: How stores get from one format to the next. None is needed so far: a store of format 1 gets format 2 when a shard is
#: added to it, and both are used as they are.
STORE_STEPS: tuple[FormatStep[RedisStore], ...] = ()


def store_state(url: str, broker: str) -> PartState:
    """Return the state of a broker's store. Raises StoreUnavailable."""
    try:
        found = asyncio.run(read_format(url, broker))
    except ConfigurationRefused as refused:  # the connection was refused for the format
        return PartState("store", "another format", str(FORMATS), refusal=str(refused))
    if found is None:
        return PartState("store", "empty", str(FORMATS))
    steps = [_planned(each, url, broker) for each in steps_from(found, STORE_STEPS)]
    return PartState("store", f"format {found}", str(FORMATS), tuple(steps))


def check_store(url: str, broker: str) -> None:
    """Raise ConfigurationRefused for a store that this version cannot use, StoreUnavailable if it does not answer."""
    asyncio.run(read_format(url, broker))


async def read_format(url: str, broker: str) -> int | None:
    """Return the format of a store; None before the first start. Raises ConfigurationRefused, StoreUnavailable."""
    store = RedisStore(url, broker)
    try:
        exists, found = await store.client.execute_many(
            [("EXISTS", store.keys.state), ("HGET", store.keys.state, "format")]
        )
    finally:
        await store.close()
    return int(found or FORMAT_OF_ONE_STORE) if exists else None


def _planned(step: FormatStep[RedisStore], url: str, broker: str) -> PlannedStep:
    def run(report: Report) -> None:
        step.run(RedisStore(url, broker), report)

    return PlannedStep(f"store, format {step.source} to {step.target}: {step.does}", run)
