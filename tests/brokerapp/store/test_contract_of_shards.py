"""Test what the broker relies on in its shards, on two real Valkeys."""

import asyncio
from contextlib import aclosing

import pytest

from brokerapp.errors import Fenced, RequestRefused, StoreUnavailable
from brokerapp.store import GONE, CommitBatch, IntentChange, PendingWrite, ScheduledJobChange, StoreLimits
from brokerapp.store.client.keys import MOST_SHARDS
from brokerapp.store.redis import RedisStore
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.intent_codec import ShardPart, encode_parts
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.part_write import PartWrite
from brokerapp.store.shards.record import DRAINING, JOINING, SERVING, Shard, ShardRecordStore
from tests.brokerapp.store.commit_helpers import CommittingSession, append, bodies, entries, payloads, used


class SpreadWrite(PartWrite):
    """A part of a write to several shards."""

    __slots__ = ("jobs",)

    def __init__(self, *appends, jobs=(), ignores_limits=False, **more):
        super().__init__(appends, ignores_limits=ignores_limits, **more)
        self.jobs = jobs


@pytest.fixture(scope="module")
def other_url(tmp_path_factory):
    with EmbeddedStore(tmp_path_factory.mktemp("shard")) as running:
        yield running.url


@pytest.fixture
def session(store):
    return CommittingSession(store)


@pytest.fixture
def record(store):
    return ShardRecordStore(store.client)


@pytest.fixture
async def intents(store):
    return IntentStore(store.client)


@pytest.fixture
async def broker(store, record, other_url, broker_name):
    """The store of a broker with two shards; `q0` is in the first one, `q1` in the other."""
    await record.add(other_url, SERVING)
    assert await record.claim_logs([("q0", "zero", 0), ("q1", "one", 1)]) == [0, 1]
    opened = BrokerStore(store.url, broker_name)
    await opened.open()
    await opened.nodes.join("me")
    yield opened
    await opened.close()


async def commit_to(broker, log, shard, number=1):
    """Store a message in a shard."""
    batch = CommitBatch(number, [PendingWrite([append(log)])], [(log, f'{{"shard": {shard}}}')])
    await broker.shards.stores[shard].commit("me", batch, StoreLimits())


# -- intents


async def test_an_intent_is_kept_with_its_unit_and_removed_with_another(session, intents):
    await session.commit(SpreadWrite(append("q"), intent=IntentChange("me-1", b"what others are to do \0\xff")))
    assert await intents.read_all() == {"me-1": b"what others are to do \0\xff"}
    await session.commit(SpreadWrite(intent=IntentChange("me-1")))
    assert await intents.read_all() == {}


async def test_a_refused_unit_keeps_no_intent(session, intents):
    gone = SpreadWrite(append("q"), intent=IntentChange("me-1", b"x"), jobs=[ScheduledJobChange("gone")])
    assert (await session.commit(gone)).refused == {1: GONE}
    full = SpreadWrite(append("q"), intent=IntentChange("me-2", b"x"))
    assert (await session.commit(full, limits=StoreLimits(total=1))).refused != {}
    assert await intents.read_all() == {}


async def test_a_batch_repeated_does_not_bring_back_an_intent_that_has_ended(store, intents):
    batch = CommitBatch(1, [SpreadWrite(intent=IntentChange("me-1", b"x")), SpreadWrite(intent=IntentChange("me-1"))])
    first = await store.commit("me", batch, StoreLimits())
    assert await store.commit("me", batch, StoreLimits()) == first
    assert await intents.read_all() == {}


async def test_many_intents_are_read_in_several_commands(session, intents, monkeypatch):
    monkeypatch.setattr("brokerapp.store.shards.intents.SCANNED_AT_ONCE", 10)
    await session.commit(*(SpreadWrite(intent=IntentChange(f"me-{number}", b"x" * 100)) for number in range(700)))
    assert (await intents.read_all()).keys() == {f"me-{number}" for number in range(700)}
    assert await intents.count() == 700


async def test_a_part_that_is_done_again_changes_nothing(store, session):
    await session.append("q", "r", body=b"settled")
    settles = [*await entries(store, "q"), *await entries(store, "r")]
    part = [append("s", "t", body=b"1"), append("s", body=b"2")]
    await session.commit(SpreadWrite(*part, settles=settles, part_of="me-1"))
    state = await bodies(store, "s"), await bodies(store, "t"), await payloads(store), await used(store)
    await session.commit(SpreadWrite(*part, settles=settles, part_of="me-1"))
    assert (await bodies(store, "s"), await bodies(store, "t"), await payloads(store), await used(store)) == state
    assert state[:2] == ([b"1", b"2"], [b"1"])


