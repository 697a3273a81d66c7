"""Test to which queue failed messages go, and their headers there."""

from dataclasses import replace

import pytest

from brokerapp.engine.policy.dead_letters import (
    MAX_ROUTE_LENGTH,
    DeadLetterInfo,
    dead_letter,
    dead_letter_destination,
    is_discarded,
)
from brokerapp.model.definitions import DeadLetterStrategy as Strategy
from brokerapp.model.destination import MAX_NAME, Destination, DestinationKind
from brokerapp.model.message import Message
from brokerapp.model.settings import DiscardingSettings

queue, topic = Destination.queue, Destination.topic
Q, T, DLQ = queue("orders"), topic("news"), queue("ActiveMQ.DLQ")
INDIVIDUAL = Strategy(kind="individual")


def message(persistent=True, expires=0, head=b"message-id:ID\\c1\ncolour:red\n"):
    return Message("ID:1", head, b"body", persistent=persistent, expires=expires)


def death(cause, source=Q, sent_to="", deliveries=1, consumer="c"):
    return DeadLetterInfo(cause, source, sent_to, 1000, deliveries, consumer)


#: Strategy, source, persistent, expired, where it goes.
WHERE = [
    (Strategy(), Q, True, False, DLQ),
    (Strategy(), T, True, False, DLQ),
    (Strategy(), Q, False, False, None),
    (Strategy(process_non_persistent=True), Q, False, False, DLQ),
    (Strategy(), Q, True, True, DLQ),
    (Strategy(process_expired=False), Q, True, True, None),
    (Strategy(process_expired=False), Q, True, False, DLQ),
    (Strategy(process_non_persistent=True, process_expired=False), Q, False, True, None),
    (Strategy(dead_letter_queue="MY.DLQ"), Q, True, False, queue("MY.DLQ")),
    (Strategy(dead_letter_queue="topic://MY.DLQ"), Q, True, False, topic("MY.DLQ")),
    (Strategy(kind="discarding"), Q, True, False, None),
    (INDIVIDUAL, Q, True, False, queue("ActiveMQ.DLQ.Queue.orders")),
    (INDIVIDUAL, T, True, False, queue("ActiveMQ.DLQ.Topic.news")),
    (Strategy(kind="individual", queue_prefix="DLQ.", queue_suffix=".x"), Q, True, False, queue("DLQ.orders.x")),
    (Strategy(kind="individual", topic_prefix="", topic_suffix=".DEAD"), T, True, False, queue("news.DEAD")),
    (replace(INDIVIDUAL, use_queue_for_queue_messages=False), Q, True, False, topic("ActiveMQ.DLQ.Queue.orders")),
    (replace(INDIVIDUAL, use_queue_for_topic_messages=False), T, True, False, topic("ActiveMQ.DLQ.Topic.news")),
    (Strategy(), DLQ, True, False, None),  # what fails there has nowhere to go
    (INDIVIDUAL, queue("ActiveMQ.DLQ.Queue.orders"), True, False, None),
    (INDIVIDUAL, queue("ActiveMQ.DLQ.Topic.news"), True, False, None),
    (Strategy(kind="individual", queue_prefix="", queue_suffix=".DEAD"), queue("a.DEAD"), True, False, None),
]


@pytest.mark.scenario("Q12")
@pytest.mark.parametrize(("strategy", "source", "persistent", "expired", "expected"), WHERE)
def test_where_a_failed_message_goes(strategy, source, persistent, expired, expected):
    assert dead_letter_destination(strategy, source, message(persistent), expired=expired) == expected


def test_a_dead_letter_keeps_its_id_properties_and_body_and_says_why_it_died():
    dead = dead_letter(message(), death("rejected: a\nb"), Strategy())
    assert (dead.id, dead.body, dead.persistent, dead.expires) == ("ID:1", b"body", True, 0)
    again = Message.load(dead.stored())
    assert again.headers["colour"] == "red"
    assert again.headers["original-destination"] == "/queue/orders"
    assert again.headers["dlqDeliveryFailureCause"] == "rejected: a\nb"
    assert again == dead


def test_a_dead_letter_does_not_expire_unless_its_strategy_says_so_and_remembers_its_own_expiry():
    expired = message(expires=500)
    dead = dead_letter(expired, death("expired"), Strategy())
    assert (dead.expires, dead.headers["expires"], dead.headers["originalExpiration"]) == (0, "0", "500")
    dead = dead_letter(expired, death("expired"), Strategy(expiration=60))
    assert (dead.expires, dead.headers["expires"]) == (1060, "1060")


