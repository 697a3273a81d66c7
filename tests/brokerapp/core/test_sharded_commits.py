"""Test that writes of a broker with several shards are done once, in order, and whole, on a real Valkey."""

import asyncio
import itertools
from contextlib import asynccontextmanager

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerapp.core.commits.batch_limits import MAX_BYTES
from brokerapp.core.commits.group_commit import GroupCommit
from brokerapp.core.shards.log_locations import LogLocations
from brokerapp.core.shards.sharded_commits import ShardedCommits
from brokerapp.engine.entries.log_entry import UNCOMMITTED
from brokerapp.model.message import Message
from brokerapp.store import TEMP, CommitBatch, PendingWrite, StoreLimits, numbers_from
from brokerapp.store.redis import RedisStore
from brokerapp.store.shards.intent_codec import ShardPart, StoredSettle, decode_parts, encode_parts
from brokerapp.store.shards.intents import IntentStore
from brokerapp.store.shards.part_write import PartWrite

SESSION = "s"
numbers = itertools.count()


def shard_of(log):
    """Return the shard of a log, the digit before its colon."""
    return int(log[0])


class LogsByName:
    """Families of one log each, of which the name says where they belong."""

    place = staticmethod(shard_of)
    family_of = staticmethod(str)

    def note(self, log, attributes):
        pass

    def forget(self, log):
        return True


def stored(text):
    return Message(text, f"message-id:{text}\n".encode(), b"x", persistent=True).stored()


def append_to(*logs, text):
    """Return a message of this id with a copy in each of these logs."""
    return stored(text), [(log, "", "") for log in logs]


class Reading:
    """Answers questions about logs, each of its shard."""

    def __init__(self, stores):
        self.stores = stores

    @property
    def entries(self):
        return self

    async def read(self, log, after, count):
        return await self.stores[shard_of(log)].entries.read(log, after, count)


@asynccontextmanager
async def sharded(store_url, shards=3):
    broker = f"b{next(numbers)}"
    stores = {number: RedisStore(store_url, f"{broker}/{number}" if number else broker) for number in range(shards)}
    for each in stores.values():
        await each.open()
        await each.nodes.join(SESSION)
    spread_to = set()
    groups = {
        number: GroupCommit(
            each,
            SESSION,
            StoreLimits(),
            lambda: None,
            on_batch=lambda batch: commits.on_batch(batch),
        )
        for number, each in stores.items()
    }
    commits = ShardedCommits(groups, LogLocations(LogsByName()), Reading(stores), SESSION, spread_to.update)
    running = asyncio.create_task(commits.run())
    try:
        async with asyncio.timeout(20):
            yield commits, stores
    finally:
        running.cancel()
        for each in stores.values():
            await each.close()


async def ids(stores, log):
    return [entry.message.id for entry in await stores[shard_of(log)].entries.read(log, 0, 1000)]


async def intents(stores):
    return sum([await each.client.execute("HLEN", each.keys.intents) for each in stores.values()])


async def test_a_write_to_several_shards_brings_each_its_messages_and_leaves_no_intent(store_url):
    async with sharded(store_url) as (commits, stores):
        outcome = []
        appends = [
            (stored("m1"), [("1:a", "", "")]),
            (stored("m2"), [("2:b", "", "")]),
            (stored("m3"), [("1:a", "", "")]),
        ]
        commits.submit(PendingWrite(appends, callback=lambda seq, refused: outcome.append((seq, refused))))
        await commits.drain()
        assert await ids(stores, "1:a") == ["m1", "m3"]
        assert await ids(stores, "2:b") == ["m2"]
        [(first, refused)] = outcome
        read = [await stores[1].entries.read("1:a", 0, 9), await stores[2].entries.read("2:b", 0, 9)]
        assert refused == ""
        assert list(numbers_from(first, 3)) == [read[0][0].seq, read[1][0].seq, read[0][1].seq]
        assert await intents(stores) == 0