async def test_a_part_is_remembered_once_until_its_intent_ends(store, session):
    part = [append("q", "r"), append("q"), append("q")]
    again = [await session.commit(SpreadWrite(*part, part_of="me-1")) for _ in range(2)][1]
    assert again.duplicates == {1: [(1, 1), (1, 2), (2, 1), (3, 1)]}
    await session.commit(SpreadWrite(append("q"), part_of="me-2"))
    await session.commit(SpreadWrite(append("q"), part_of="me-3"))
    remembered = "ZRANGE", f"{store.keys.audit}:intents", 0, -1
    assert await store.client.execute(*remembered) == [b"intent me-1", b"intent me-2", b"intent me-3"]
    await session.commit(SpreadWrite(append("q"), part_of="me-4", intent=IntentChange("me-1 me-2")))
    assert await store.client.execute(*remembered) == [b"intent me-3", b"intent me-4"]


async def test_a_part_is_known_by_its_intent_and_its_messages_by_what_they_are_known_by_when_they_are_sent_again(
    store, session
):
    """They may be sent again another way, so that another write brings them to the same logs, and to more."""
    first = SpreadWrite(append("q", "r"), part_of="me-1", dedup_key="resent ID:1")
    await session.commit(first)
    again = SpreadWrite(append("q", "r", "s"), part_of="other-1", dedup_key="resent ID:1")
    assert (await session.commit(again)).duplicates == {1: [(1, 1), (1, 2)]}
    assert (await session.commit(again)).duplicates == {1: [(1, 1), (1, 2), (1, 3)]}
    assert await store.logs.depths(["q", "r", "s"]) == {"q": 1, "r": 1, "s": 1}


@pytest.mark.long
async def test_a_part_of_more_messages_than_are_remembered_is_recognised_when_it_is_done_again(store, session):
    part = [append("q", body=b"")] * 100_001  # one more than REMEMBERED in bridge_dedup.lua
    for _ in range(2):
        await session.commit(SpreadWrite(*part, part_of="me-1"))
        assert await store.logs.depths(["q"]) == {"q": 100_001}


async def test_parts_push_nothing_out_of_what_bridges_and_clients_handed_over(store, session):
    for keys in ({"dedup_key": "A 1"}, {"dedup_key": "resent 1"}, {"part_of": "me-1"}):
        await session.commit(SpreadWrite(append("q"), **keys))
    audits = [store.keys.audit, f"{store.keys.audit}:clients", f"{store.keys.audit}:intents"]
    assert [await store.client.execute("ZCARD", audit) for audit in audits] == [1, 1, 1]


# -- the record of shards


async def test_a_broker_has_one_shard_until_others_are_added(record, other_url):
    assert (await record.read()).serving == [0]
    assert await record.add(other_url) == 1
    assert (await record.read()).shards == {1: Shard(1, other_url, JOINING)}
    await record.set_state((await record.read()).shards[1], SERVING)
    assert (await record.read()).serving == [0, 1]


async def test_a_store_is_a_shard_once(store, record, other_url):
    await record.add(other_url)
    for url in (other_url, store.url):
        with pytest.raises(RequestRefused, match="the store with this URL is a shard of the broker already"):
            await record.add(url)


async def test_changes_of_shards_are_signalled(store, record, other_url):
    async with asyncio.timeout(5), aclosing(store.signals()) as signals:
        assert await anext(signals) == "subscribed"
        await record.add(other_url)
        assert await anext(signals) == "shards"
        await record.set_state((await record.read()).shards[1], DRAINING)
        assert await anext(signals) == "shards"
        await record.remove(1, ())
        assert await anext(signals) == "shards"


async def test_a_shard_that_holds_logs_or_may_be_given_some_is_not_removed(record, other_url):
    await record.add(other_url, SERVING)
    with pytest.raises(RequestRefused, match="shard 1 holds 1 destinations, among them queue://q"):
        await record.remove(1, ["queue://q"])
    with pytest.raises(RequestRefused, match="shard 1 is serving: drain it first"):
        await record.remove(1, ())
    with pytest.raises(RequestRefused, match="shard 7 cannot be removed"):
        await record.remove(7, ())


async def test_a_removed_shard_leaves_no_places_and_its_number_is_not_given_again(record, other_url):
    """Payloads that were moved out of a shard keep its number: those of another shard must not have the same."""
    await record.add(other_url, DRAINING)
    await record.claim_logs([("q", "f", 1), ("r", "g", 0)])
    await record.remove(1, ())
    read = await record.read()
    assert (read.shards, read.families) == ({}, {"g": 0})
    assert await record.shards_of(["q", "r"]) == [0, 0]
    assert await record.add(other_url) == 2


