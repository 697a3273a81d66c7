"""What becomes of a message that the broker at the other end of a bridge does not take, and of others of its kind."""

from types import SimpleNamespace

import pytest

from brokerapp.config import NetworkConnector
from brokerapp.destination import Destination
from brokerapp.network.bridge import Bridge, BridgeNumbers
from brokerapp.network.demand import Change, Wanted
from brokerapp.network.dialect import ACTIVEMQ, SLUICE
from brokerapp.network.outbox import OneByOne
from brokerapp.network.refusals import MAX_DOUBTS
from brokerapp.network.terms import terms_of
from brokerapp.stomp.frames import Frame


class Ends:
    """Both ends of a bridge that is to pass on all of one queue."""

    def __init__(self, dialect=SLUICE):
        self.sent, self.nacked, self.acked, self.due, self.unsubscribed, self.said = [], [], [], [], [], []
        source = SimpleNamespace(
            dialect=SLUICE, subscribe=lambda id, *_: setattr(self, "subscription", id),
            unsubscribe=self.unsubscribed.append, ack=lambda acks, _receipt: self.acked.extend(acks),
            send=lambda command, headers: self.nacked.append(headers["id"]) if command == "NACK" else None,
            later=lambda _seconds, call: self.due.append(call),
        )  # fmt: skip
        target = SimpleNamespace(
            dialect=dialect, send=lambda *_: None, close=self.said.append, takes=lambda _headers, body: len(body) < 10
        )
        terms, _ = terms_of(NetworkConnector("near", "static:(tcp://127.0.0.1:1)"))
        self.numbers = BridgeNumbers()
        self.bridge = Bridge("out", source, target, "here", "there", terms, OneByOne(target, "out:"), self.numbers)
        self.bridge.complained = self.said.append

    def given(self, *acks, body=b"x"):
        for ack in acks:
            headers = {"destination": "/queue/q", "message-id": ack, "ack": ack, "persistent": "true"}
            self.bridge._forward(Frame("MESSAGE", {**headers, "subscription": self.subscription}, body))

    def taken(self, *acks):
        for ack in acks:
            assert self.bridge.confirmed(f"out:{ack}")

    def refused(self, *acks, **headers):
        for ack in acks:
            said = {"receipt-id": f"out:{ack}", "message": "it is odd", "code": "refused", **headers}
            assert self.bridge.refused(Frame("ERROR", said, b""))

    @property
    def is_aside(self):
        return bool(self.bridge.intake.aside)


@pytest.fixture
def ends():
    """Makes them, for a queue that is wanted anyway."""

    def make(dialect=SLUICE):
        found = Ends(dialect)
        wanted = Wanted("1", Destination.queue("q"), None, 0, ("there",), durable=False)
        found.bridge.demand.wanted["1"] = wanted
        found.bridge._follow(Change(begin=(wanted,)))
        return found

    return make


def test_a_message_that_is_refused_while_later_ones_are_taken_is_rejected_and_the_rest_goes_on(ends):
    found = ends()
    found.given("1", "2", "3")
    found.taken("1")
    found.refused("2")
    assert (found.nacked, found.is_aside) == ([], False)
    found.taken("3")
    assert (found.nacked, found.acked, found.is_aside) == (["2"], ["1", "3"], False)
    assert found.said == ["there does not take a message of queue://q: it is odd"]
    for each in list(found.due):
        each()
    assert not found.is_aside


def test_that_an_earlier_one_is_taken_tells_nothing_of_one_that_is_refused(ends):
    found = ends()
    found.given("1", "2")
    found.refused("2")
    found.taken("1")  # its receipt waited for the store
    assert found.nacked == []
    for each in list(found.due):
        each()
    assert found.is_aside
    assert found.nacked == []


def test_where_one_after_the_other_is_refused_all_of_the_destination_stays(ends):
    found = ends()
    acks = [str(number) for number in range(MAX_DOUBTS + 2)]
    found.given(*acks)
    found.refused(*acks[: MAX_DOUBTS + 1])
    assert found.is_aside
    found.refused(acks[-1])
    assert (found.nacked, found.unsubscribed) == ([], ["out:1"])


@pytest.mark.parametrize(
    ("dialect", "headers"),
    [
        (SLUICE, {"code": "access-denied"}),
        (ACTIVEMQ, {"message": "User us is not authorized to write to: queue://q"}),
    ],
)
def test_who_may_not_write_there_passes_on_nothing_of_it(ends, dialect, headers):
    found = ends(dialect)
    found.given("1", "2")
    found.refused("1", **headers)
    assert found.is_aside
    found.taken("2")
    assert found.nacked == []


def test_what_is_longer_than_the_target_says_to_take_is_rejected_without_a_try(ends):
    found = ends()
    found.given("1", body=b"more than it takes")
    assert (found.nacked, found.numbers.refused, found.is_aside) == (["1"], 1, False)
    assert found.said == ["message 1 of /queue/q is rejected: there takes no frame of that length"]
