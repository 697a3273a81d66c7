"""Test that acknowledgements nobody waits for go with the next batch, or after a moment, and never too late."""

import asyncio
import time

import pytest

from brokerapp.core.commits import group_commit
from brokerapp.core.commits.group_commit import SETTLE_DELAY_SECONDS
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.message import Message
from brokerapp.store import PendingWrite
from tests.brokerapp.core.commit_loop import LOG, bringing, given, running

#: Long after any test is over: what is done at all was not done because the time had passed.
NEVER = 600


@pytest.fixture
def unhurried(monkeypatch):
    """Acknowledgements that only go when something else lets them."""
    monkeypatch.setattr(group_commit, "SETTLE_DELAY_SECONDS", NEVER)


def stored(seq):
    return LogEntry(LOG, seq, Message("ID:1", b"", b""), size=10)


async def turns(count=10):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_acks_alone_are_committed_together_within_the_time():
    async with running() as (store, committer):
        began = time.monotonic()
        for seq in (1, 2, 3):
            committer.remove_settled([stored(seq)])
            await turns()
        while not store.batches:
            await asyncio.sleep(0)
        assert store.batches == [(0, [1, 2, 3])]
        assert time.monotonic() - began >= SETTLE_DELAY_SECONDS


async def test_after_a_batch_of_acks_the_next_one_waits_anew():
    async with running() as (store, committer):
        for seq in (1, 2):
            committer.remove_settled([stored(seq)])
            while len(store.batches) < seq:
                await asyncio.sleep(0)
        assert store.batches == [(0, [1]), (0, [2])]


async def test_acks_go_with_the_next_send_and_before_it(unhurried):
    async with running() as (store, committer):
        committer.remove_settled([stored(1)])
        await turns()
        assert not store.batches
        send = bringing(given())
        committer.submit(send)
        await asyncio.sleep(0.01)
        assert store.batches == [(1, [1])]
        assert [write is send for write in store.writes[0]] == [False, True]


async def test_acks_that_come_during_a_commit_wait_for_the_one_after(unhurried):
    async with running() as (store, committer):
        store.open.clear()
        committer.submit(bringing(given()))
        await turns()
        committer.remove_settled([stored(1)])
        store.open.set()
        await turns()
        assert store.batches == [(1, [])]
        committer.submit(bringing(given()))
        await turns()
        assert store.batches == [(1, []), (1, [1])]


async def test_an_ack_of_a_message_that_was_given_early_waits_for_the_batch_after_its_own(unhurried):
    async with running() as (store, committer):
        entry = given()
        committer.submit(bringing(entry, early=True))
        committer.remove_settled([entry])
        await turns()
        assert store.batches == [(1, [])]
        committer.submit(bringing(given()))
        await turns()
        assert store.batches == [(1, []), (1, [1])]


async def test_while_clients_wait_for_room_acks_go_at_once(unhurried):
    async with running(is_room_wanted=lambda: True) as (store, committer):
        committer.remove_settled([stored(1)])
        await turns()
        assert store.batches == [(0, [1])]


async def test_acks_that_came_before_a_send_found_no_room_go_at_once(unhurried):
    waiting = []
    async with running(is_room_wanted=lambda: bool(waiting)) as (store, committer):
        store.open.clear()
        committer.submit(bringing(given(), lambda: waiting.append("the send")))
        await turns()
        committer.remove_settled([stored(1)])
        store.open.set()
        await turns()
        assert store.batches == [(1, []), (0, [1])]


async def test_a_read_a_mark_and_a_barrier_find_done_what_was_acknowledged_before(unhurried):
    async with running() as (store, committer):
        answers = []
        committer.remove_settled([stored(1)])
        committer.read_with(lambda store: store.settled(), answers.append)
        await turns()
        assert answers == [[1]]
        committer.remove_settled([stored(2)])
        committer.set_recovery_mark(LOG, "0")
        await turns()
        committer.remove_settled([stored(3)])
        await committer.barrier()
        assert store.batches == [(0, [1]), (0, [2]), (0, [3])]


async def test_a_log_is_removed_after_what_was_acknowledged_of_it(unhurried):
    async with running() as (store, committer):
        committer.remove_settled([stored(1)])
        committer.remove(LOG)
        committer.submit(bringing(given()))
        await turns()
        assert store.batches == [(0, [1]), (1, [])]
        assert store.declared == [[], [(LOG, None)]]


async def test_who_asks_is_told_that_acks_wait_and_draining_writes_them_at_once(unhurried):
    async with running() as (store, committer):
        assert not committer.busy
        committer.remove_settled([stored(1)])
        await turns()
        assert committer.busy
        await committer.drain()
        assert store.batches == [(0, [1])]
        assert not committer.busy


async def test_what_follows_an_ack_of_the_same_client_is_done_after_it(unhurried):
    order = []
    async with running() as (store, committer):
        committer.remove_settled([stored(1)])
        committer.submit(PendingWrite(callback=lambda *_: order.append(list(store.batches))))
        await turns()
        assert order == [[(0, [1])]]


async def test_the_time_begins_when_no_commit_is_under_way(monkeypatch):
    monkeypatch.setattr(group_commit, "SETTLE_DELAY_SECONDS", 0.05)
    async with running() as (store, committer):
        store.open.clear()
        committer.submit(bringing(given()))
        await turns()
        committer.remove_settled([stored(1)])
        await asyncio.sleep(0.1)
        store.open.set()
        await turns()
        committer.submit(bringing(given()))  # by who got the receipt of the first one
        await turns()
        assert store.batches == [(1, []), (1, [1])]