async def test_no_shard_is_added_beyond_the_numbers_that_payloads_can_tell_apart(store, record, other_url):
    await store.client.execute("HSET", store.keys.state, "shards", MOST_SHARDS - 1)
    with pytest.raises(RequestRefused, match="255 shards were added"):
        await record.add(other_url)


async def test_nodes_that_claim_logs_at_the_same_time_agree_where_they_are(store, record):
    others = [RedisStore(store.url, store.keys.broker) for _ in range(8)]
    claims = [(f"q{number}", f"f{number // 2}") for number in range(40)]
    try:
        answers = await asyncio.gather(
            *(
                ShardRecordStore(other.client).claim_logs([(log, family, wanted) for log, family in claims])
                for wanted, other in enumerate(others)
            )
        )
    finally:
        for other in others:
            await other.close()
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][::2] == answers[0][1::2]  # families stay together
    assert await record.shards_of([log for log, _ in claims]) == answers[0]


async def test_logs_stay_where_they_are_and_new_ones_go_to_their_families(store, record, session):
    await session.commit(declarations=[("old", "{}")])  # before the broker had shards
    assert await record.claim_logs([("old", "f", 3), ("of the family", "f", 3), ("alone", "", 2)]) == [0, 0, 2]
    assert (await record.read()).families == {"f": 0}
    assert await record.claim_logs([("alone", "", 1), ("old", "g", 1)]) == [2, 0]


async def test_where_logs_are_is_a_change_that_a_rollback_of_the_store_is_known_by(store, record):
    async def changes():
        return int(await store.client.execute("HGET", store.keys.state, "changes"))

    before = await changes()
    await record.claim_logs([("q", "f", 1)])
    assert await changes() == before + 1
    await record.claim_logs([("q", "f", 1)])  # which changes nothing
    assert await changes() == before + 1


# -- members


async def test_a_member_is_one_of_all_shards_until_it_leaves(broker):
    first, second = broker.shards.stores.values()
    await broker.nodes.send_heartbeat("me", {"about": "me"})
    assert await broker.nodes.statuses() == {"main": {"about": "me"}}
    assert [list((await each.nodes.members())[1]) for each in (first, second)] == [["main"], ["main"]]
    await broker.nodes.leave("me")
    assert [(await each.nodes.members())[1] for each in (first, second)] == [{}, {}]
    for number in broker.shards.stores:
        with pytest.raises(Fenced):
            await commit_to(broker, f"q{number}", number)


async def test_a_member_that_is_fenced_writes_to_no_shard_and_what_it_left_is_finished(broker):
    other = BrokerStore(broker.url, broker.keys.broker)
    await other.open()
    try:
        await other.nodes.join("dead", "other", timeout_ms=1)
        part = ShardPart(1, [append("q1", body=b"left")], [])
        left = SpreadWrite(append("q0"), intent=IntentChange("dead-1", encode_parts([part])))
        await other.main.commit("dead", CommitBatch(1, [left], [("q0", "{}")]), StoreLimits())
        await asyncio.sleep(0.01)
        assert await broker.nodes.fence("me", "other", "dead")
        for number, each in other.shards.stores.items():
            with pytest.raises(Fenced):
                await each.commit("dead", CommitBatch(2, [PendingWrite([append(f"q{number}")])]), StoreLimits())
            assert await IntentStore(each.client).read_all() == {}
    finally:
        await other.close()
    assert [each.message.body for each in await broker.entries.read("q1", 0, 9)] == [b"left"]
    assert list((await broker.nodes.members())[1]) == ["main"]


async def leave_half_done(other, session, count):
    """Have a member store so many writes to both shards, of which the second has done nothing yet."""
    first = 1 + await other.main.last_batch(session)
    for number in range(first, first + count):
        part = ShardPart(1, [append("q1", body=b"%d" % number)], [])
        left = SpreadWrite(append("q0"), intent=IntentChange(f"{session}-{number}", encode_parts([part])))
        await other.main.commit(session, CommitBatch(number, [left]), StoreLimits())


