"""Test membership in the store: which sessions may write, are alive, or are fenced. On a real server."""

import time

import pytest

from brokerapp.errors import Fenced, StoreRolledBack
from brokerapp.store import CommitBatch, PendingWrite, StoreLimits
from tests.brokerapp.store.commit_helpers import UNLIMITED, CommittingSession, append, bodies, entries


@pytest.fixture
def session(store):
    return CommittingSession(store)


async def test_a_former_session_of_a_node_may_not_write_any_more(store, session):
    await session.append("a")
    assert await store.nodes.join("successor") == 1
    with pytest.raises(Fenced):
        await session.append("a")
    with pytest.raises(Fenced):
        await store.logs.drop("a", "me")
    await CommittingSession(store, "successor").append("a")
    assert len(await bodies(store, "a")) == 2


async def test_a_replaced_node_beats_no_more_and_takes_nothing_along(store):
    await store.nodes.send_heartbeat("me", {"node": "me"})
    await store.nodes.join("successor")
    await store.nodes.send_heartbeat("successor", {"node": "successor"})
    with pytest.raises(Fenced):
        await store.nodes.send_heartbeat("me", {"node": "me"})
    await store.nodes.leave("me")
    assert await store.nodes.statuses() == {"main": {"node": "successor"}}


async def test_a_node_is_seen_until_it_leaves(store):
    await store.nodes.send_heartbeat("me", {"node": "me"})
    assert await store.nodes.has_live_node()
    await store.nodes.leave("me")
    assert not await store.nodes.has_live_node()
    assert (await store.nodes.members())[1] == {}


async def test_a_node_that_beats_no_more_is_seen_no_more(store):
    await store.nodes.send_heartbeat("me", {"node": "me"}, timeout_ms=50)
    deadline = time.monotonic() + 10
    while await store.nodes.has_live_node():
        assert time.monotonic() < deadline


async def test_nodes_of_several_names_write_beside_each_other_and_numbers_stay_one_sequence(store, session):
    await store.nodes.join("you", "other", {"link": "127.0.0.1:1"})
    other = CommittingSession(store, "you")
    numbers = [await each.append("a") for each in (session, other, other, session)]
    assert numbers == [1, 2, 3, 4]
    epoch, members = await store.nodes.members()
    assert epoch == 2
    assert members == {
        "main": {"session": "me", "joined": epoch - 1},
        "other": {"session": "you", "link": "127.0.0.1:1", "joined": epoch},
    }


async def test_a_node_among_others_is_told_what_stood_last_in_the_logs_that_it_appends_to(store, session):
    await store.nodes.join("you", "other")
    await session.append("a", "b")
    theirs = await CommittingSession(store, "you").append("a")
    two = [PendingWrite([append("a")]), PendingWrite([append("a", "b", "c")])]
    assert (await session.commit(*two, wants_previous_seq=lambda log: log != "c")).previous_seqs == {
        "a": theirs,
        "b": 1,
    }
    assert (await session.commit(PendingWrite([append("d")]), wants_previous_seq=lambda _log: True)).previous_seqs == {
        "d": 0
    }
    assert (await session.commit(*two)).previous_seqs == {}


async def test_of_several_units_for_one_log_it_is_told_what_stood_before_the_first_that_was_kept(store, session):
    theirs = await session.append("a", body=b"")
    await session.append("full")
    room = StoreLimits(of_log=lambda log: int(log == "full"))
    units = [PendingWrite([append("full")]), PendingWrite([append("a")]), PendingWrite([append("b"), append("a")])]
    done = await session.commit(*units, limits=room, wants_previous_seq=lambda _log: True)
    assert (set(done.refused), done.previous_seqs) == ({1}, {"a": theirs, "b": 0})
    [last, *_] = await store.entries.read_back("a", 1 << 40, 1)
    again = [
        PendingWrite(settles=[each for each in await entries(store, "a") if each.seq == last.seq]),
        PendingWrite([append("a")]),
    ]
    assert (await session.commit(*again, wants_previous_seq=lambda _log: True)).previous_seqs == {
        "a": done.base_seq + 2
    }  # the refused one took a number


