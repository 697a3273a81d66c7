"""Test that prepared branches are kept, and ended, with all that goes with them or not at all."""

from __future__ import annotations

import pytest

from brokerapp.core.writes.client_write import BranchWrite
from brokerapp.store import GONE, STORE, BranchChange, StoreLimits
from tests.brokerapp.store.commit_helpers import CommittingSession, append, bodies, entries, used


@pytest.fixture
async def session(store):
    await store.nodes.join("me")
    return CommittingSession(store)


def write(change, *appends, settles=()):
    return BranchWrite(change, appends, settles=settles, callback=lambda *_: None)


def prepare(name="x", **more):
    return write(BranchChange(name, b"summary", b"held"), **more)


async def test_a_branch_is_kept_while_what_it_acknowledged_leaves_its_queue(store, session):
    await session.append("q")
    assert (await session.commit(prepare(settles=await entries(store, "q")))).refused == {}
    assert (await store.branches.summaries(), await store.branches.read("x")) == ({"x": b"summary"}, b"held")
    assert await bodies(store, "q") == []


async def test_a_branch_goes_when_what_it_sent_comes_and_leaves_no_bytes_behind(store, session):
    before = await used(store)
    await session.commit(prepare())
    assert (await used(store))[0] > before[0]
    await session.commit(write(BranchChange("x"), append("q", body=b"sent")))
    assert await bodies(store, "q") == [b"sent"]
    assert (await store.branches.summaries(), await store.branches.read("x")) == ({}, None)
    await session.settle(*await entries(store, "q"))
    assert (await used(store))[0] == before[0]


async def test_a_branch_ends_once(store, session):
    await session.commit(prepare())
    end = write(BranchChange("x"), append("q"))
    assert (await session.commit(end, end)).refused == {2: GONE}
    assert (await session.commit(end)).refused == {1: GONE}
    assert len(await bodies(store, "q")) == 1


async def test_a_branch_that_is_prepared_again_is_refused_and_settles_nothing(store, session):
    await session.append("q")
    await session.commit(prepare())
    again = write(BranchChange("x", b"other", b"other"), settles=await entries(store, "q"))
    assert (await session.commit(again)).refused == {1: GONE}
    assert await store.branches.read("x") == b"held"
    assert len(await bodies(store, "q")) == 1


async def test_a_branch_finds_no_room_in_a_full_store_but_its_end_does(store, session):
    assert (await session.commit(prepare(), limits=StoreLimits(total=10))).refused == {1: STORE}
    assert await store.branches.summaries() == {}
    await session.commit(prepare())
    end = write(BranchChange("x"), append("q"))
    assert (await session.commit(end, limits=StoreLimits(total=10))).refused == {}
    assert len(await bodies(store, "q")) == 1
