"""Test that the journey of a message shows what clients and operators did with it."""

from collections import Counter
from functools import cache

import pytest

from console.messages.journey.journey_service import journey_of
from tests.console.conftest import close_console, point_at
from tests.ledger.comparing import tell
from tests.ledger.ledger import ACKED, DEAD, DROPPED, EXPIRED, MOVED, PUT_OFF, REMOVED
from tests.ledger.rules import BROKER

#: What a copy is said to be that left its place so.
STATES = {
    ACKED: {"processed"}, DEAD: {"failed"}, EXPIRED: {"failed", "expired"}, DROPPED: {"dropped"},
    MOVED: {"taken", "dropped"}, REMOVED: {"taken", "dropped"}, PUT_OFF: {"waiting"},
}  # fmt: skip


#: A journey takes a tenth of a second, and nothing happens any more.
of_message = cache(journey_of)


@pytest.fixture
def console(done, settings, db, tmp_path):
    """A console of the node that carried out the load."""
    point_at(settings, done.node.redis_url, BROKER, done.data)
    yield
    close_console()


def ways(ledger):
    """Of all messages that went the same way one, with its copies."""
    copies = {}
    for each in ledger.copies:
        copies.setdefault(each.message.number, []).append(each)
    different = {}
    for number, mine in copies.items():
        message = ledger.messages[number]
        way = message.to, *((each.place, each.how, each.by, len(each.deliveries)) for each in mine)
        if message.id:
            different.setdefault(way, (message, mine))
    return list(different.values())


def state_of(copy):
    """What is said of a copy that is in a place, or was there last."""
    if copy.gone is None:
        return {"held"} if copy.holder else {"waiting"}
    return STATES[copy.how]


def test_journeys_tell_where_each_copy_stands_and_how_often_it_was_given(done, console):
    found = ways(done.ledger)
    assert len(found) > 30
    tell(each for message, copies in found for each in wrong_of(message, copies))


def wrong_of(message, copies):
    """What the journey of a message says that is not so."""
    journey, name = of_message(message.id), f"journey to {message.to}"
    stored = {each.place: each for each in copies if each.is_stored}
    told = {str(each.destination): each.state for each in journey.copies}
    for place in sorted(stored.keys() | told.keys()):
        wanted = state_of(stored[place]) if place in stored else {"nothing"}
        if told.get(place) not in wanted:
            yield f"{name}[{place}]: expected {' or '.join(sorted(wanted))}, got {told.get(place)}"
    steps = Counter(each.kind for each in journey.steps)
    given = sum(len(each.deliveries) for each in copies)
    acked = sum(each.how == ACKED for copy in copies for each in copy.deliveries)
    if (steps["dispatch"], steps["ack"]) != (given, acked):
        yield f"{name}: expected {given} deliveries and {acked} acknowledgements, got {dict(steps)}"


def test_journeys_tell_what_was_sent_where(done, console):
    for message, _ in ways(done.ledger):
        journey = of_message(message.id)
        assert (str(journey.sent_to), journey.size) == (message.to, message.size)
        sent = {name: value for name, value in message.headers.items() if (name, value) != ("persistent", "false")}
        assert {name: journey.properties.get(name) for name in sent} == sent
