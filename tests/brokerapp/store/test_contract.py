"""Test what the broker relies on in its store, on a real Valkey."""

import asyncio

import pytest

from brokerapp.errors import DefinitionConflict, Fenced, StoreUnavailable
from brokerapp.model.stats_records import END_OF_LOG
from brokerapp.store import DISCARDED, STORE, CommitBatch, PendingWrite, StoreLimits
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.redis import RedisStore
from tests.brokerapp.store.commit_helpers import (
    ENTRY,
    CommittingSession,
    append,
    bodies,
    entries,
    message,
    payloads,
    used,
)


@pytest.fixture
def session(store):
    return CommittingSession(store)


# -- appending and reading


async def test_a_message_is_read_as_it_was_appended(store, session):
    body = bytes(range(256))
    seq = await session.append("q", body=body, original="/topic/t", shown="/topic/s")
    [found] = await store.entries.read("q", 0, 10)
    assert found.message == message(body)
    assert (found.seq, found.payload, found.original, found.shown) == (seq, 0, "/topic/t", "/topic/s")
    assert found.size == len(message(body).stored())


async def test_messages_are_numbered_in_order_over_all_logs(store, session):
    committed = await session.commit(PendingWrite([append("a"), append("b", "c")]), PendingWrite([append("a")]))
    assert [each.seq for each in await store.entries.read("a", 0, 10)] == [
        committed.base_seq + 1,
        committed.base_seq + 3,
    ]
    assert [each.seq for each in await store.entries.read("b", 0, 10)] == [committed.base_seq + 2]


async def test_reading_goes_on_after_a_number_and_stops_at_a_count(store, session):
    for number in range(10):
        await session.append("q", body=b"%d" % number)
    page = await store.entries.read("q", 0, 4)
    rest = await store.entries.read("q", page[-1].seq, 100)
    assert [each.message.body for each in (*page, *rest)] == [b"%d" % number for number in range(10)]
    assert len(page) == 4
    assert await store.entries.read("q", rest[-1].seq, 10) == []
    assert await store.entries.read("nowhere", 0, 10) == []


@pytest.mark.parametrize("queues", [("q",), ("q", "other")], ids=["inline", "referenced"])
async def test_a_read_is_bounded_by_bytes_but_always_gets_on(store, session, monkeypatch, queues):
    monkeypatch.setattr("brokerapp.store.entries.READ_BYTES", 10_000)
    sizes = [100] * 50 + [30_000] * 3 + [100] * 50
    for size in sizes:
        await session.append(*queues, body=b"x" * size)
    found, pages = [], 0
    while page := await store.entries.read("q", found[-1].seq if found else 0, 1000):
        assert sum(each.size for each in page[:-1]) < 10_000
        found += page
        pages += 1
    assert [len(each.message.body) for each in found] == sizes
    assert pages < 20
    back = []
    while page := await store.entries.read_back("q", back[-1].seq if back else END_OF_LOG, 1000):
        assert sum(each.size for each in page[:-1]) < 10_000
        back += page
    assert [each.seq for each in reversed(back)] == [each.seq for each in found]


async def test_reading_back_begins_before_a_number_and_stops_at_a_count(store, session):
    for number in range(10):
        await session.append("q", body=b"%d" % number)
    page = await store.entries.read_back("q", END_OF_LOG, 4)
    rest = await store.entries.read_back("q", page[-1].seq, 100)
    assert [each.message.body for each in (*page, *rest)] == [b"%d" % number for number in reversed(range(10))]
    assert len(page) == 4
    assert await store.entries.read_back("q", rest[-1].seq, 10) == []
    assert await store.entries.read_back("nowhere", END_OF_LOG, 10) == []


