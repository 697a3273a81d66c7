"""Test moves of families that get in each other's way, or end halfway, on two real Valkeys."""

import asyncio
import itertools
import random

import pytest

from brokerapp.errors import RequestRefused, StoreUnavailable
from brokerapp.store import CommitBatch, PendingWrite, StoreLimits
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.store.shards.copies import LogCopy
from brokerapp.store.shards.family_copy import FamilyCopy
from brokerapp.store.shards.family_moves import FamilyMove
from brokerapp.store.shards.leftovers import Leftovers
from brokerapp.store.shards.record import SERVING, ShardRecordStore
from tests.brokerapp.store.commit_helpers import CommittingSession, append, bodies, entries, payloads

LOG = "queue://q"


@pytest.fixture(scope="module")
def other_url(tmp_path_factory):
    with EmbeddedStore(tmp_path_factory.mktemp("shard")) as running:
        yield running.url


@pytest.fixture
async def broker(store, other_url, broker_name):
    """The store of a broker with two shards; a log with 10 messages is in the first."""
    record = ShardRecordStore(store.client)
    await record.add(other_url, SERVING)
    await record.claim_logs([(LOG, LOG, 0)])
    opened = BrokerStore(store.url, broker_name)
    await opened.open()
    await opened.nodes.join("me")
    await write(opened, 0, 1, [append(LOG, body=b"%d" % number) for number in range(10)])
    yield opened
    await opened.close()


async def write(broker, shard, number, appends):
    batch = CommitBatch(number, [PendingWrite(appends)], [(LOG, f'{{"shard": {shard}}}' if shard else "{}")])
    await broker.shards.stores[shard].commit("me", batch, StoreLimits())


async def begin(broker, source, target, token):
    return await broker.moves.begin(FamilyMove(LOG, source, target, token))


async def copy(broker, move, meanwhile=None):
    """Copy the log, and do something when most of it is copied."""
    copying = FamilyCopy(broker.shards, move, "me")
    await copying.begin()
    await copying.copy_ahead([LOG], _go_on)
    if meanwhile is not None:
        await meanwhile()
    return copying, await copying.finish([LOG])


async def _go_on(): ...


async def switch(broker, move):
    epoch, _ = await broker.nodes.members()
    return await broker.moves.switch(move, [LOG], epoch)


async def move(broker, source, target, token):
    """Move the log, up to what the source removes."""
    begun = await begin(broker, source, target, token)
    await copy(broker, begun)
    assert await switch(broker, begun)
    await broker.moves.accept(begun, [LOG], "me")
    return begun


async def bodies_in(broker, shard):
    return [int(body) for body in await bodies(broker.shards.stores[shard], LOG)]


async def rows_in(store, log):
    found = await store.entries.read(log, 0, 1000)
    return [(each.seq, each.message.stored(), each.payload, each.original, each.size) for each in found]


async def forget_move(broker):
    """Have the record of the move under way expire, as it does after a minute."""
    await broker.client.execute("DEL", broker.keys.shard_move)


async def test_a_move_that_goes_on_after_another_began_harms_nothing_of_that(broker):
    old = await begin(broker, 0, 1, "old")
    copying, _ = await copy(broker, old)
    await forget_move(broker)
    new = await begin(broker, 0, 1, "new")
    await copy(broker, new)
    with pytest.raises(StoreUnavailable, match="given up"):
        await copying._open_copy(LOG, LogCopy(0))
    with pytest.raises(StoreUnavailable, match="given up"):
        await copying.finish([LOG])
    await broker.moves.remove_copied(old, [LOG], "me")
    assert not await switch(broker, old)
    assert await switch(broker, new)
    assert await bodies_in(broker, 1) == list(range(10))