def test_a_non_persistent_dead_letter_is_kept_and_says_what_it_was():
    dead = dead_letter(message(persistent=False), death("x"), Strategy(process_non_persistent=True))
    assert dead.persistent
    assert dead.headers["originalDeliveryMode"] == "NON_PERSISTENT"


def test_an_individual_queue_for_each_durable_subscriber_has_its_name():
    strategy = replace(INDIVIDUAL, destination_per_durable_subscriber=True, topic_suffix=".x")
    where = dead_letter_destination(strategy, T, message(), expired=False, durable="me:daily")
    assert where == queue("ActiveMQ.DLQ.Topic.news.me:daily.x")
    assert dead_letter_destination(strategy, T, message(), expired=False) == queue("ActiveMQ.DLQ.Topic.news.x")
    assert dead_letter_destination(INDIVIDUAL, T, message(), expired=False, durable="me:daily").name[-4:] == "news"


def test_the_name_of_an_individual_queue_is_never_too_long_and_two_sources_never_share_one():
    strategy = replace(INDIVIDUAL, queue_suffix=".dead")
    longest = [queue("q" * (MAX_NAME - 1) + last) for last in "ab"]
    where = [dead_letter_destination(strategy, each, message(), expired=False) for each in longest]
    assert where == [dead_letter_destination(strategy, each, message(), expired=False) for each in longest]
    assert len(set(where)) == 2
    for each in where:
        assert len(each.name) == MAX_NAME
        assert each.name.startswith("ActiveMQ.DLQ.Queue.qqq")
        assert dead_letter_destination(strategy, each, message(), expired=False) is None
    endless = replace(INDIVIDUAL, queue_prefix="p" * 2 * MAX_NAME)
    assert len(dead_letter_destination(endless, Q, message(), expired=False).name) == MAX_NAME


def test_a_dead_letter_tells_who_failed_when_and_how_often():
    headers = dead_letter(message(), death("x", deliveries=7, consumer="worker 3"), Strategy()).headers
    assert (headers["dlqDeliveryCount"], headers["dlqConsumer"], headers["dlqTime"]) == ("7", "worker 3", "1000")
    assert "dlqConsumer" not in dead_letter(message(), death("x", consumer=""), Strategy()).headers


def test_a_dead_letter_tells_its_whole_route_also_when_it_dies_again():
    first = dead_letter(message(), death("x", sent_to="/topic/news"), Strategy())
    assert first.headers["dlqRoute"] == "/topic/news,/queue/orders"
    second = dead_letter(first, death("y", source=queue("others")), Strategy())
    assert second.headers["dlqRoute"] == "/topic/news,/queue/orders,/queue/others"
    assert second.headers["dlqDeliveryFailureCause"] == "y"
    for _ in range(100):
        second = dead_letter(second, death("z"), Strategy())
        assert len(second.headers["dlqRoute"].split(",")) <= MAX_ROUTE_LENGTH
    assert {"/topic/news", "/queue/others"} < set(second.headers["dlqRoute"].split(",")), (
        "none is forgotten for another"
    )
    for number in range(2 * MAX_ROUTE_LENGTH):
        second = dead_letter(second, death("z", source=queue(f"q{number}")), Strategy())
    assert second.headers["dlqRoute"].split(",") == [
        f"/queue/q{each}" for each in range(MAX_ROUTE_LENGTH, 2 * MAX_ROUTE_LENGTH)
    ]


@pytest.mark.parametrize(
    ("plugin", "source", "expected"),
    [
        (DiscardingSettings(), Q, True),
        (DiscardingSettings(drop_all=False), Q, False),
        (DiscardingSettings(drop_all=False, drop_only=("ord.*", "x")), Q, True),
        (DiscardingSettings(drop_all=False, drop_only=("ord",)), Q, False),
        (DiscardingSettings(drop_all=False), Destination(DestinationKind.TEMP_QUEUE, "a"), True),
        (DiscardingSettings(drop_all=False), Destination(DestinationKind.TEMP_TOPIC, "a"), True),
        (
            DiscardingSettings(drop_all=False, drop_temporary_queues=False),
            Destination(DestinationKind.TEMP_QUEUE, "a"),
            False,
        ),
        (
            DiscardingSettings(drop_all=False, drop_temporary_topics=False),
            Destination(DestinationKind.TEMP_TOPIC, "a"),
            False,
        ),
    ],
)
def test_what_the_discarding_plugin_drops(plugin, source, expected):
    assert is_discarded(plugin, source) is expected