async def test_certain_entries_are_read_in_order_those_that_are_there_however_many_and_large(
    store, session, monkeypatch
):
    monkeypatch.setattr("brokerapp.store.entries.ROWS_AT_ONCE", 3)
    monkeypatch.setattr("brokerapp.store.entries.READ_BYTES", 10_000)
    for size in (0, 20_000, 5, 6_000, 6_000, 1, 2, 3):
        await session.append("q", body=b"x" * size)
    await session.append("q", "r")
    await session.settle(*await entries(store, "q", 0, 1), *await entries(store, "q", 6, 1))
    found = await store.entries.read_by_seq("q", [1, 2, 4, 5, 6, 7, 9, 10])
    assert [(each.seq, len(each.message.body)) for each in found] == [
        (2, 20_000),
        (4, 6_000),
        (5, 6_000),
        (6, 1),
        (9, 1),
    ]
    assert [each.payload for each in found] == [0, 0, 0, 0, 9]
    assert await store.entries.read_by_seq("q", [1, 7]) == await store.entries.read_by_seq("nowhere", [1]) == []


# -- references


async def test_copies_share_one_payload_which_goes_with_the_last_of_them(store, session):
    seq = await session.append("a", "b", "c", body=b"shared")
    assert await payloads(store) == {seq: 3}
    for left, log in ((2, "a"), (1, "b")):
        await session.settle(*await entries(store, log))
        assert await payloads(store) == {seq: left}
        assert await bodies(store, "c") == [b"shared"]
    await session.settle(*await entries(store, "c"))
    assert await payloads(store) == {}


async def test_a_message_with_one_target_has_no_payload_of_its_own(store, session):
    await session.append("a")
    assert await payloads(store) == {}


async def test_many_references_can_be_given_up_at_once(store, session):
    count = 1200  # more than one call removes
    await session.commit(PendingWrite([append("a", "b", body=b"%d" % number) for number in range(count)]))
    await session.settle(*await entries(store, "a", count=2000), *await entries(store, "b", count=600))
    assert len(await payloads(store)) == len(await store.entries.read("b", 0, 2000)) == count - 600
    await session.settle(*await entries(store, "b", count=2000))
    assert await payloads(store) == {}
    assert await used(store) == (0, 0)


@pytest.mark.parametrize("expires", [0, 1 << 42], ids=["lasting", "expiring"])
@pytest.mark.parametrize("queues", [("q",), ("q", "other")], ids=["inline", "referenced"])
async def test_of_entries_that_follow_each_other_those_that_are_settled_are_removed(store, session, queues, expires):
    await session.commit(*(PendingWrite([append(*queues, expires=expires)]) for _ in range(40)))
    found = await entries(store, "q")
    settled = [found[3:13], found[:3], found[30:39], list(reversed(found[13:23])), found[13:26]]
    for part in settled:
        await session.settle(*part)
    left = [*found[26:30], found[39]]
    assert [each.seq for each in await entries(store, "q")] == [each.seq for each in left]
    size = len(message(expires=expires).stored())
    _, of_logs = await used(store)
    assert of_logs == size * (len(left) + 40 * (len(queues) - 1))
    if len(queues) > 1:
        assert [each.seq for each in await entries(store, "other")] == [each.seq for each in found]


async def test_settling_twice_takes_no_message_from_others(store, session):
    await session.append("a", "b", "c", body=b"shared")
    [entry] = await entries(store, "a")
    await session.settle(entry)
    await session.settle(entry)
    await session.settle(entry)
    assert await bodies(store, "a") == []
    assert await bodies(store, "b") == await bodies(store, "c") == [b"shared"]


async def test_settling_twice_leaves_the_account_of_bytes_true(store, session):
    await session.append("a")
    [entry] = await entries(store, "a")
    for _ in range(3):
        await session.settle(entry)
    assert await used(store) == (0, 0)


async def test_bytes_are_accounted_for_once_in_all_and_by_each_log(store, session):
    size = len(message(b"x" * 100).stored())
    await session.append("a", "b", body=b"x" * 100)
    await session.append("a", body=b"x" * 100)
    assert await used(store) == (2 * size + 3 * ENTRY, 3 * size)
    assert await store.logs.used_bytes() == (2 * size + 3 * ENTRY, {"a": 2 * size, "b": size}), (
        "told by the names of the logs"
    )
    await session.settle(*await entries(store, "a"))
    assert await used(store) == (size + ENTRY, size)
    await session.settle(*await entries(store, "b"))
    assert await used(store) == (0, 0)


# -- whole or not at all


