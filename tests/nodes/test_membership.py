"""What a node knows of others by its own beats and by the store, and what becomes of one that is a member no more."""

import asyncio
from types import SimpleNamespace

import pytest

from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.node import Node
from brokerapp.nodes.homes import Homes
from brokerapp.nodes.membership import Membership
from brokerapp.nodes.pulse import RECOVERY_PERIODS, Pulse

TIMEOUT = 5.0
LONG = 1_000.0


def pulse(*beats, store_up=LONG, began=0.0):
    """Of a node that joined then, and whose beats were asked and answered at these times."""
    found = Pulse(TIMEOUT)
    found.joined(0.0, began, store_up)
    for asked, answered in beats:
        found.beat(asked, answered)
    return found


def test_a_node_is_sure_to_be_a_member_for_a_timeout_after_it_asked_for_its_last_beat():
    found = pulse((1.0, 2.5))
    assert found.is_sure(5.9)
    assert not found.is_sure(6.0)


def test_one_that_joins_judges_at_once_unless_the_store_was_away_just_before():
    assert pulse().may_judge(0.1)
    assert not pulse(store_up=1.0).may_judge(0.1)
    assert pulse(store_up=1.0).may_judge(2.1)
    assert not pulse(began=1.5).may_judge(1.6), "the store did not answer meanwhile"


@pytest.mark.parametrize(
    ("beats", "now", "may"),
    [
        ([(1, 1.1), (2, 2.1)], 2.5, True),
        ([(1, 1.1), (5.2, 5.3)], 5.4, False),  # nobody could beat, perhaps
        ([(1, 1.1), (5.2, 5.3)], 5.3 + RECOVERY_PERIODS, True),  # who could has
        ([(1, 1.1), (2, 6.2)], 6.3, False),  # the store kept it
        ([(1, 1.1)], 6.0, False),  # not even sure of itself
    ],
)
def test_who_missed_a_beat_judges_when_others_had_the_time_to_beat_again(beats, now, may):
    assert pulse(*beats).may_judge(now) is may


def test_a_node_whose_every_beat_is_slow_can_still_tell_that_another_is_dead():
    found, judged = pulse(), []
    for asked in range(0, 60, 4):  # each is answered only when it is almost too late
        found.beat(float(asked), asked + 0.9)
        judged += [now for now in range(asked + 1, asked + 5) if found.may_judge(now)]
    assert judged


def test_a_beat_that_was_asked_earlier_and_is_answered_later_takes_nothing_back():
    assert pulse((2.0, 2.1), (1.0, 2.2)).is_sure(6.9)


class Store:
    """Two members, of which the other one is dead."""

    def __init__(self, *beating):
        self.of, self.beats, self.expelled = {"a": "1", "b": "2"}, list(beating), []

    async def members(self):
        return 1, {name: {"session": session} for name, session in self.of.items()}

    async def beating(self):
        return set(self.beats)

    async def expel(self, _me, name, _session):
        self.expelled.append(name)

    async def beat(self, *_facts):
        self.beats.append("a")


@pytest.fixture
def membership():
    """Makes that of the node `a`, whose store is this one."""

    def make(store):
        broker = SimpleNamespace(session="1", committer=SimpleNamespace(), queues={})
        made = Membership(store, "a", "127.0.0.1", 50, Homes(broker))
        made._pulse.joined(0.0, asyncio.get_running_loop().time(), LONG)
        return made

    return make


async def test_a_node_that_is_a_member_no_more_ends_before_it_goes_by_what_the_others_do(membership):
    store = Store("a", "b")
    store.of = {"b": "2"}
    found = membership(store)
    found.look()
    with pytest.raises(Fenced, match="node a is a member no more"):
        await asyncio.wait_for(found.watch(), 20)
    assert not list(found._latest), "it links with nobody and moves nothing"


async def test_where_the_store_does_not_know_its_own_beat_either_a_node_expels_nobody(membership):
    store = Store()
    found = membership(store)
    await found.beat({})
    store.beats.clear()
    await found._expel_the_dead()
    assert store.expelled == []


async def test_a_node_beats_in_time_though_what_it_tells_besides_takes_long(membership):
    store = Store()
    beating = asyncio.ensure_future(membership(store).beat_in_time())
    async with asyncio.timeout(20):
        while len(store.beats) < 3:
            await asyncio.sleep(0.01)
    beating.cancel()


async def test_whether_a_node_was_expelled_is_asked_until_the_store_says(monkeypatch):
    answers = [StoreUnavailable("away"), StoreUnavailable("away"), (2, {"b": {}})]

    async def members():
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    node = SimpleNamespace(_store=SimpleNamespace(members=members))
    monkeypatch.setattr("brokerapp.node.AWAY_SECONDS", 0)
    assert await Node._is_free(node, "a")
