"""Test what a bridge asks of a broker over STOMP, and what it is told."""

import json
from types import SimpleNamespace

import pytest

from brokerapp.network.links.dialect import ACTIVEMQ, SLUICE
from brokerapp.network.links.remote_consumers import AllConsumersTold, ConsumerStopped, SubscriptionRemoved
from brokerapp.network.links.stomp_link import StompBrokerLink
from brokerapp.stomp.frames import Frame

TOPICS = ["ActiveMQ.Advisory.Consumer.Queue.q", "ActiveMQ.Advisory.VirtualDestination.Consumer.>"]


class Followed:
    """A link that follows consumers, and what it says of them."""

    def __init__(self, dialect):
        self.events = []
        connection = SimpleNamespace(
            name="out", remote="there", dialect=dialect, frame_limits=None, subscribe=self._subscribe
        )  # fmt: skip
        StompBrokerLink(connection).follow_consumers("demand", TOPICS, self.events.append)

    def _subscribe(self, _id, topics, told, _headers):
        self.topics, self._told = topics.split(","), told

    def advise(self, body):
        self._told(Frame("MESSAGE", {}, body))


@pytest.mark.parametrize(
    ("dialect", "more"), [(ACTIVEMQ, []), (SLUICE, ["/topic/ActiveMQ.Advisory.BridgeConsumer.Queue.q"])]
)
def test_only_a_sluice_is_asked_for_whom_bridges_are_there(dialect, more):
    assert Followed(dialect).topics == [*(f"/topic/{each}" for each in TOPICS), *more]


@pytest.mark.parametrize(
    ("document", "events"),
    [
        ({"AllConsumers": {"told": 2}}, [AllConsumersTold(2)]),
        (
            {"RemoveInfo": {"objectId": {"@class": "ConsumerId", "connectionId": "c", "sessionId": -1, "value": 1}}},
            [ConsumerStopped("c:-1:1")],
        ),
        ({"RemoveInfo": {"objectId": {"@class": "ProducerId", "connectionId": "c"}}}, []),
        ({"RemoveSubscriptionInfo": {"clientId": "c", "subscriptionName": "s"}}, [SubscriptionRemoved("c", "s")]),
        ({"DestinationInfo": {}}, []),
    ],
)
def test_advisories_tell_what_became_of_consumers(document, events):
    followed = Followed(ACTIVEMQ)
    followed.advise(json.dumps(document).encode())
    assert followed.events == events


@pytest.mark.parametrize(
    "body",
    [
        b"<advisory/>", b"[" * 100_000, b"1", b'{"ConsumerInfo": 1}', b'{"RemoveInfo": {"objectId": 1}}',
        b'{"ConsumerInfo": {"priority": []}}', b'{"AllConsumers": {"told": "many"}}',
    ],
)  # fmt: skip
def test_what_is_no_advisory_is_told_and_ends_nothing(caplog, body):
    followed = Followed(ACTIVEMQ)
    followed.advise(body)
    assert "an advisory from there cannot be read" in caplog.text
    assert followed.events == []
