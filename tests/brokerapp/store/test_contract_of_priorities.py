"""Test the priority index of the store: one place for each entry of a log."""

import json

import pytest

from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.message_order import priority_order
from brokerapp.model.message import Message
from brokerapp.store import DISCARDED, PendingWrite, StoreLimits
from tests.brokerapp.store.commit_helpers import CommittingSession, used

PRIORITIZED, PLAIN = (json.dumps({"kind": "queue", **more}) for more in ({"prioritized": True}, {}))


@pytest.fixture
async def session(store):
    session = CommittingSession(store)
    await store.nodes.join("me")
    return session


def urgent(priority, *queues):
    head = b"message-id:ID\\ca\\c1\n"
    message = Message("ID:a:1", head, b"x", persistent=True, priority=priority, expires=0, born_us=17)
    return PendingWrite([(message.stored(), [(queue, "", "") for queue in queues])])


async def in_order(store, log="q", page=100):
    """Numbers of what the log holds, in order of priority, read page by page."""
    numbers, after = [], 0
    while found := await store.entries.read_by_priority(log, after, page):
        numbers += [each.seq for each in found]
        after = priority_order(found[-1])
    return numbers


async def places(store, log="q"):
    return await store.client.execute("ZCARD", store.keys.urgent_prefix + log)


async def put_in_order(store, log="q"):
    after, calls = 0, 0
    while True:
        after, calls = await store.logs.index_priority(log, "me", after), calls + 1
        if not after:
            return calls


async def test_the_most_urgent_come_first_and_equals_in_order(store, session):
    await session.commit(declarations=[("q", PRIORITIZED)])
    await session.commit(*(urgent(priority, "q") for priority in (4, 9, 0, 9, 4)))
    assert await in_order(store, page=2) == [2, 4, 1, 5, 3]


async def test_what_is_settled_or_refused_has_no_place(store, session):
    await session.commit(declarations=[("q", PRIORITIZED)])
    await session.commit(urgent(1, "q"), urgent(2, "q", "other"))
    with_place = await used(store)
    refused = await session.commit(urgent(3, "q"), limits=StoreLimits(of_log=lambda _: 1))
    assert refused.refused == {1: "q"}
    assert (await in_order(store), await used(store)) == ([2, 1], with_place)
    for each in await store.entries.read_by_priority("q", 0, 10):
        await session.settle(log_entry_of("q", each))
    assert (await in_order(store), await places(store)) == ([], 0)
    [left] = await store.entries.read("other", 0, 10)
    await session.settle(log_entry_of("other", left))
    assert await used(store) == (0, 0)


async def test_other_logs_have_none(store, session):
    await session.commit(declarations=[("q", PRIORITIZED), ("plain", PLAIN)])
    await session.commit(urgent(1, "q", "plain"))
    assert (await places(store), await places(store, "plain")) == (1, 0)


async def test_a_log_that_held_messages_before_is_put_in_order_a_part_at_a_time(store, session, monkeypatch):
    monkeypatch.setattr("brokerapp.store.logs.PRIORITIZED_AT_ONCE", 2)
    await session.commit(*(urgent(priority, "q") for priority in (1, 2, 3, 4, 5)))
    assert await put_in_order(store) == 1  # it is none of those yet
    before = await used(store)
    await session.commit(declarations=[("q", PRIORITIZED)])
    assert await store.logs.index_priority("q", "me", 0) == 2
    await session.commit(urgent(9, "q"))  # comes meanwhile
    assert await put_in_order(store) > 1
    assert await in_order(store) == [6, 5, 4, 3, 2, 1]
    assert await put_in_order(store) == 1  # and again, as after a crash
    await session.commit(declarations=[("q", PLAIN)])
    assert await places(store) == 0
    assert (await used(store))[0] - before[0] == urgent(9, "q").cost[1] + 64


async def test_a_log_that_goes_takes_its_places_along(store, session):
    await session.commit(declarations=[("q", PRIORITIZED), ("r", PRIORITIZED), ("empty", PRIORITIZED)])
    await session.commit(urgent(1, "q"), urgent(2, "q"), urgent(1, "r"))
    await store.logs.drop("q", "me", keep=True)
    assert await places(store) == 0
    await session.commit(urgent(7, "q"))
    assert await in_order(store) == [4]
    await session.commit(declarations=[("r", json.dumps({"kind": DISCARDED})), ("empty", None)])
    for log in ("q", "r"):
        await store.logs.drop(log, "me")
    assert await store.client.execute("EXISTS", store.keys.prioritized) == 0
    assert await used(store) == (0, 0)