async def test_what_is_asked_later_of_a_log_comes_behind_a_write_that_is_on_its_way_there(store_url):
    async with sharded(store_url) as (commits, stores):
        commits.submit(PendingWrite([(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]))
        commits.submit(PendingWrite([(stored("3"), [("2:b", "", "")])]))
        commits.submit(PendingWrite([(stored("4"), [("2:b", "", "")]), (stored("5"), [("0:c", "", "")])]))
        commits.submit(PendingWrite([(stored("6"), [("0:c", "", "")])]))
        read = asyncio.get_running_loop().create_future()
        commits.read("0:c", 0, 10, read.set_result)
        assert [entry.message.id for entry in await read] == ["5", "6"]
        await commits.drain()
        assert [await ids(stores, log) for log in ("1:a", "2:b", "0:c")] == [["1"], ["2", "3", "4"], ["5", "6"]]


async def test_what_the_coordinator_refuses_is_done_by_no_shard(store_url):
    async with sharded(store_url) as (commits, stores):
        refusals = []
        commits._groups[1].limits.of_log = lambda log: 1
        commits.submit(PendingWrite([(stored("0"), [("1:a", "", "")])]))
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]
        commits.submit(PendingWrite(appends, callback=lambda _seq, refused: refusals.append(refused)))
        commits.submit(PendingWrite([(stored("3"), [("2:b", "", "")])]))
        await commits.drain()
        assert refusals == ["1:a"]
        assert await ids(stores, "2:b") == ["3"]
        assert await intents(stores) == 0


async def test_what_another_shard_has_no_room_for_is_refused_as_a_whole(store_url):
    async with sharded(store_url) as (commits, stores):
        refusals = []
        commits._groups[2].limits.of_log = lambda log: 1
        commits.submit(PendingWrite([(stored("0"), [("2:b", "", "")])]))
        await commits.drain()
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]
        commits.submit(PendingWrite(appends, callback=lambda _seq, refused: refusals.append(refused)))
        await commits.drain()
        assert refusals == ["2:b"]
        assert await ids(stores, "1:a") == []
        assert await ids(stores, "2:b") == ["0"]


async def test_what_is_not_persistent_is_refused_as_a_whole_where_another_shard_may_hold_no_more_of_it(store_url):
    async with sharded(store_url) as (commits, stores):
        outcomes = []
        volatile = Message("v", b"message-id:v\n", b"x" * 60).stored()
        commits._groups[2].limits.temp = 2 * len(volatile) + 20
        for _ in range(3):
            appends = [(volatile, [("1:a", "", "")]), (volatile, [("2:b", "", "")])]
            commits.submit(PendingWrite(appends, callback=lambda _seq, refused: outcomes.append(refused)))
        commits.submit(PendingWrite([append_to("1:a", text="p"), append_to("2:b", text="p")]))
        await commits.drain()
        assert sorted(outcomes) == ["", "", TEMP]
        assert await ids(stores, "1:a") == await ids(stores, "2:b") == ["v", "v", "p"]


async def test_a_shard_that_seems_full_is_asked_before_a_write_is_refused(store_url):
    """Another node may have made room, of which this one knows nothing."""
    async with sharded(store_url) as (commits, stores):
        outcomes = []
        commits._groups[2].limits.of_log = lambda log: 100
        commits.submit(PendingWrite([(stored("0"), [("2:b", "", "")])]))
        await commits.drain()
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2" * 60), [("2:b", "", "")])]
        commits.submit(PendingWrite(appends, callback=lambda _seq, refused: outcomes.append(refused)))
        await commits.drain()
        [entry] = await stores[2].entries.read("2:b", 0, 1)
        other_node = StoredSettle("2:b", entry.seq, entry.payload, entry.size, entry.message)
        await stores[2].nodes.admit("other")
        await stores[2].commit("other", CommitBatch(1, [PendingWrite(settles=[other_node])]), StoreLimits())
        commits.submit(PendingWrite(appends, callback=lambda _seq, refused: outcomes.append(refused)))
        await commits.drain()
        assert outcomes == ["2:b", ""]


async def test_entries_are_moved_between_shards_in_one_write(store_url):
    async with sharded(store_url) as (commits, stores):
        commits.submit(PendingWrite([(stored("1"), [("1:a", "", "")])]))
        await commits.drain()
        [entry] = await stores[1].entries.read("1:a", 0, 1)
        settle = StoredSettle("1:a", entry.seq, entry.payload, entry.size, entry.message)
        commits.submit(PendingWrite([(stored("1"), [("2:dlq", "", "")])], [settle], ignores_limits=True))
        await commits.drain()
        assert await ids(stores, "1:a") == []
        assert await ids(stores, "2:dlq") == ["1"]