async def test_a_batch_repeated_is_done_once_and_answered_the_same(store, session):
    batch = CommitBatch(
        1, [PendingWrite([append("a"), append("a", "b")]), PendingWrite([append("x", body=b"y" * 1000)])]
    )
    limits = StoreLimits(total=500)
    first = await store.commit("me", batch, limits)
    again = await store.commit("me", batch, limits)
    assert (first.base_seq, first.refused) == (again.base_seq, again.refused) == (first.base_seq, {2: STORE})
    assert len(await bodies(store, "a")) == 2
    await store.commit("me", CommitBatch(2, [PendingWrite([append("a")])]), limits)
    assert len(await bodies(store, "a")) == 3


async def test_a_unit_past_the_total_limit_is_refused_whole_and_its_neighbours_are_not(store, session):
    await session.append("old")
    size = len(message().stored())
    committed = await session.commit(
        PendingWrite([append("a")]),
        PendingWrite([append("b"), append("c"), append("d")], settles=await entries(store, "old")),
        PendingWrite([append("e")]),
        limits=StoreLimits(total=3 * (size + ENTRY)),
    )
    assert committed.refused == {2: STORE}
    assert [len(await bodies(store, log)) for log in ("a", "b", "c", "d", "e", "old")] == [1, 0, 0, 0, 1, 1]
    [entry] = await store.entries.read("e", 0, 1)
    assert entry.seq == committed.base_seq + 5  # numbers of the refused are left out
    assert (await used(store))[0] == 3 * (size + ENTRY)


@pytest.mark.parametrize("count", [1, 2])
async def test_a_unit_past_the_limit_of_one_log_is_refused_whole(store, session, count):
    """Also when it is its own messages that add up to too much."""
    size = len(message().stored())
    limits = StoreLimits(of_log=lambda log: 3 * size if log == "small" else 0)
    for _ in range(4 - count):
        await session.append("small")
    committed = await session.commit(PendingWrite([append("large", "small")] * count), limits=limits)
    assert committed.refused == {1: "small"}
    assert await bodies(store, "large") == []
    assert len(await bodies(store, "small")) == 4 - count


async def test_an_empty_log_takes_a_unit_however_large(store, session):
    """Who waits for room would else wait for ever."""
    limits = StoreLimits(of_log=lambda _log: 100)
    assert not (await session.commit(PendingWrite([append("q", body=b"x" * 1000)] * 2), limits=limits)).refused
    assert (await session.commit(PendingWrite([append("q")]), limits=limits)).refused == {1: "q"}


@pytest.mark.parametrize("limited", ["log", "store"])
async def test_a_unit_may_use_the_room_that_its_own_settles_make(store, session, limited):
    size = len(message().stored())
    if limited == "log":
        limits = StoreLimits(of_log=lambda _log: 2 * size)
    else:
        limits = StoreLimits(total=2 * (size + ENTRY))
    await session.append("q")
    await session.append("q")
    [first, second] = await entries(store, "q")
    full = {1: "q" if limited == "log" else STORE}
    assert (await session.commit(PendingWrite([append("q")] * 2, [first]), limits=limits)).refused == full
    assert not (await session.commit(PendingWrite([append("q")], [first]), limits=limits)).refused
    assert not (await session.commit(PendingWrite([append("q")], [second]), limits=limits)).refused
    assert await used(store) == (2 * (size + ENTRY), 2 * size)


async def test_what_follows_a_refused_unit_to_the_same_log_does_not_overtake_it(store, session):
    limits = StoreLimits(of_log=lambda log: 400 if log == "q" else 0)
    await session.append("q", body=b"x" * 100)
    [entry] = await entries(store, "q")
    committed = await session.commit(
        PendingWrite([append("q", "r", body=b"x" * 1000)]),
        PendingWrite([append("q", body=b"small")]),
        PendingWrite([append("r")]),
        PendingWrite([append("r")], droppable=[(1, 1, 1)]),
        PendingWrite([append("other")]),
        PendingWrite([append("q", body=b"makes room")], [entry]),
        PendingWrite([append("r", body=b"whatever the limits say")], ignores_limits=True),
        limits=limits,
    )
    assert (committed.refused, committed.dropped) == ({1: "q", 2: "q", 3: "q"}, {4: [(1, 1)]})
    assert await bodies(store, "q") == [b"makes room"]
    assert await bodies(store, "r") == [b"whatever the limits say"]
    assert len(await bodies(store, "other")) == 1


