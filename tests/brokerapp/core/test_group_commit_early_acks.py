"""Test that acks of uncommitted messages are committed after them, in order, and once."""

import asyncio

from brokerapp.store import PendingWrite
from tests.brokerapp.core.commit_loop import LOG, bringing, given, running


async def test_an_ack_that_comes_before_its_message_is_stored_goes_into_the_batch_after():
    async with running() as (store, committer):
        entry = given()
        committer.submit(bringing(entry, early=True))
        committer.remove_settled([entry])
        await committer.drain()
        assert store.batches == [(1, []), (0, [1])]


async def test_an_ack_that_comes_while_its_message_is_on_the_way_goes_into_the_next_batch():
    async with running() as (store, committer):
        entry = given()
        store.open.clear()
        committer.submit(bringing(entry, early=True))
        await asyncio.sleep(0)
        committer.remove_settled([entry])
        store.open.set()
        await committer.drain()
        assert store.batches == [(1, []), (0, [1])]


async def test_a_unit_that_settles_what_is_before_it_comes_in_a_later_batch_and_what_follows_it_does_too():
    order = []
    async with running() as (store, committer):
        entry = given()
        committer.submit(bringing(entry, lambda: order.append("stored"), early=True))
        committer.submit(PendingWrite(settles=[entry], callback=lambda *_: order.append("settled")))
        committer.submit(PendingWrite(callback=lambda *_: order.append("barrier")))
        await committer.drain()
        assert store.batches == [(1, []), (0, [1])]
        assert order == ["stored", "settled", "barrier"]


async def test_a_unit_that_settles_what_waits_for_room_holds_nobody_up_and_it_is_settled_when_it_is_stored():
    async with running() as (store, committer):
        waiting, other = given(), given()
        committer.submit(PendingWrite(settles=[waiting, other]))
        committer.submit(bringing(other, early=True))
        await committer.drain()
        committer.submit(bringing(waiting))
        await committer.drain()
        assert sorted(seq for _, settled in store.batches for seq in settled) == [1, 2]


async def test_what_is_never_stored_is_never_settled():
    async with running() as (store, committer):
        entry = given()
        committer.remove_settled([entry])
        await committer.drain()
        entry.seq = 0
        committer.submit(bringing(given(), early=True))
        await committer.drain()
        assert all(settled == [] for _, settled in store.batches)


async def test_it_knows_what_is_on_its_way_to_a_log_that_did_not_get_it_early():
    async with running() as (store, committer):
        store.open.clear()
        committer.submit(bringing(given(), early=True))
        assert not committer.has_pending_for(LOG)
        assert committer.given == 1
        await asyncio.sleep(0)
        committer.submit(late := bringing(given()))
        committer.submit(bringing(given()))
        assert committer.has_pending_for(LOG)
        assert committer.cancel(lambda unit: unit is late) == [late]
        assert committer.has_pending_for(LOG)
        store.open.set()
        await committer.drain()
        committer.submit(PendingWrite())
        await committer.drain()
        assert not committer.has_pending_for(LOG)
        assert (committer.used, committer.held_bytes(LOG)) == (200, 20)
