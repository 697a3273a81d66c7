"""Test how clients' destination names are read, by headers, prefixes and mappings of the connector."""

import pytest

from brokerapp.engine.routing.bindings import RoutingType
from brokerapp.engine.routing.consumer_mappings import ConsumerMappings, parse_mappings
from brokerapp.engine.routing.naming_conventions import NamingConventions
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import Frame
from brokerapp.stomp.naming import DestinationNaming
from brokerapp.stomp.session import StompSession

PREFIXED = NamingConventions(
    (("jms.queue.", RoutingType.ANYCAST), ("jms.topic.", RoutingType.MULTICAST), ("/queue/", RoutingType.ANYCAST))
)
MAPPED = NamingConventions(
    consumer_queues=ConsumerMappings(parse_mappings("Consumer.*.>;2,C.*.>;2;selectorAware=true")[0])
)


def own(kind, name):
    return Destination(kind, f"ID:{name}")


def send_in(session, frame):
    [send] = session.receive(frame).requests
    return send


def named(text, conventions=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    naming = DestinationNaming(own, conventions) if conventions else DestinationNaming(own)
    return naming.resolve_send(text, headers)


@pytest.mark.parametrize(
    ("text", "routing", "expected"),
    [
        ("orders", None, "orders"),
        ("orders", "ANYCAST", "/queue/orders"),
        ("orders", "MULTICAST", "/topic/orders"),
        ("/topic/orders", "MULTICAST", "/topic/orders"),
        ("topic://orders", "MULTICAST", "topic://orders"),
        ("a,b", "MULTICAST", "/topic/a,/topic/b"),
        ("a::q", "MULTICAST", "a::q?routing-type=MULTICAST"),
        ("/queue/a::q?x=1", "ANYCAST", "/queue/a::q?x=1&routing-type=ANYCAST"),
        ("/temp-queue/mine", "MULTICAST", "/remote-temp-queue/ID:mine"),
        ("/queue/a,/temp-topic/mine", None, "/queue/a,/remote-temp-topic/ID:mine"),
    ],
)
def test_a_header_says_what_a_plain_name_is(text, routing, expected):
    assert named(text, **({"destination_type": routing} if routing else {})) == expected


@pytest.mark.parametrize(
    ("text", "routing", "rule"),
    [
        ("orders", "anycast", "destination-type:anycast is neither ANYCAST nor MULTICAST"),
        ("/queue/orders", "MULTICAST", "destination-type:MULTICAST contradicts /queue/orders"),
        ("topic://orders", "ANYCAST", "destination-type:ANYCAST contradicts topic://orders"),
    ],
)
def test_what_makes_no_sense_is_refused(text, routing, rule):
    with pytest.raises(RequestRefused, match=rule):
        named(text, destination_type=routing)


@pytest.mark.parametrize(
    ("text", "routing", "expected"),
    [
        ("jms.queue.orders", None, "/queue/orders"),
        ("jms.topic.orders", None, "/topic/orders"),
        ("/queue/orders", None, "/queue/orders"),
        ("jms.topic.orders", "ANYCAST", "/queue/orders"),  # the header counts more
        ("other.orders", None, "other.orders"),
        ("/topic/orders", None, "/topic/orders"),
    ],
)
def test_prefixes_of_the_connector_say_what_a_name_is(text, routing, expected):
    assert named(text, PREFIXED, **({"destination_type": routing} if routing else {})) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/queue/Consumer.A.T", "/queue/T::Consumer.A.T"),
        ("Consumer.A.X,Consumer.A.Y", "/queue/X::Consumer.A.X,/queue/Y::Consumer.A.Y"),
        ("queue://C.A.T", "/queue/T::C.A.T?selectorAware=true"),
        ("/queue/Consumer.A.T.>", "/queue/T.>::Consumer.A.T.>"),
        ("/topic/Consumer.A.T", "/topic/Consumer.A.T"),
        ("/temp-queue/Consumer.A.T", "/remote-temp-queue/ID:Consumer.A.T"),
        ("/queue/Consumer.A", "/queue/Consumer.A"),
        ("/queue/T::Consumer.A.T", "/queue/T::Consumer.A.T"),
    ],
)
def test_a_consumers_queue_becomes_a_subscription_queue(text, expected):
    assert DestinationNaming(own, MAPPED).resolve_subscribe(text, {}) == expected
    assert "::" not in DestinationNaming(own, MAPPED).resolve_send("/queue/Consumer.A.T", {})


def test_consumers_are_told_what_a_prefix_said():
    session = StompSession(DestinationNaming(own, PREFIXED))
    session.receive(Frame("CONNECT", {"accept-version": "1.2"}))
    send = send_in(session, Frame("SEND", {"destination": "jms.topic.orders"}))
    assert (send.destination, "destination-type:MULTICAST\n" in send.properties) == ("/topic/orders", True)
    plain = send_in(session, Frame("SEND", {"destination": "orders", "destination-type": "MULTICAST"}))
    assert (plain.destination, plain.properties) == ("/topic/orders", "destination-type:MULTICAST\n")