async def test_a_copy_that_may_be_dropped_is_left_out_of_a_full_log_and_the_others_are_kept(store, session):
    size = len(message().stored())
    limits = StoreLimits(of_log=lambda log: size if log == "small" else 0)
    await session.append("small")
    before = await used(store)
    unit = PendingWrite([append("a"), append("a", "small", "b")], droppable=[(2, 1, 2)])
    committed = await session.commit(unit, limits=limits)
    assert (committed.refused, committed.dropped) == ({}, {1: [(2, 2)]})
    assert [len(await bodies(store, log)) for log in ("a", "small", "b")] == [2, 1, 1]
    assert await payloads(store) == {committed.base_seq + 2: 2}
    await session.settle(*await entries(store, "a"), *await entries(store, "b"))
    assert await used(store) == before
    assert await payloads(store) == {}


async def test_a_copy_that_may_not_be_dropped_refuses_the_unit_and_then_none_is_dropped(store, session):
    size = len(message().stored())
    limits = StoreLimits(of_log=lambda log: size if log.startswith("small") else 0)
    await session.append("small", "small too")
    for droppable in ([(1, 1, 1)], [(1, 2, 2)], ()):
        committed = await session.commit(
            PendingWrite([append("small", "small too")], droppable=droppable), limits=limits
        )
        assert committed.refused[1].startswith("small")
        assert not committed.dropped
    assert [len(await bodies(store, log)) for log in ("small", "small too")] == [1, 1]


async def test_a_full_store_drops_a_message_all_of_whose_copies_may_be_dropped(store, session):
    limits = StoreLimits(total=1)
    committed = await session.commit(
        PendingWrite([append("a", "b")], droppable=[(1, 1, 1)]),
        PendingWrite([append("a", "b")], droppable=[(1, 1, 2)]),
        PendingWrite([append("a")], droppable=[(1, 1, 1)]),
        limits=limits,
    )
    assert (committed.refused, committed.dropped) == ({1: STORE}, {2: [(1, 1), (1, 2)], 3: [(1, 1)]})
    assert await used(store) == (0, 0)
    assert await payloads(store) == {}
    assert await session.append("a") == committed.base_seq + 4  # numbers of the dropped are left out


async def test_there_is_room_again_after_settling(store, session):
    limits = StoreLimits(total=len(message().stored()) + ENTRY)
    await session.append("a")
    assert (await session.commit(PendingWrite([append("a")]), limits=limits)).refused == {1: STORE}
    await session.settle(*await entries(store, "a"))
    assert (await session.commit(PendingWrite([append("a")]), limits=limits)).refused == {}


async def test_a_server_that_uses_too_much_takes_no_message_but_acks(store, session):
    await session.append("q")
    full = StoreLimits(server=1)
    [entry] = await entries(store, "q")
    assert (await session.commit(PendingWrite([append("q")]), PendingWrite(settles=[entry]), limits=full)).refused == {
        1: STORE
    }
    assert await bodies(store, "q") == []
    roomy = StoreLimits(server=1 << 50)
    assert (await session.commit(PendingWrite([append("q")]), limits=roomy)).refused == {}


async def test_a_server_without_memory_does_what_leads_out_of_that(store, session, broker_name):
    """An operator asks for a purge, a node answers, says what there is, starts anew; limits are changed."""
    await session.append("q")
    await store.client.execute("CONFIG", "SET", "maxmemory", 1)
    try:
        again = RedisStore(store.url, broker_name)
        await again.open()
        await again.nodes.join("me")
        asking = asyncio.create_task(store.requests.send("purge", {}, 5))
        asked = await again.requests.take("main", 5)
        await CommittingSession(again).settle(*await entries(again, "q"))
        await again.requests.reply(asked["id"], {"done": 1})
        assert await asking == {"done": 1}
        await again.nodes.send_heartbeat("me", {"node": "me"})
        await again.stats.write({"queue://q": "{}"}, ["queue://gone"])
        assert await again.definitions.replace(0, "{}", {}, imported=True) == 1
        assert await again.definitions.last_imported() == "{}"
        assert await again.logs.drop("q", "me") == 0
        await again.nodes.leave("me")
        await again.close()
    finally:
        await store.client.execute("CONFIG", "SET", "maxmemory", 0)


