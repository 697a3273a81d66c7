"""Test what happens to a message that the other broker refuses, and to others of its destination."""

from types import SimpleNamespace

import pytest

from brokerapp.model.destination import Destination
from brokerapp.network.bridge.bridge import Bridge, BridgeCounters
from brokerapp.network.bridge.demand import DemandChange, DemandSubscription
from brokerapp.network.bridge.forwarder import ReceiptForwarder
from brokerapp.network.links.broker_link import BridgedMessage
from brokerapp.network.links.dialect import ACTIVEMQ, SLUICE
from brokerapp.network.links.stomp_link import StompBrokerLink
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of
from brokerapp.network.options.size_limits import FrameLimits


class Ends:
    """Both ends of a bridge that is to pass on all of one destination, to a broker that takes short bodies."""

    def __init__(self, wanted, dialect):
        self.nacked, self.acked, self.due, self.unsubscribed, self.said = {}, [], [], [], []
        source = SimpleNamespace(
            is_sluice=True, subscribe=lambda wanted, *_: setattr(self, "subscription", wanted.id),
            unsubscribe=self.unsubscribed.append, ack=lambda acks, _receipt: self.acked.extend(acks),
            reject=self.nacked.__setitem__, call_later=lambda _seconds, call: self.due.append(call),
        )  # fmt: skip
        target = StompBrokerLink(
            SimpleNamespace(dialect=dialect, send=lambda *_: None, frame_limits=FrameLimits(body=9))
        )
        terms, _ = options_of(NetworkConnector("near", "static:(tcp://127.0.0.1:1)"))
        self.numbers = BridgeCounters()
        self.bridge = Bridge(
            "out", source, target, "here", "there", terms, ReceiptForwarder(target, "out:"), self.numbers
        )
        self.bridge.on_complaint = self.said.append
        self.bridge.demand.subscriptions["1"] = wanted
        self.bridge._apply_demand_change(DemandChange(begin=(wanted,)))

    def given(self, *acks, body=b"x", destination="/queue/q", persistent="true", **more):
        for ack in acks:
            headers = {"message-id": ack, "persistent": persistent, **more}
            self.bridge._on_message(BridgedMessage(self.subscription, ack, destination, ack, headers, body))

    def taken(self, *acks):
        for ack in acks:
            assert self.bridge.on_receipt(f"out:{ack}")

    def refused(self, ack, why="it is odd"):
        assert self.bridge.on_refused(f"out:{ack}", why)

    def wait(self):
        """Until all is due that is to be done."""
        due, self.due[:] = list(self.due), []
        for each in due:
            each()

    @property
    def kept_back(self):
        return self.bridge.held_back(self.bridge.demand.subscriptions["1"])

    @property
    def stays(self):
        return self.bridge.block_reason(self.bridge.demand.subscriptions["1"], Destination.queue("q"))

    @property
    def is_aside(self):
        return bool(self.bridge.consumers.suspended)


def ends(destination="/queue/q", dialect=SLUICE, *, durable=False):
    return Ends(DemandSubscription("1", Destination.parse(destination), None, 0, ("there",), durable=durable), dialect)


@pytest.mark.parametrize(
    ("dialect", "why"),
    [
        (SLUICE, "it is odd"),
        (SLUICE, "queue://q is full"),
        (ACTIVEMQ, "User us is not authorized to write to: queue://q"),
        (ACTIVEMQ, "Usage Manager Memory Limit reached. Stopping producer"),
    ],
)
def test_whatever_is_refused_stays_and_is_never_rejected_while_all_else_crosses(dialect, why):
    found = ends(dialect=dialect)
    found.given("1", "2")
    found.given("3", persistent="false")  # written, which proves nothing
    found.refused("1", why)
    found.taken("2")
    assert (found.acked, found.said) == (["3", "2"], [])
    found.wait()
    found.refused("1", why)  # alone
    assert found.stays == found.kept_back != ""
    found.given("4")
    found.taken("4")
    assert (found.nacked, found.acked, found.unsubscribed) == ({}, ["3", "2", "4"], [])
    [said] = found.said
    assert said.startswith("there temporarily rejected message 1 of /queue/q, which stays here: ")
    assert found.kept_back.startswith("temporarily rejected by the other broker (message 1 of /queue/q): ")
    assert found.bridge.refusal_reason("1") == found.kept_back
    assert (found.bridge.refusal_reason("4"), found.stays) == ("", "")


def test_where_too_many_are_refused_alone_all_of_the_destination_stays_and_is_tried_again(monkeypatch):
    monkeypatch.setattr("brokerapp.network.bridge.refused_messages.MAX_HELD", 2)
    found = ends()
    found.given("1", "2", "3", "4")
    for each in "1234":
        found.refused(each)
    found.wait()
    for each in "123":
        found.refused(each)
    assert (found.is_aside, found.acked, found.nacked, found.unsubscribed) == (True, [], {}, ["out:1"])
    assert found.said[-1].startswith("there rejected message 3 of /queue/q: queue://q is not forwarded for now: ")
    found.wait()
    assert not found.is_aside


def test_of_a_pattern_each_destination_is_tried_for_itself():
    found = ends("/queue/orders.>")
    found.given("1", destination="/queue/orders.x")
    found.given("2", destination="/queue/orders.y")
    found.refused("1")
    found.taken("2")
    found.wait()
    found.given("3", destination="/queue/orders.x")
    found.given("4", destination="/queue/orders.y")
    found.taken("4")
    found.refused("1")
    found.taken("3")
    assert (found.nacked, found.acked) == ({}, ["2", "4", "3"])


def test_what_waits_is_the_sources_again_when_nobody_wants_it_any_more():
    found = ends()
    found.given("1", "2")
    found.refused("1")
    found.bridge._apply_demand_change(DemandChange(end=(found.bridge.demand.subscriptions.pop("1"),)))
    assert found.unsubscribed == []
    found.refused("2")
    found.wait()
    assert (found.unsubscribed, found.nacked, found.said) == (["out:1"], {}, [])


LONG = b"more than it takes"


@pytest.mark.parametrize(("destination", "durable"), [("/queue/q", False), ("/topic/t", False), ("/topic/t", True)])
def test_what_is_longer_than_the_target_says_to_take_is_rejected_without_a_try_and_says_why(destination, durable):
    found = ends(destination, durable=durable)
    found.given("1", body=LONG, destination=destination)
    why = "its body has 18 bytes, more than 9 (maxDataLength)"
    assert found.nacked == {"1": f"permanently rejected by there: {why}"}
    assert (found.numbers.refused, found.is_aside) == (1, False)
    assert found.said == [f"there permanently rejected message 1 of {destination}, which is dead-lettered here: {why}"]


def test_a_dead_letter_that_is_too_long_stays_in_its_queue_as_it_would_be_dropped_there():
    found = ends()
    found.given("1", body=LONG, dlqDeliveryFailureCause="expired")
    found.given("2")
    found.taken("2")
    assert (found.nacked, found.acked, found.is_aside, found.unsubscribed) == ({}, ["2"], False, [])
    assert "more than 9 (maxDataLength)" in found.said[0]
    assert "more than 9 (maxDataLength)" in found.kept_back


def test_a_copy_of_a_dead_letter_that_a_topic_gives_is_rejected_as_that_takes_only_a_copy():
    found = ends("/topic/t")
    found.given("1", body=LONG, destination="/topic/t", dlqDeliveryFailureCause="expired")
    assert (list(found.nacked), found.is_aside) == (["1"], False)
