"""Test what the store keeps for later: expirations, scheduled jobs, delivery counts."""

import pytest

from brokerapp.store import GONE, STORE, CommitBatch, PendingWrite, ScheduledJobChange, StoreLimits
from tests.brokerapp.store.commit_helpers import CommittingSession, append, bodies, entries, message, used

NOW = 1_800_000_000_000
#: What a row of an index, and a job beside its record, count; see EXPIRING_BYTES and JOB_BYTES in accounting.lua.
ROW, JOB = 100, 250


@pytest.fixture
def session(store):
    return CommittingSession(store)


class JobsWrite(PendingWrite):
    """A write that changes scheduled jobs."""

    __slots__ = ("jobs",)

    def __init__(self, *jobs, **unit):
        super().__init__(**unit)
        self.jobs = jobs


async def expired(store, log, now=NOW, skip=0, count=100):
    return [each.message.body for each in await store.schedules.read_expired(log, now, skip, count)]


async def index_of(store, log):
    return await store.client.execute("ZCARD", store.keys.expiring_prefix + log)


# -- expiry


async def test_what_expires_is_found_when_its_time_is_over_and_nothing_else(store, session):
    for body, expires in ((b"a", NOW - 1), (b"for ever", 0), (b"b", NOW), (b"later", NOW + 1), (b"c", NOW - 2)):
        await session.append("q", body=body, expires=expires)
    assert await store.schedules.logs_with_expired(NOW) == ["q"]
    assert await expired(store, "q") == [b"c", b"a", b"b"]
    assert await expired(store, "q", skip=1, count=1) == [b"a"]
    assert await expired(store, "q", now=NOW + 1) == [b"c", b"a", b"b", b"later"]


async def test_logs_without_anything_late_are_not_named(store, session):
    await session.append("ordinary")
    await session.append("later", expires=NOW + 1)
    assert await store.schedules.logs_with_expired(NOW) == []
    assert await store.schedules.logs_with_expired(NOW + 1) == ["later"]


async def test_copies_that_expire_are_found_in_each_log(store, session):
    await session.append("a", "b", expires=NOW, body=b"shared", original="/topic/t")
    assert await store.schedules.logs_with_expired(NOW) == ["a", "b"]
    for log in ("a", "b"):
        [entry] = await store.schedules.read_expired(log, NOW, 0, 10)
        assert (entry.message.body, entry.original, entry.payload) == (b"shared", "/topic/t", entry.seq)


async def test_what_was_settled_expires_no_more_and_its_room_is_free(store, session):
    await session.append("a", "b", expires=NOW)
    await session.append("a", expires=NOW + 5)
    await session.settle(*await entries(store, "a"))
    assert (await index_of(store, "a"), await index_of(store, "b")) == (0, 1)
    assert await store.schedules.logs_with_expired(NOW + 9) == ["b"]
    await session.settle(*await entries(store, "b"))
    assert await used(store) == (0, 0)
    assert await store.schedules.logs_with_expired(NOW + 9) == []


async def test_expiring_entries_count_the_row_that_says_so(store, session):
    await session.append("a")
    before, _ = await used(store)
    await session.append("a", expires=NOW)
    size = len(message(expires=NOW).stored()) - len(message().stored())
    assert (await used(store))[0] == 2 * before + size + ROW


async def test_a_log_that_is_dropped_leaves_nothing_to_expire(store, session):
    await session.commit(declarations=[("a", "{}")])
    await session.append("a", "b", expires=NOW)
    await store.logs.drop("a", "me")
    await store.logs.drop("b", "me")
    assert await used(store) == (0, 0)
    assert await store.schedules.logs_with_expired(NOW) == []


async def test_messages_that_never_expire_leave_no_trace_in_the_index(store, session):
    for expires in (0, -1):
        await session.append("a", "b", expires=expires)
    assert await store.client.execute("KEYS", store.keys.expiring + "*") == []


# -- jobs


def job(id, due=NOW, record=b"what is to be done", new=True):
    return ScheduledJobChange(id, due, record, new)


async def waiting(store, start=0, end=NOW * 2, skip=0, count=100):
    return [each.id for each in await store.schedules.read_jobs(start, end, skip, count)]