async def test_a_move_is_not_held_up_by_limits(store, session):
    limits = StoreLimits(total=1, of_log=lambda _log: 1)
    await session.append("a")
    unit = PendingWrite([append("dead", body=b"larger than before")], await entries(store, "a"), ignores_limits=True)
    assert (await session.commit(unit, limits=limits)).refused == {}
    assert await bodies(store, "a") == []
    assert await bodies(store, "dead") == [b"larger than before"]


async def test_a_unit_may_append_and_settle_at_once(store, session):
    await session.append("in")
    await session.commit(PendingWrite([append("out", body=b"moved")], await entries(store, "in")))
    assert (await bodies(store, "in"), await bodies(store, "out")) == ([], [b"moved"])


# -- logs


async def test_logs_are_declared_found_again_with_depth_and_mark_and_removed_when_empty(store, session):
    await session.commit(declarations=[("a", '{"kind": "queue"}'), ("b", "{}")], recovery_marks=[("a", "open")])
    await session.append("a")
    found = {state.name: (state.attributes, state.depth, state.mark) for state in await store.logs.recover()}
    assert found == {"a": ({"kind": "queue"}, 1, "open"), "b": ({}, 0, "")}
    await session.commit(declarations=[("a", None), ("b", None), ("c", None)])
    assert set(await store.logs.all_attributes()) == {"a"}
    await session.commit(declarations=[("b", "{}"), ("b", None), ("b", '{"again": 1}')])
    assert (await store.logs.all_attributes())["b"] == {"again": 1}


async def test_dropping_a_log_removes_it_with_what_only_it_held(store, session, monkeypatch):
    monkeypatch.setattr("brokerapp.store.logs.DROP_BATCH", 3)
    await session.commit(declarations=[("a", "{}")], recovery_marks=[("a", "open")])
    for _ in range(5):
        await session.append("a")
        await session.append("a", "b")
    assert await store.logs.drop("a", "me") == 10
    assert "a" not in await store.logs.all_attributes()
    assert await store.entries.read("a", 0, 10) == []
    assert len(await bodies(store, "b")) == 5
    assert set((await payloads(store)).values()) == {1}
    size = len(message().stored())
    assert await used(store) == (5 * (size + ENTRY), 5 * size)


async def test_dropping_only_what_a_log_holds_keeps_the_log(store, session):
    await session.commit(declarations=[("a", "{}")])
    await session.append("a")
    assert await store.logs.drop("a", "me", keep=True) == 1
    assert set(await store.logs.all_attributes()) == {"a"}


async def test_of_what_was_discarded_nothing_is_dropped_that_was_made_anew(store, session):
    discarded = f'{{"kind": "{DISCARDED}"}}'
    await session.commit(declarations=[("discarded", discarded), ("anew", discarded), ("anew", "{}")])
    for log in ("discarded", "anew", "gone"):
        await session.append(log)
    found = {log: await store.logs.drop(log, "me", discarded=True) for log in ("discarded", "anew", "gone")}
    assert found == {"discarded": 1, "anew": 0, "gone": 1}
    assert await store.logs.all_attributes() == {"anew": {}}


async def test_nobody_drops_a_log_behind_a_running_nodes_back(store, session):
    await session.append("a")
    await store.nodes.send_heartbeat("me", {"node": "me"})
    with pytest.raises(Fenced, match="a node of this broker is running"):
        await store.logs.drop("a", "")
    await store.nodes.leave("me")
    assert await store.logs.drop("a", "") == 1


