"""Test what a node knows of others by heartbeats, and what happens to one that was expelled."""

import asyncio
from types import SimpleNamespace

import pytest

from brokerapp.errors import Fenced, StoreUnavailable
from brokerapp.nodes.membership.liveness import RECOVERY_PERIODS, Liveness
from brokerapp.nodes.membership.membership import NodeMembership
from brokerapp.runtime.node import Node
from tests.nodes.parts import placement_of

TIMEOUT, PERIOD = 5.0, 1.0
LONG = TIMEOUT + RECOVERY_PERIODS * PERIOD


def each_second(first, last):
    """Beats asked and answered at once."""
    return [(float(at), float(at)) for at in range(first, last + 1)]


def pulse(*beats):
    """Of a node that joined at 0, and whose beats were asked and answered at these times."""
    found = Liveness(TIMEOUT)
    for asked, answered in [(0.0, 0.0), *beats]:
        found.on_heartbeat_sent(asked)
        found.on_heartbeat_confirmed(asked, answered)
    return found


def test_a_node_is_sure_to_be_a_member_for_a_timeout_after_it_asked_for_its_last_beat():
    found = pulse((1.0, 2.5))
    assert found.is_member(5.9)
    assert not found.is_member(6.0)


@pytest.mark.parametrize(
    ("beats", "now", "may"),
    [
        (each_second(1, 6), LONG - 0.1, False),  # others may have found the store away until it joined
        (each_second(1, 6), LONG, True),
        (each_second(1, 20), 20.5, True),
        ([*each_second(1, 20), (24.2, 24.3)], 24.4, False),  # nobody could beat, perhaps
        ([*each_second(1, 20), (24.0, 24.3), *each_second(25, 31)], 24.2 + LONG, False),
        ([*each_second(1, 20), (24.0, 24.3), *each_second(25, 31)], 24.3 + LONG, True),  # who lives has beaten since
        ([*each_second(1, 20), (21.0, 25.1)], 25.2, False),  # the store kept it
        ([*each_second(1, 20), (23.0, 23.1)], 23.2, False),  # some were swallowed: so may those of others have been
        (each_second(1, 20), 25.0, False),  # not even sure of itself
    ],
)
def test_a_node_judges_others_when_the_store_has_answered_it_for_longer_than_they_may_be_silent(beats, now, may):
    assert pulse(*beats).can_expel(now) is may


def test_a_node_whose_every_beat_is_slow_can_still_tell_that_another_is_dead():
    asked = [1.5 * number for number in range(20)]  # each is answered only when it is almost too late
    found = pulse(*((at, at + 3.9) for at in asked))
    assert found.can_expel(asked[-1] + 4)


def test_a_beat_is_asked_again_in_time_whether_or_not_the_last_one_was_answered():
    found = pulse((1.0, 1.0))
    found.on_heartbeat_sent(2.0)
    assert [found.is_late(at) for at in (3.2, 3.3)] == [False, True]


def test_a_beat_that_was_asked_earlier_and_is_answered_later_takes_nothing_back():
    assert pulse((2.0, 2.1), (1.0, 2.2)).is_member(6.9)


class Store:
    """Two members, of which the other one is dead."""

    def __init__(self, *beating, swallows=0):
        self.of, self.beats, self.expelled = {"a": "1", "b": "2"}, list(beating), []
        self.swallows = swallows  # beats that it never answers

    async def members(self):
        return 1, {name: {"session": session} for name, session in self.of.items()}

    async def live_names(self):
        return set(self.beats)

    async def fence(self, _me, name, _session):
        self.expelled.append(name)

    async def send_heartbeat(self, *_facts):
        if self.swallows:
            self.swallows -= 1
            await asyncio.Event().wait()
        self.beats.append("a")


@pytest.fixture
def membership():
    """Makes that of the node `a`, whose store is this one."""

    def make(store):
        made = NodeMembership(store=store, name="a", host="127.0.0.1", timeout_ms=50, placement=placement_of("1"))
        made._liveness.on_heartbeat_confirmed(0.0, asyncio.get_running_loop().time())
        return made

    return make


async def test_a_node_that_is_a_member_no_more_ends_before_it_goes_by_what_the_others_do(membership):
    store = Store("a", "b")
    store.of = {"b": "2"}
    found = membership(store)
    found.refresh()
    with pytest.raises(Fenced, match="node a is a member no more"):
        await asyncio.wait_for(found.run_watch(), 20)
    assert not list(found._latest), "it links with nobody and moves nothing"


async def test_where_the_store_does_not_know_its_own_beat_either_a_node_expels_nobody(membership):
    store = Store()
    found = membership(store)
    await found.send_heartbeat({})
    store.beats.clear()
    await found._expel_dead()
    assert store.expelled == []


@pytest.mark.parametrize("swallows", [0, 2])
async def test_a_node_beats_in_time_though_what_it_tells_besides_takes_long_or_beats_are_swallowed(
    membership, swallows
):
    store = Store(swallows=swallows)
    beating = asyncio.ensure_future(membership(store).run_heartbeat())
    async with asyncio.timeout(20):
        while len(store.beats) < 3:
            await asyncio.sleep(0.01)
    beating.cancel()


async def test_a_question_that_the_store_never_answers_is_given_up_so_that_it_is_asked_anew(membership):
    found = membership(Store(swallows=1))
    with pytest.raises(StoreUnavailable, match="within 50 ms"):
        await asyncio.wait_for(found.send_heartbeat({}), 20)


async def test_a_node_that_finds_itself_fenced_as_it_beats_again_says_so(membership):
    async def fenced(*_facts):
        raise Fenced("taken for dead")

    store = Store()
    store.send_heartbeat = fenced
    with pytest.raises(Fenced):
        await asyncio.wait_for(membership(store).run_heartbeat(), 20)


async def test_whether_a_node_was_expelled_is_asked_until_the_store_says(monkeypatch):
    answers = [StoreUnavailable("away"), StoreUnavailable("away"), (2, {"b": {}})]

    async def members():
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    node = SimpleNamespace(_store=SimpleNamespace(nodes=SimpleNamespace(members=members)))
    monkeypatch.setattr("brokerapp.runtime.node.STORE_RETRY_SECONDS", 0)
    assert await Node._is_free(node, "a")
