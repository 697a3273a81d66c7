"""Test how the text forms of destinations are parsed and written."""

import pickle

import pytest

from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination, DestinationKind, list_of

queue, topic = Destination.queue, Destination.topic


@pytest.mark.scenario("AD-09", "ST-37")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/queue/A.b", queue("A.b")),
        ("queue://A.b", queue("A.b")),
        ("A.b", queue("A.b")),
        ("/other/A", queue("/other/A")),
        ("/topic/A/b", topic("A/b")),
        ("topic://A", topic("A")),
        ("/queue/ A b  ", queue("A b")),
        ("/remote-temp-queue/ID:x-1:1", Destination(DestinationKind.TEMP_QUEUE, "ID:x-1:1")),
        ("temp-topic://ID:x-1:1", Destination(DestinationKind.TEMP_TOPIC, "ID:x-1:1")),
    ],
)
def test_a_text_names_a_destination(text, expected):
    found = Destination.parse(text)
    assert found == expected
    assert Destination.parse(str(found)) == Destination.parse(found.stomp) == found
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "expected /queue/NAME"),
        ("/queue/ ", "expected /queue/NAME"),
        ("/queue/?a=1", "expected /queue/NAME"),
        ("/queue/a\x07", "control characters"),
        ("/queue/" + "a" * 1025, "1024 characters"),
        ("/temp-queue/mine", "only the connection"),
        ("/queue/a::", "must follow the ::"),
        ("::", "must follow the ::"),
        ("/topic/a:: ", "must follow the ::"),
        ("a::b::c", "one :: in"),
    ],
)
def test_a_text_that_names_none_is_refused_with_the_rule(text, rule):
    with pytest.raises(InvalidDestination, match=rule):
        Destination.parse(text)


@pytest.mark.parametrize("kind", DestinationKind)
def test_each_kind_is_a_queue_or_a_topic_temporary_or_not(kind):
    destination = Destination(kind, "ID:1")
    assert destination.is_queue == (not kind.endswith("topic"))
    assert destination.is_temporary == kind.startswith("temp")


def test_a_fully_qualified_name_has_an_address_and_names_one_queue():
    found = Destination.parse("/topic/Orders.>::Consumer.A.Orders.>")
    assert (found.address, found.physical, found.is_pattern) == ("Orders.>", queue("Consumer.A.Orders.>"), False)
    assert Destination.parse("::q").address == ""
    assert queue("q").address is None
    assert queue("q").physical == queue("q")
    assert Destination(DestinationKind.TEMP_QUEUE, "ID::1").address is None


@pytest.mark.scenario("AD-10")
def test_options_are_cut_off_and_are_no_part_of_what_is_named():
    found = Destination.parse("/queue/orders?consumer.prefetchSize=10&consumer.selector=a%3D1")
    assert found == queue("orders")
    assert hash(found) == hash(queue("orders"))
    assert found.options == {"consumer.prefetchSize": "10", "consumer.selector": "a=1"}
    assert pickle.loads(pickle.dumps(found)).options == found.options


@pytest.mark.scenario("SC-01", "CT-02")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/queue/A,/queue/B", [queue("A"), queue("B")]),
        ("/queue/A,B", [queue("A"), queue("B")]),
        ("/topic/A,B,topic://C", [topic("A"), queue("B"), topic("C")]),
        ("A,,A, ", [queue("A")]),
        (" /queue/A ", [queue("A")]),
        ("/queue/A, /queue/B", [queue("A"), queue("/queue/B")]),  # as in ActiveMQ
    ],
)
def test_a_list_names_each_destination_once(text, expected):
    assert list(Destination.parse_list(text)) == expected


@pytest.mark.parametrize(
    ("text", "sent_to"),
    [
        ("/queue/A,B,/topic/C", "/queue/A,queue://B,topic://C"),
        ("/queue/A,/queue/A,A", "/queue/A,queue://A,queue://A"),
        ("/queue/A?x=1,/queue/B", "/queue/A,queue://B"),
        ("/queue/A,", None),
        ("/queue/A", None),
    ],
)
def test_a_list_is_written_as_activemq_writes_where_a_message_was_sent_to(text, sent_to):
    found = list_of(text)
    assert (found and found.stomp) == sent_to


@pytest.mark.parametrize(
    ("text", "rule"),
    [(" ", "give it a name"), ("a.*", "pattern"), ("a,b", "comma"), ("a?b=c", "options"), ("/topic/a", "name alone"),
     ("a\nb", "control"), ("a::", "must follow the ::")],
)  # fmt: skip
def test_what_cannot_be_one_destination_is_refused_with_the_rule(text, rule):
    with pytest.raises(InvalidDestination, match=rule):
        Destination.named(DestinationKind.QUEUE, text)


def test_any_other_text_is_a_name():
    for text in ("a//", "a b", "a:b", "q::q"):
        assert Destination.named(DestinationKind.QUEUE, f" {text} ") == queue(text)