async def test_a_batch_that_is_repeated_is_done_once_whatever_another_node_wrote_meanwhile(store):
    await store.nodes.join("you", "other")
    batch = CommitBatch(1, [PendingWrite([append("a")])])
    first = await store.commit("me", batch, UNLIMITED)
    await CommittingSession(store, "you").append("a")
    again = await store.commit("me", batch, UNLIMITED)
    assert again.base_seq == first.base_seq == 0
    assert len(await bodies(store, "a")) == 2


async def test_a_node_that_beats_is_not_expelled(store, session):
    await store.nodes.join("you", "other")
    assert await store.nodes.live_names() == {"main", "other"}  # it lives as soon as it is there
    assert not await store.nodes.fence("me", "other", "you")
    await store.nodes.send_heartbeat("you", {}, "other")
    assert not await store.nodes.fence("me", "other", "you")
    await CommittingSession(store, "you").append("a")


async def test_a_node_that_does_not_beat_is_expelled_once_and_writes_no_more(store):
    await store.nodes.join("you", "other", timeout_ms=1)
    epoch, _ = await store.nodes.members()
    deadline = time.monotonic() + 10
    while "other" in await store.nodes.live_names():
        assert time.monotonic() < deadline
    assert await store.nodes.fence("me", "other", "you")
    assert not await store.nodes.fence("me", "other", "you")
    left = {name: about["session"] for name, about in (await store.nodes.members())[1].items()}
    assert ((await store.nodes.members())[0], left) == (epoch + 1, {"main": "me"})
    with pytest.raises(Fenced):
        await CommittingSession(store, "you").append("a")
    with pytest.raises(Fenced):
        await store.nodes.send_heartbeat("you", {}, "other")


async def test_only_a_member_expels_and_only_the_session_that_it_knows(store):
    await store.nodes.join("you", "other")
    with pytest.raises(Fenced):
        await store.nodes.fence("stranger", "other", "you")
    await store.nodes.join("you again", "other")
    assert not await store.nodes.fence("me", "other", "you")


async def test_who_leaves_takes_no_other_member_along(store, session):
    await store.nodes.join("you", "other")
    await store.nodes.leave("you", "other")
    await session.append("a")
    with pytest.raises(Fenced):
        await CommittingSession(store, "you").append("a")


async def test_a_commit_that_names_another_last_batch_than_the_store_knows_ends_the_session(store, session):
    await session.append("a")
    await session.commit(PendingWrite([append("a")]), previous_batch=1)
    with pytest.raises(StoreRolledBack):
        await session.commit(PendingWrite([append("a")]), previous_batch=4)
    with pytest.raises(Fenced):
        await session.append("a")
    assert len(await bodies(store, "a")) == 2
    assert (await store.server.rollbacks())["rollbacks"] == 1
    assert await store.nodes.join("successor") > 1 << 32


async def test_what_was_read_has_to_be_there_at_the_next_connection(store, session):
    await session.append("a")
    await store.entries.read("a", 0, 1)
    await store.client.disconnect()
    assert await store.logs.last_seq() == 1
    await store.client.execute("HSET", store.keys.state, "seq", 0)
    await store.client.disconnect()
    with pytest.raises(StoreRolledBack):
        await store.logs.last_seq()
    assert await store.logs.last_seq() > 1 << 32


async def test_lives_of_the_server_are_noted_once_each_and_of_the_oldest_some_are_forgotten(store):
    await store.nodes.join("again")
    assert await store.client.execute("LLEN", store.keys.lives) == 1
    assert store.client.continuity.latest.life
    store.client.continuity.enter_life("f" * 40)  # as if it had known that one, and none since
    for number in range(70):
        await store.client.execute("RPUSH", store.keys.lives, f"{number:040x} 5 5")
    await store.client.disconnect()
    with pytest.raises(StoreRolledBack):
        await store.logs.last_seq()
    assert await store.client.execute("LLEN", store.keys.lives) == 64
