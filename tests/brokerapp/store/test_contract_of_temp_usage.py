"""Test the separate limit of non-persistent messages in the store, also across restarts."""

from __future__ import annotations

import pytest

from brokerapp.store import TEMP, PendingWrite, StoreLimits
from tests.brokerapp.store.commit_helpers import CommittingSession, append, entries, message

SIZE = len(message(persistent=False).stored())


@pytest.fixture
async def session(store):
    await store.nodes.join("me")
    return CommittingSession(store)


def fleeting(*queues):
    return append(*queues, persistent=False)


async def test_only_what_is_not_persistent_is_counted_and_once_however_many_copies_it_has(store, session):
    committed = await session.commit(PendingWrite([append("a"), fleeting("a"), fleeting("a", "b", "c")]))
    assert committed.temp_bytes == await store.logs.temp_used_bytes() == 2 * SIZE
    await session.settle(*await entries(store, "a"))
    assert await store.logs.temp_used_bytes() == SIZE
    await session.settle(*await entries(store, "b"), *await entries(store, "c"))
    assert await store.logs.temp_used_bytes() == 0


async def test_past_the_limit_it_alone_is_refused_until_some_was_settled(store, session):
    limits = StoreLimits(temp=SIZE)
    await session.append("q", persistent=False)
    committed = await session.commit(PendingWrite([fleeting("r")]), PendingWrite([append("s")]), limits=limits)
    assert committed.refused == {1: TEMP}
    [entry] = await entries(store, "q")
    assert (await session.commit(PendingWrite([fleeting("q")] * 2, [entry]), limits=limits)).refused == {1: TEMP}
    assert (await session.commit(PendingWrite([fleeting("q")], [entry]), limits=limits)).refused == {}
    assert await store.logs.temp_used_bytes() == SIZE


async def test_copies_that_may_be_dropped_are_left_out_rather_than_refused(store, session):
    unit = PendingWrite([fleeting("a", "b"), append("a")], droppable=[(1, 1, 2)])
    committed = await session.commit(unit, limits=StoreLimits(temp=1))
    assert (committed.refused, committed.dropped) == ({}, {1: [(1, 1), (1, 2)]})
    assert await store.logs.temp_used_bytes() == 0


@pytest.mark.parametrize("others", [(), ("other",)])
async def test_a_log_that_is_dropped_gives_its_bytes_back(store, session, others):
    await session.append("q", *others, persistent=False)
    assert await store.logs.temp_used_bytes() == SIZE
    for log in ("q", *others):
        await store.logs.drop(log, "me")
    assert await store.logs.temp_used_bytes() == 0