async def test_a_barrier_waits_for_all_shards(store_url):
    async with sharded(store_url) as (commits, _stores):
        done = []
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]
        commits.submit(PendingWrite(appends, callback=lambda *_: done.append("spread")))
        commits.submit(PendingWrite(callback=lambda *_: done.append("empty")))
        await commits.barrier()
        assert done == ["spread", "empty"]


logs = st.sampled_from(["0:a", "0:b", "1:a", "1:b", "2:a"])
writes = st.lists(st.lists(logs, min_size=1, max_size=4), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=writes)
def test_each_log_has_every_message_once_in_the_order_of_the_writes(store_url, writes):
    async def check():
        async with sharded(store_url) as (commits, stores):
            expected = {}
            outcomes = []
            for number, of_write in enumerate(writes):
                appends = []
                for place, log in enumerate(of_write):
                    id = f"{number}.{place}"
                    appends.append((stored(id), [(log, "", "")]))
                    expected.setdefault(log, []).append(id)
                commits.submit(PendingWrite(appends, callback=lambda seq, refused: outcomes.append(refused)))
                if number % 3 == 2:
                    await asyncio.sleep(0)
            await commits.drain()
            assert outcomes == [""] * len(writes)
            for log, wanted in expected.items():
                assert await ids(stores, log) == wanted
            assert await intents(stores) == 0

    asyncio.run(check())


rows = st.lists(st.tuples(st.text(max_size=5), st.text(max_size=3), st.just("")), min_size=1, max_size=3)
settles = st.builds(
    StoredSettle,
    st.text(min_size=1, max_size=8),
    st.integers(1, 2**40),
    st.integers(0, 2**40),
    st.integers(0, 2**20),
    st.sampled_from([Message("", b"", b"", persistent=True), Message("", b"", b"", persistent=False)]),
)
messages = st.lists(st.tuples(st.binary(max_size=30), rows), max_size=3)
parts = st.lists(
    st.builds(
        ShardPart,
        st.integers(0, 9),
        st.lists(st.tuples(st.binary(max_size=30), rows), max_size=3),
        st.lists(settles, max_size=3),
        st.sampled_from(["", "resent ID:1"]),
    ),
    max_size=3,
)


@given(parts)
def test_parts_are_decoded_as_they_were_encoded(parts):
    assert decode_parts(encode_parts(parts)) == parts


async def test_writes_to_the_same_shards_do_not_wait_for_each_other_and_stay_in_order(store_url):
    async with sharded(store_url) as (commits, stores):
        for number in range(50):
            commits.submit(
                PendingWrite([(stored(f"a{number}"), [("1:a", "", "")]), (stored(f"b{number}"), [("2:b", "", "")])])
            )
        commits.submit(PendingWrite([(stored("last"), [("2:b", "", "")])]))
        await commits.drain()
        assert await ids(stores, "1:a") == [f"a{number}" for number in range(50)]
        assert await ids(stores, "2:b") == [*(f"b{number}" for number in range(50)), "last"]
        assert await stores[1].last_batch(SESSION) < 10
        assert await intents(stores) == 0


async def test_writes_on_their_way_to_another_shard_count_towards_its_limits(store_url):
    async with sharded(store_url) as (commits, stores):
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]
        size = PendingWrite(appends[1:]).cost[1]
        commits._groups[2].limits.of_log = lambda log: 3 * size
        outcomes = []
        for _ in range(10):
            commits.submit(PendingWrite(appends, callback=lambda _seq, refused: outcomes.append(refused)))
        await commits.drain()
        assert sorted(outcomes) == [""] * 3 + ["2:b"] * 7
        assert len(await ids(stores, "1:a")) == len(await ids(stores, "2:b")) == 3


async def test_a_write_to_several_shards_can_be_taken_back_until_the_store_has_it(store_url):
    async with sharded(store_url) as (commits, stores):
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]
        spread, behind = PendingWrite(appends), PendingWrite([(stored("3"), [("2:b", "", "")])])
        commits.submit(spread)
        commits.submit(behind)
        assert commits.cancel(lambda unit: unit is spread) == [spread]
        await commits.drain()
        assert await ids(stores, "1:a") == []
        assert await ids(stores, "2:b") == ["3"]