async def test_jobs_are_read_in_order_of_time_within_a_window(store, session):
    await session.commit(JobsWrite(job("b", NOW + 2), job("a", NOW + 1)), JobsWrite(job("c", NOW + 3)))
    assert await waiting(store) == ["a", "b", "c"]
    assert await waiting(store, NOW + 2, NOW + 2) == ["b"]
    assert await waiting(store, skip=1, count=1) == ["b"]
    assert (await store.schedules.next_due_ms(), await store.schedules.job_count()) == (NOW + 1, 3)
    [first, *_] = await store.schedules.read_jobs(0, NOW * 2, 0, 10)
    assert (await store.schedules.read_job(first.id), await store.schedules.read_job("no such")) == (first, None)
    assert (first.due_ms, first.record) == (NOW + 1, b"what is to be done")


async def test_a_job_is_done_and_its_message_sent_in_one_step_and_once(store, session):
    await session.commit(JobsWrite(job("a")))
    fire = JobsWrite(ScheduledJobChange("a"), appends=[append("q")], ignores_limits=True)
    assert (await session.commit(fire)).refused == {}
    assert await waiting(store) == []
    assert await store.schedules.next_due_ms() is None
    assert (
        await session.commit(JobsWrite(ScheduledJobChange("a"), appends=[append("q")], ignores_limits=True))
    ).refused == {1: GONE}
    assert len(await bodies(store, "q")) == 1


async def test_a_job_is_put_off_by_changing_it_but_not_when_it_is_gone(store, session):
    await session.commit(JobsWrite(job("a")))
    await session.commit(JobsWrite(job("a", NOW + 9, b"again", new=False)))
    [found] = await store.schedules.read_jobs(0, NOW * 2, 0, 10)
    assert (found.due_ms, found.record) == (NOW + 9, b"again")
    assert (await session.commit(JobsWrite(job("gone", new=False)))).refused == {1: GONE}
    assert await waiting(store) == ["a"]


async def test_jobs_take_room_until_they_are_done(store, session):
    record = b"r" * 100
    limits = StoreLimits(total=len(record) + JOB)
    assert (await session.commit(JobsWrite(job("a", record=record)), limits=limits)).refused == {}
    assert (await session.commit(JobsWrite(job("b", record=record)), limits=limits)).refused == {1: STORE}
    assert await used(store) == (len(record) + JOB, 0)
    await session.commit(JobsWrite(job("a", record=record * 2, new=False)), limits=limits)
    assert await used(store) == (2 * len(record) + JOB, 0)
    await session.commit(JobsWrite(ScheduledJobChange("a")))
    assert await used(store) == (0, 0)


async def test_a_unit_that_is_refused_leaves_jobs_as_they_were(store, session):
    await session.commit(JobsWrite(job("a")))
    unit = JobsWrite(ScheduledJobChange("a"), job("b"), appends=[append("q", body=b"x" * 1000)])
    assert (await session.commit(unit, limits=StoreLimits(total=1000))).refused == {1: STORE}
    assert await waiting(store) == ["a"]


async def test_a_batch_with_jobs_repeated_is_done_once(store):
    batch = CommitBatch(1, [JobsWrite(job("a"))])
    assert (await store.commit("me", batch, StoreLimits())).refused == {}
    await store.commit("me", batch, StoreLimits())
    assert await waiting(store) == ["a"]


# -- deliveries of what came back


async def test_deliveries_are_found_again_until_the_entry_is_settled(store, session):
    await session.commit(declarations=[("a", "{}"), ("b", "{}")])
    first, second = await session.append("a"), await session.append("a")
    await session.commit(redelivery_counts=[("a", first, 1), ("a", second, 1)])
    await session.commit(redelivery_counts=[("a", first, 2)])
    assert {state.name: state.returned for state in await store.logs.recover()} == {"a": {first: 2, second: 1}, "b": {}}
    await session.settle(*await entries(store, "a", count=1))
    assert {state.name: state.returned for state in await store.logs.recover()} == {"a": {second: 1}, "b": {}}
    await session.settle(*await entries(store, "a"))
    await session.commit(redelivery_counts=[("a", second, 2)])  # said late: it is gone
    assert await store.client.execute("KEYS", store.keys.returned_prefix + "*") == []
    assert int(await store.client.execute("HGET", store.keys.state, "returned")) == 0