async def test_a_source_removes_nothing_that_another_move_brought_back(broker):
    there = await move(broker, 0, 1, "there")
    await write(broker, 1, 1, [append(LOG, body=b"10")])
    back = await begin(broker, 1, 0, "back")
    await copy(broker, back)
    await broker.moves.remove_moved(there, [LOG], "me")
    assert await bodies_in(broker, 0) == list(range(11))
    assert await switch(broker, back)
    await broker.moves.remove_moved(there, [LOG], "me")
    await broker.moves.remove_moved(back, [LOG], "me")
    assert (await bodies_in(broker, 0), await bodies_in(broker, 1)) == (list(range(11)), [])


@pytest.mark.parametrize(("seed", "part"), [(1, 0.5), (2, 0.02), (3, 1.0), (4, 0.0)])
async def test_what_is_sent_and_consumed_while_most_is_copied_is_so_in_the_copy(broker, monkeypatch, seed, part):
    """With payloads that two logs share, messages that expire and others that are not persistent."""
    monkeypatch.setattr("brokerapp.store.shards.family_copy.ENTRIES_AT_ONCE", 7)
    monkeypatch.setattr("brokerapp.store.shards.family_copy.COMPARED_AT_ONCE", 11)
    source, target = broker.shards.stores.values()
    chance, session, logs = random.Random(seed), CommittingSession(source), ["queue://q", "queue://r"]
    session._numbers = itertools.count(2)

    async def send(count):
        await session.commit(
            *(
                PendingWrite([
                    append(*chance.choice([logs, logs[:1], logs[1:]]), body=b"%d" % number, original="queue://o",
                           expires=chance.choice([0, 99_999_999_999_999]), persistent=chance.random() < 0.8)
                ])
                for number in range(count)
            ),
            declarations=[(log, "{}") for log in logs],
        )  # fmt: skip

    async def go_on():
        for log in logs:
            found = await entries(source, log)
            await session.settle(*(each for each in found if chance.random() < part))
        await send(40)
        found = await entries(source, "queue://r")
        await session.commit(redelivery_counts=[("queue://r", found[-1].seq, 3)])

    await send(200)
    before = await source.logs.used_bytes()
    begun = await begin(broker, 0, 1, "t")
    copying = FamilyCopy(broker.shards, begun, "me")
    await copying.begin()
    await copying.copy_ahead(logs, _go_on)
    await go_on()
    await copying.finish(logs)
    assert before != await source.logs.used_bytes() or part == 0
    for log in logs:
        assert await rows_in(target, log) == await rows_in(source, log) != []
    assert await payloads(target) == await payloads(source)
    assert await target.logs.used_bytes() == await source.logs.used_bytes()
    assert await target.logs.temp_used_bytes() == await source.logs.temp_used_bytes()
    states = [{each.name: each.returned for each in await store.logs.recover()} for store in (source, target)]
    assert states[0] == states[1]
    assert list(states[0]["queue://r"].values()) == [3]
    for field in ("expiring", "returned"):
        assert len({await store.client.execute("HGET", store.keys.state, field) for store in (source, target)}) == 1


async def test_a_move_that_is_given_up_leaves_nothing_in_its_target(broker):
    begun = await begin(broker, 0, 1, "t")
    await copy(broker, begun)
    assert await broker.moves.fail(begun, "for a test")
    await broker.moves.remove_copied(begun, [LOG], "me")
    target = broker.shards.stores[1]
    assert await target.logs.all_attributes() == {}
    assert await target.logs.used_bytes() == (0, {})
    assert await bodies_in(broker, 0) == list(range(10))


async def test_a_node_that_joins_ends_the_move_under_way_and_removes_what_it_copied(broker):
    begun = await begin(broker, 0, 1, "t")
    await copy(broker, begun)
    epoch, _ = await broker.nodes.members()
    await Leftovers(broker.shards, "me").remove()
    assert not await broker.moves.switch(begun, [LOG], epoch)
    assert (await broker.moves.last()).error == "a node joined meanwhile"
    assert (await bodies_in(broker, 0), await bodies_in(broker, 1)) == (list(range(10)), [])