async def test_others_hear_of_a_member_that_starts_anew_when_what_it_left_is_finished(broker):
    """They give out again what clients of the former one held and the store still has: it is to be settled by then."""
    other = BrokerStore(broker.url, broker.keys.broker)
    await other.open()
    try:
        await other.nodes.join("former", "other")
        await leave_half_done(other, "former", 100)
        async with asyncio.timeout(20), aclosing(broker.main.signals()) as signals:
            assert await anext(signals) == "subscribed"
            joining = asyncio.ensure_future(other.nodes.join("latter", "other"))
            while await anext(signals) != "nodes":
                pass
            assert await IntentStore(broker.main.client).read_all() == {}
            assert await broker.logs.depths(["q1"]) == {"q1": 100}
            await joining
            with pytest.raises(Fenced):
                await leave_half_done(other, "former", 1)
    finally:
        await other.close()


async def test_a_recovery_that_a_shard_does_not_know_any_more_is_tried_again(broker):
    """As when a replica takes over that had not heard of it: nobody fenced the node which carries it out."""
    other = BrokerStore(broker.url, broker.keys.broker)
    await other.open()
    try:
        await other.nodes.join("dead", "other", timeout_ms=1)
        await leave_half_done(other, "dead", 200)
        second = broker.shards.stores[1]

        async def forget_it():
            while True:
                for field in await second.client.execute("HKEYS", second.keys.state):
                    if field.startswith(b"session:recovery"):
                        return await second.client.execute("HDEL", second.keys.state, field)

        forgetting = asyncio.ensure_future(forget_it())
        with pytest.raises(StoreUnavailable, match="shard 1 was taken over"):
            await broker.nodes.fence("me", "other", "dead")
        await forgetting
        assert await broker.nodes.fence("me", "other", "dead")
        assert await broker.logs.depths(["q0", "q1"]) == {"q0": 200, "q1": 200}
    finally:
        await other.close()


async def test_a_member_is_fenced_in_a_shard_that_only_the_member_has_joined_so_far(broker, tmp_path):
    other = BrokerStore(broker.url, broker.keys.broker)
    with EmbeddedStore(tmp_path) as third:
        number = await broker.shard_record.add(third.url, SERVING)
        try:
            await other.open()
            await other.nodes.join("dead", "other", timeout_ms=1)
            await broker.shards.refresh()
            await asyncio.sleep(0.01)
            assert await broker.nodes.fence("me", "other", "dead")
            with pytest.raises(Fenced):
                await other.shards.stores[number].commit(
                    "dead", CommitBatch(1, [PendingWrite([append("q2")])]), StoreLimits()
                )
        finally:
            await other.close()


async def test_a_member_that_beats_in_the_first_shard_is_not_fenced_in_any(broker):
    other = BrokerStore(broker.url, broker.keys.broker)
    await other.open()
    try:
        await other.nodes.join("alive", "other")
        second = broker.shards.stores[1]
        await second.client.execute("DEL", second.keys.node("other"))
        assert not await broker.nodes.fence("me", "other", "alive")
        await other.shards.stores[1].commit("alive", CommitBatch(1, [PendingWrite([append("q1")])]), StoreLimits())
    finally:
        await other.close()


# -- what is read of all shards


async def test_what_is_read_of_several_logs_comes_from_the_shards_that_have_them(broker):
    for number in (0, 1):
        await commit_to(broker, f"q{number}", number)
    logs = broker.logs
    assert await logs.attributes_of(["q1", "none", "q0"]) == [{"shard": 1}, {}, {"shard": 0}]
    assert await logs.depths(["q1", "q0"]) == {"q0": 1, "q1": 1}
    total, by_log = await logs.used_bytes()
    assert by_log.keys() == {"q0", "q1"}
    assert total > sum(by_log.values()) > 0
    assert {state.name: state.depth for state in await logs.recover()} == {"q0": 1, "q1": 1}
    assert [len(await broker.entries.read(log, 0, 9)) for log in ("q0", "q1")] == [1, 1]
    assert await logs.drop("q1", "me") == 1
    assert (await logs.all_attributes()).keys() == {"q0"}


async def test_a_reader_finds_a_log_in_a_shard_that_was_added_since_it_looked(broker, other_url):
    reader = BrokerStore(broker.url, broker.keys.broker)
    await reader.open()
    try:
        assert await reader.logs.depths(["q1"]) == {"q1": 0}
        number = await broker.shard_record.add(f"{other_url}?db=1", SERVING)
        await broker.shard_record.claim_logs([("new", "", number)])
        assert await reader.logs.depths(["new", "q1"]) == {"new": 0, "q1": 0}
    finally:
        await reader.close()


async def test_an_error_names_the_shard_that_does_not_answer(broker, tmp_path):
    nowhere = RedisStore(f"unix://{tmp_path}/nothing.sock", broker.keys.broker, shard=5)
    with pytest.raises(StoreUnavailable, match=r"^shard 5: "):
        await nowhere.open()
    await nowhere.close()
