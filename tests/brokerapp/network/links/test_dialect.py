"""Test the differences of STOMP with an ActiveMQ at the other end of a bridge."""

import pytest

from brokerapp.network.links.dialect import ACTIVEMQ, SLUICE, crossing_selector, dialect_of
from brokerapp.network.links.remote_consumers import RemoteConsumer
from brokerapp.selectors import compile_selector

NAMES = ("a", "a_b", "50%", "it's", "ä,b", "x!y")


@pytest.mark.parametrize(
    ("answer", "dialect"),
    [
        ({"server": "Sluice/0.1.0", "sluice-broker": "b"}, SLUICE),
        ({"server": "ActiveMQ/5.17.2"}, ACTIVEMQ),
        ({"server": "ActiveMQ-Artemis/2.28.0"}, None),
        ({"server": "RabbitMQ/3.10.8"}, None),
        ({}, None),
    ],
)
def test_a_broker_is_known_by_its_answer_to_connect(answer, dialect):
    assert dialect_of(answer) is dialect


def crosses(to: str, ttl: int, path: tuple[str, ...]) -> bool:
    headers = ACTIVEMQ.send_headers({}, path) if path else {}
    return compile_selector(crossing_selector(to, ttl)).matches(headers)


@pytest.mark.parametrize("to", NAMES)
def test_what_was_at_a_broker_does_not_go_back_to_it_whatever_it_is_called(to):
    for other in NAMES:
        assert crosses(to, -1, (other, "b")) is (other != to)
        assert crosses(to, -1, ("b", other)) is (other != to)


@pytest.mark.parametrize("ttl", [1, 2, 3, -1])
def test_what_crossed_as_many_bridges_as_it_may_stays(ttl):
    for crossed in range(5):
        assert crosses("z", ttl, ("a", "b", "c", "d")[:crossed]) is (ttl == -1 or crossed < ttl)


@pytest.mark.parametrize("name", NAMES)
def test_the_consumer_of_a_bridge_is_known_by_its_selector(name):
    asked = ACTIVEMQ.subscribe_headers(name, 1, (name,), "colour = 'red'")["selector"]
    told = RemoteConsumer("c:1:1", (), f"convert_string_expressions:{asked}")
    assert ACTIVEMQ.consumer_of(told) == RemoteConsumer("c:1:1", (), path=(name,))
    other = RemoteConsumer("c:1:1", (), "convert_string_expressions:colour = 'red'")
    assert ACTIVEMQ.consumer_of(other) is other


def test_a_selector_of_activemq_is_sent_back_without_what_activemq_put_before_it():
    asked = ACTIVEMQ.subscribe_headers("a", 1, ("a",), "convert_string_expressions:size > 5")["selector"]
    assert asked == f"(size > 5) AND ({crossing_selector('a', 1)})"


def test_an_activemq_gets_the_path_as_a_property_and_gives_ids_itself():
    sent = ACTIVEMQ.send_headers({"destination": "/queue/q", "message-id": "1"}, ("a", "b c"))
    assert sent == {"destination": "/queue/q", "sluice_path": ",a,b%20c,"}
    assert ACTIVEMQ.path_of(sent) == ("a", "b c")
    assert ACTIVEMQ.message_headers(sent | {"transformation": "jms-json"}) == {"destination": "/queue/q"}
    assert ACTIVEMQ.message_headers({"AMQ_SCHEDULED_DELAY": "1000", "colour": "red"}) == {"colour": "red"}
    assert ACTIVEMQ.message_headers({"transformation": "jms-map-json"}) == {"transformation": "jms-map-json"}


@pytest.mark.parametrize(
    ("name", "readable", "odd"),
    [
        ("JMSXGroupSeq", ["1", "-1", "+2147483647"], ["abc", "", "1.5", " 1", "2147483648"]),
        ("AMQ_SCHEDULED_REPEAT", ["3"], ["twice", "2147483648"]),
        ("AMQ_SCHEDULED_DELAY", ["1000", "9223372036854775807"], ["soon", "9223372036854775808", "1" * 5_000]),
        ("AMQ_SCHEDULED_PERIOD", ["1000"], ["\u0663"]),
        ("AMQ_SCHEDULED_CRON", ["0 12 * * *"], ["noon", "61 * * * *"]),
        ("", [], ["nameless"]),
        ("priority-of-mine", ["high"], []),
    ],
)
def test_an_activemq_is_sent_no_property_at_which_it_would_end_the_connection(name, readable, odd):
    assert [each for each in (*readable, *odd) if name in ACTIVEMQ.send_headers({name: each}, ("a",))] == readable