async def test_a_node_that_joins_removes_nothing_of_a_move_that_begins_then(broker):
    leftovers, begun = Leftovers(broker.shards, "me"), None
    read = leftovers._read

    async def begin_and_read():
        nonlocal begun
        begun = await begin(broker, 0, 1, "t")
        await copy(broker, begun)
        return await read()

    leftovers._read = begin_and_read
    await leftovers.remove()
    assert await switch(broker, begun)
    assert await bodies_in(broker, 1) == list(range(10))


async def test_what_is_left_of_a_move_whose_node_ended_is_removed_from_the_source(broker):
    begun = await begin(broker, 0, 1, "t")
    await copy(broker, begun)
    assert await switch(broker, begun)  # and no more
    await Leftovers(broker.shards, "me").remove()
    assert (await bodies_in(broker, 0), await bodies_in(broker, 1)) == ([], list(range(10)))
    assert await broker.shards.stores[1].client.execute("HGET", broker.shards.stores[1].keys.copies, LOG) == b"1"


async def test_the_newer_copy_stays_when_shard_0_was_restored_to_a_state_before_the_move(broker):
    main, dumps = broker.client, {}
    for key in await main.execute("KEYS", f"{{{broker.keys.broker}}}:*"):
        dumps[key] = await main.execute("DUMP", key)
    moved = await move(broker, 0, 1, "t")
    await broker.moves.remove_moved(moved, [LOG], "me")
    await write(broker, 1, 1, [append(LOG, body=b"10")])
    for key in await main.execute("KEYS", f"{{{broker.keys.broker}}}:*"):
        await main.execute("DEL", key)
    for key, dump in dumps.items():
        await main.execute("RESTORE", key, 0, dump)
    assert await broker.shard_record.shards_of([LOG]) == [0]
    await Leftovers(broker.shards, "me").remove()
    assert (await bodies_in(broker, 0), await bodies_in(broker, 1)) == ([], list(range(11)))
    assert await broker.shard_record.shards_of([LOG]) == [1]
    assert (await begin(broker, 1, 0, "next")).number == 2, "numbers go on"


async def test_copies_of_which_none_is_certain_to_be_newer_stay_and_no_move_destroys_one(broker, caplog):
    await write(broker, 1, 1, [append(LOG, body=b"other")])  # as no node does
    await Leftovers(broker.shards, "me").remove()
    assert "queue://q is in the shards 0, 1, and it is not certain which copy is the newest" in caplog.text
    begun = await begin(broker, 0, 1, "t")
    with pytest.raises(RequestRefused, match="shard 1 has another copy of queue://q"):
        await copy(broker, begun)
    assert await bodies_in(broker, 0) == list(range(10))
    assert await bodies(broker.shards.stores[1], LOG) == [b"other"]


async def test_a_queue_that_is_made_anew_is_newer_than_what_an_earlier_one_left_elsewhere(broker):
    await move(broker, 0, 1, "there")  # what it left in shard 0 is not removed
    await broker.shards.stores[1].logs.drop(LOG, "me")
    await write(broker, 1, 1, [append(LOG, body=b"10")])
    await Leftovers(broker.shards, "me").remove()
    assert (await bodies_in(broker, 0), await bodies_in(broker, 1)) == ([], [10])


async def test_an_error_names_the_shard_that_stands_still(tmp_path, broker):
    from tests.faults.servers import Server

    server = Server(tmp_path / "third")
    try:
        await broker.shard_record.add(f"redis://127.0.0.1:{server.port}", SERVING)
        server.freeze()
        reader = BrokerStore(broker.url, broker.keys.broker)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("brokerapp.store.shards.broker_store.ANSWER_SECONDS", 0.3)
            with pytest.raises(StoreUnavailable, match=r"shard 2 did not answer within 0\.3 s"):
                async with asyncio.timeout(5):
                    await reader.open()
        await reader.close()
    finally:
        server.thaw()
        server.end()