async def test_a_write_that_is_taken_back_while_a_shard_is_asked_how_full_it_is_is_not_done(store_url):
    async with sharded(store_url) as (commits, stores):
        outcomes = []
        commits._groups[2].limits.of_log = lambda log: 1
        commits._groups[2].note_usage(100, 0, {"2:b": 100})  # as it was before another node emptied it
        appends = [(stored("1"), [("1:a", "", "")]), (stored("2"), [("2:b", "", "")])]
        spread = PendingWrite(appends, callback=lambda _seq, refused: outcomes.append(refused))
        commits._groups[1].limits.of_log = lambda log: 1  # so that this shard is the coordinator
        commits.submit(spread)
        assert commits.cancel(lambda unit: unit is spread) == [spread]
        await commits.drain()
        assert outcomes == []
        assert await ids(stores, "1:a") == await ids(stores, "2:b") == []


async def test_what_follows_a_write_that_waits_for_a_number_of_another_shard_does_not_overtake_it(store_url):
    """A transaction may acknowledge what was given out early, in another shard than it sends to."""
    async with sharded(store_url) as (commits, stores):
        given = StoredSettle("2:b", UNCOMMITTED, 0, 0, Message("", b"", b"", persistent=True))
        arriving = PendingWrite([append_to("2:b", text="0")], callback=lambda seq, _refused: setattr(given, "seq", seq))
        commits.submit(arriving)
        commits.submit(PendingWrite([append_to("1:a", text="1")], [given]))
        commits.submit(PendingWrite([append_to("1:a", text="2")]))
        await commits.drain()
        assert await ids(stores, "1:a") == ["1", "2"]
        assert await ids(stores, "2:b") == []


async def test_what_follows_a_write_that_waits_for_how_full_a_shard_is_does_not_overtake_it(store_url):
    async with sharded(store_url) as (commits, stores):
        commits._groups[2].limits.of_log = lambda log: 300
        commits._groups[2].note_usage(1000, 0, {"2:b": 1000})  # as it was before another node emptied it
        commits._groups[1].limits.of_log = lambda log: 1000  # so that this shard is the coordinator
        commits.submit(PendingWrite([append_to("1:a", text="1"), append_to("2:b", text="1")]))
        commits.submit(PendingWrite([append_to("1:a", text="2")]))
        await commits.drain()
        assert await ids(stores, "1:a") == ["1", "2"]


async def test_of_writes_that_are_taken_back_none_is_done_that_another_of_them_was_ahead_of(store_url):
    async with sharded(store_url) as (commits, stores):
        commits.submit(PendingWrite([append_to("1:a", text="0"), append_to("2:b", text="0")]))
        both = PendingWrite([append_to("2:c", text="1"), append_to("2:b", text="1")])
        behind = PendingWrite([append_to("2:c", text="2")])
        commits.submit(both)
        commits.submit(behind)
        assert commits.cancel(lambda unit: unit in (both, behind)) == [both, behind]
        await commits.drain()
        assert await ids(stores, "2:c") == []
        assert await ids(stores, "2:b") == ["0"]


class Joined(PendingWrite):
    """Messages of several clients in one write, of which each can be taken back."""

    is_atomic = False
    __slots__ = ()

    def divide(self, wanted):
        units = [Joined([each]) for each in self.appends]
        rest = [each for unit in units if not wanted(unit) for each in unit.appends]
        return [unit for unit in units if wanted(unit)], Joined(rest) if rest else None

    @property
    def appends(self):
        return [(each, rows) for stored, [rows] in self.runs for each in stored]

    def goes_to(self, log):
        return any(row[0] == log for _, rows in self.appends for row in rows)


async def test_what_is_left_of_a_write_that_is_taken_back_in_part_keeps_its_turn(store_url):
    async with sharded(store_url) as (commits, stores):
        commits.submit(PendingWrite([append_to("1:a", text="0"), append_to("2:b", text="0")]))
        commits.submit(Joined([append_to("2:b", text="1"), append_to("2:c", text="1")]))
        commits.submit(Joined([append_to("2:b", text="2")]))
        [taken] = commits.cancel(lambda unit: isinstance(unit, Joined) and unit.goes_to("2:c"))
        assert [rows for _, rows in taken.appends] == [[("2:c", "", "")]]
        await commits.drain()
        assert await ids(stores, "2:b") == ["0", "1", "2"]
        assert await ids(stores, "2:c") == []