async def test_a_node_that_stood_still_while_a_log_was_dropped_writes_no_more(store, session):
    await session.append("a")
    await store.nodes.send_heartbeat("me", {"node": "me"}, timeout_ms=1)
    while await store.nodes.live_names():
        pass
    assert await store.logs.drop("a", "", keep=True) == 1
    with pytest.raises(Fenced):
        await session.append("a")
    assert (await store.nodes.members())[1] == {}


# -- definitions


async def test_definitions_have_versions_and_a_history(store):
    assert await store.definitions.read() == (0, None)
    assert await store.definitions.replace(0, "one", {"author": "a"}) == 1
    assert await store.definitions.replace(1, "two", {"author": "b"}) == 2
    assert await store.definitions.read() == (2, "two")
    assert await store.definitions.read(1) == (2, "one")
    assert [(each["version"], each["author"]) for each in await store.definitions.history(10)] == [(2, "b"), (1, "a")]
    assert [each["version"] for each in await store.definitions.history(1)] == [2]


@pytest.mark.parametrize("expected", [0, 2])
async def test_a_change_based_on_another_version_is_refused(store, expected):
    await store.definitions.replace(0, "one", {})
    with pytest.raises(DefinitionConflict) as refused:
        await store.definitions.replace(expected, "other", {})
    assert refused.value.current == 1
    assert await store.definitions.read() == (1, "one")


async def test_a_change_is_signalled(store, store_url):
    listener = RedisStore(store_url, store.keys.broker)
    signals = listener.signals()
    try:
        assert await anext(signals) == "subscribed"
        await store.definitions.replace(0, "one", {})
        await store.stats.write({"queue://a": "{}"}, [])
        assert [await anext(signals), await anext(signals)] == ["definitions", "stats 1"]
    finally:
        await signals.aclose()
        await listener.close()


# -- numbers


async def test_readers_learn_what_changed_and_what_is_gone_since_a_version(store):
    await store.stats.write({"queue://a": "a1", "queue://b": "b1"}, [])
    await store.stats.write({"queue://b": "b2", "queue://c": "c2"}, ["queue://a"])

    async def read(since):
        version, rows, gone = await store.stats.changes_since(since)
        return version, sorted(rows), gone

    assert await read(0) == (2, ["b2", "c2"], [])
    assert await read(1) == (2, ["b2", "c2"], ["queue://a"])
    assert await read(2) == (2, [], [])
    assert await read(99) == (2, ["b2", "c2"], [])  # from another life of the store
    await store.stats.write({}, [], ["queue://a"])
    assert await read(1) == (3, ["b2", "c2"], [])  # that a is gone was said for long enough
    await store.stats.clear()
    assert await read(0) == (3, [], [])


async def test_many_numbers_are_written_at_once(store):
    rows = {f"queue://{number}": str(number) for number in range(1234)}
    await store.stats.write(rows, [])
    assert sorted((await store.stats.changes_since(0))[1]) == sorted(rows.values())
    assert await store.stats.read(["queue://7", "queue://none", *list(rows)[-1000:]]) == [
        "7",
        *list(rows.values())[-1000:],
    ]
    assert await store.stats.read([]) == []


# -- requests


async def test_a_request_is_answered(store):
    asked = asyncio.create_task(store.requests.send("purge", {"destination": "queue://a"}, 10))
    request = await store.requests.take("main", 10)
    assert (request["verb"], request["args"]) == ("purge", {"destination": "queue://a"})
    await store.requests.reply(request["id"], {"result": 3})
    assert await asked == {"result": 3}


async def test_a_request_that_was_given_to_a_frozen_node_is_read_by_another_one(store):
    requests = store.requests
    given = asyncio.create_task(requests._client.execute("BLPOP", requests._keys.requests, 10))
    asked = asyncio.create_task(requests.send("purge", {}, 10))
    await given  # and it does no more
    request = await requests.take("other", 10)
    await requests.reply(request["id"], {"result": 3})
    assert await asked == {"result": 3}
    assert await requests.take("other", 0.05) is None


async def test_a_request_nobody_answers_ends_and_is_not_carried_out_later(store):
    with pytest.raises(StoreUnavailable, match=r"did not answer purge within 0\.05 seconds"):
        await store.requests.send("purge", {}, 0.05)
    requests = store.requests
    assert await requests._client.execute("EXISTS", requests._keys.requests) == 0, "nothing piles up without nodes"
    assert await store.requests.take("main", 0.2) is None


