"""Where failed messages go, and what they look like there."""

from dataclasses import replace

import pytest

from brokerapp.definitions import DeadLetterStrategy as Strategy
from brokerapp.destination import Destination
from brokerapp.engine.dead_letters import dead_letter, dead_letter_destination
from brokerapp.message import Message

queue, topic = Destination.queue, Destination.topic
Q, T, DLQ = queue("orders"), topic("news"), queue("ActiveMQ.DLQ")
INDIVIDUAL = Strategy(kind="individual")


def message(persistent=True, expires=0, head=b"message-id:ID\\c1\ncolour:red\n"):
    return Message("ID:1", head, b"body", persistent=persistent, expires=expires)


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
]


@pytest.mark.parametrize(("strategy", "source", "persistent", "expired", "expected"), WHERE)
def test_where_a_failed_message_goes(strategy, source, persistent, expired, expected):
    assert dead_letter_destination(strategy, source, message(persistent), expired=expired) == expected


def test_a_dead_letter_keeps_its_id_properties_and_body_and_says_why_it_died():
    dead = dead_letter(message(), Q, "rejected: a\nb", Strategy(), 1000)
    assert (dead.id, dead.body, dead.persistent, dead.expires) == ("ID:1", b"body", True, 0)
    again = Message.load(dead.stored())
    assert again.headers["colour"] == "red"
    assert again.headers["original-destination"] == "/queue/orders"
    assert again.headers["dlqDeliveryFailureCause"] == "rejected: a\nb"
    assert again == dead


def test_a_dead_letter_does_not_expire_unless_its_strategy_says_so_and_remembers_its_own_expiry():
    expired = message(expires=500)
    dead = dead_letter(expired, Q, "expired", Strategy(), 1000)
    assert (dead.expires, dead.headers["expires"], dead.headers["originalExpiration"]) == (0, "0", "500")
    dead = dead_letter(expired, Q, "expired", Strategy(expiration=60), 1000)
    assert (dead.expires, dead.headers["expires"]) == (1060, "1060")


def test_a_non_persistent_dead_letter_is_kept_and_says_what_it_was():
    dead = dead_letter(message(persistent=False), Q, "x", Strategy(process_non_persistent=True), 1000)
    assert dead.persistent
    assert dead.headers["originalDeliveryMode"] == "NON_PERSISTENT"