async def test_a_log_that_is_made_anew_while_its_removal_waits_for_another_shard_stays(store_url):
    async with sharded(store_url) as (commits, stores):
        commits.create("2:b", "{}")
        await commits.drain()
        commits.submit(PendingWrite([append_to("1:a", text="0"), append_to("2:c", text="0")], callback=lambda *_: None))
        commits.submit(PendingWrite([append_to("1:a", text="0"), append_to("2:b", text="0")]))
        commits.discard_log("2:b")
        commits.create("2:b", '{"kind": "queue"}')
        commits.submit(PendingWrite([append_to("2:b", text="1")]))
        discarding = asyncio.create_task(commits.run_discards())
        await commits.drain()
        await asyncio.sleep(0.1)
        discarding.cancel()
        assert await stores[2].logs.attributes("2:b") == {"kind": "queue", "shard": 2}
        assert commits.located["2:b"] == 2
        assert (await ids(stores, "2:b"))[-1] == "1"


async def test_what_other_shards_are_to_do_counts_towards_the_size_of_a_batch(store_url):
    async with sharded(store_url) as (commits, stores):
        sizes, on_batch = [], commits.on_batch

        def measure(batch):
            sizes.append(sum(len(unit.intent.content) for unit in batch.writes if unit.intent is not None))
            on_batch(batch)

        commits.on_batch = measure
        large = "x" * 3_000_000
        for number in range(6):
            commits.submit(PendingWrite([append_to("1:a", text=str(number)), append_to("2:b", text=large)]))
        await commits.drain()
        assert max(sizes) <= MAX_BYTES
        assert sum(sizes) > 6 * len(large)
        assert await stores[2].logs.depths(["2:b"]) == {"2:b": 6}


async def test_shards_remember_parts_until_their_intents_have_ended_and_not_much_longer(store_url):
    async with sharded(store_url) as (commits, stores):
        for number in range(30):
            commits.submit(PendingWrite([append_to("1:a", text=str(number)), append_to("2:b", text=str(number))]))
            await commits.drain()
        assert await stores[2].client.execute("ZCARD", f"{stores[2].keys.audit}:intents") == 1
        assert await ids(stores, "2:b") == [str(number) for number in range(30)]


class Resent(PendingWrite):
    """A message that its client sends again, as it does not know whether it was stored."""

    __slots__ = ("dedup_key",)
    dedup_key: str

    def __init__(self, appends, **more):
        super().__init__(appends, **more)
        self.dedup_key = "resent ID:1"


async def test_a_message_that_is_sent_again_comes_once_to_each_log_though_its_way_is_another_now(store_url):
    """There may be more queues on it than before, in other shards."""
    async with sharded(store_url) as (commits, stores):
        outcomes = []
        for targets in (["2:b"], ["1:a", "2:b"], ["0:c", "1:a", "2:b"]):
            appends = [append_to(log, text="1") for log in targets]
            commits.submit(Resent(appends, callback=lambda _seq, refused: outcomes.append(refused)))
            await commits.drain()
        assert outcomes == ["", "", ""]
        assert [await ids(stores, log) for log in ("0:c", "1:a", "2:b")] == [["1"], ["1"], ["1"]]
        assert await intents(stores) == 0


async def test_a_message_that_is_sent_again_while_its_node_left_it_half_done_comes_once_to_each_log(store_url):
    async with sharded(store_url) as (commits, stores):
        appends = [append_to("1:a", text="1"), append_to("2:b", text="1")]
        commits._groups[2].submit = lambda unit: None  # the node ends before it asks this shard
        commits.submit(Resent(appends))
        while not await intents(stores):
            await asyncio.sleep(0.01)
        [(_, content)] = (await IntentStore(stores[1].client).read_all()).items()
        del commits._groups[2].submit
        for each in stores.values():
            await each.nodes.admit("other")
        for shard, part in ((1, appends[0]), (2, appends[1])):
            again = PartWrite([part], part_of="other-1" if shard == 2 else "", dedup_key="resent ID:1")
            await stores[shard].commit("other", CommitBatch(1, [again]), StoreLimits())
        for part in decode_parts(content):
            left = PartWrite(part.appends, part.settles, part_of="s-1", dedup_key=part.dedup_key)
            await stores[part.shard].commit("other", CommitBatch(2, [left]), StoreLimits())
        assert [await ids(stores, log) for log in ("1:a", "2:b")] == [["1"], ["1"]]