async def test_without_requests_a_node_waits_and_goes_on(store):
    assert await store.requests.take("main", 0.05) is None


# -- trouble


async def test_no_server_is_store_unavailable(tmp_path):
    nowhere = RedisStore(f"unix://{tmp_path}/nothing.sock", "b")
    for call in (nowhere.entries.read("a", 0, 1), nowhere.stats.write({"a": "b"}, [])):
        with pytest.raises(StoreUnavailable):
            await call


async def test_a_call_that_is_cancelled_ends_at_whatever_point(store):
    """The driver's own deadlines made it swallow a cancellation now and then."""
    for steps in range(60):
        call = asyncio.create_task(store.server.memory())
        for _ in range(steps % 10):
            await asyncio.sleep(0)
        in_time = call.cancel()
        await asyncio.wait({call})
        assert call.cancelled() or not in_time


async def test_memory_and_durability_are_told(store):
    facts = await store.server.memory()
    assert facts["fsync"] == "always"
    assert facts["used"] > 100_000


async def test_trace_batches_are_kept_for_the_archiver(store):
    await store.write_trace(b"batch", 17)
    [(_, fields)] = await store.client.execute("XRANGE", store.keys.trace, "-", "+")
    assert fields == [b"b", b"batch", b"n", b"17"]


async def test_trace_batches_take_no_more_than_so_much_and_the_oldest_go(store, monkeypatch):
    monkeypatch.setattr("brokerapp.store.redis.TRACE_BATCHES", 100)
    for number in range(350):
        await store.write_trace(b"%d" % number, 1)
    kept = [int(fields[1]) for _, fields in await store.client.execute("XRANGE", store.keys.trace, "-", "+")]
    assert kept == list(range(350 - len(kept), 350))
    assert len(kept) <= 200  # whole pages of it go, of 100 entries each


def test_every_key_of_a_broker_carries_its_hash_tag(store_url):
    keys = StoreKeys("b")
    names = [name for name in dir(type(keys)) if isinstance(getattr(type(keys), name), property)]
    values = [each for name in names if isinstance(each := getattr(keys, name), str)]
    values += [keys.log("q"), keys.reply("1"), keys.request("1")]
    assert len(values) > 10
    assert all(value.startswith("{b}:") for value in values)
    assert len(values) == len(set(values))


class BridgedWriteOfTest(PendingWrite):
    """Messages that the bridge of another broker forwards."""

    def __init__(self, known_by, *appends, **more):
        super().__init__(appends, **more)
        self.dedup_key = known_by


async def test_what_is_handed_over_again_is_kept_once_by_each_log(store, session):
    first = await session.commit(BridgedWriteOfTest("A 1", append("q"), append("q", "r")))
    assert first.duplicates == {}
    again = await session.commit(
        PendingWrite([append("q")]),
        BridgedWriteOfTest("A 1", append("q"), append("q", "other", "r")),
        BridgedWriteOfTest("A 2", append("q")),
    )
    assert again.duplicates == {2: [(1, 1), (2, 1), (2, 3)]}
    assert again.dropped == again.refused == {}
    assert [len(await bodies(store, log)) for log in ("q", "r", "other")] == [4, 1, 1]


async def test_what_was_handed_over_before_needs_no_room_and_what_was_refused_was_not(store, session):
    size = len(message().stored())
    limits = StoreLimits(of_log=lambda log: size if log == "small" else 0)
    assert (await session.commit(BridgedWriteOfTest("A 1", append("small")), limits=limits)).refused == {}
    assert (await session.commit(BridgedWriteOfTest("A 2", append("small")), limits=limits)).refused == {1: "small"}
    both = await session.commit(BridgedWriteOfTest("A 1", append("small", "q")), limits=limits)
    assert (both.refused, both.duplicates) == ({}, {1: [(1, 1)]})
    assert (await session.commit(BridgedWriteOfTest("A 2", append("small")))).duplicates == {}
