"""Test which messages a topic retains, policy by policy."""

import pytest

from brokerapp.engine.policy import subscription_recovery
from brokerapp.engine.policy.subscription_recovery import RetainedMessage, RetainedMessages
from brokerapp.model.definitions import RecoveryPolicy
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy

TOPIC = RoutedCopy(Destination.topic("t"))
NOW = 1_000_000


def message(id, body=b"body", expires=0, retain=None):
    line = f"ActiveMQ.Retain:{retain}\n" if retain else ""
    return Message(id, f"message-id:{id}\n{line}".encode(), body, expires=expires)


def remembered(policy, messages, at_ms=NOW, asked_ms=NOW):
    memory = RetainedMessages()
    for number, each in enumerate(messages):
        memory.add(each, TOPIC, policy, at_ms + number)
    return [kept.message.id for kept in memory.messages(policy, asked_ms)]


SIZE = 512 + len(message("1").head) + len(message("1").body)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, []),
        (RecoveryPolicy("none"), []),
        (RecoveryPolicy("lastImage"), ["4"]),
        (RecoveryPolicy("fixedCount", maximum_size=3), ["2", "3", "4"]),
        (RecoveryPolicy("fixedCount"), ["0", "1", "2", "3", "4"]),
        (RecoveryPolicy("fixedSized", maximum_size=2 * SIZE), ["3", "4"]),
        (RecoveryPolicy("fixedSized", maximum_size=SIZE - 1), []),
        (RecoveryPolicy("fixedSized"), ["0", "1", "2", "3", "4"]),
        (RecoveryPolicy("timed", recover_duration=3), ["2", "3", "4"]),
        (RecoveryPolicy("timed"), ["0", "1", "2", "3", "4"]),
    ],
)
def test_it_keeps_what_its_policy_says(policy, expected):
    assert remembered(policy, [message(str(number)) for number in range(5)], asked_ms=NOW + 4) == expected


def test_what_is_timed_goes_with_time_and_what_expired_is_not_given():
    timed = RecoveryPolicy("timed", recover_duration=1000)
    assert remembered(timed, [message("a"), message("b", expires=NOW + 500)], asked_ms=NOW + 500) == ["a"]
    assert remembered(timed, [message("a")], asked_ms=NOW + 1000) == []


def test_a_topic_keeps_no_more_bytes_than_the_bound_whatever_its_policy_says(monkeypatch):
    monkeypatch.setattr(subscription_recovery, "MAX_BYTES", 3 * SIZE)
    memory, policy = RetainedMessages(), RecoveryPolicy("fixedCount", maximum_size=1000)
    for number in range(9):
        memory.add(message(str(number)), TOPIC, policy, NOW)
    assert [each.message.id for each in memory.messages(policy, NOW)] == ["6", "7", "8"]
    assert memory.bytes == 3 * SIZE


@pytest.mark.parametrize("policy", [None, RecoveryPolicy("none"), RecoveryPolicy("lastImage")])
def test_the_last_message_to_be_retained_comes_first_and_says_so(policy):
    memory = RetainedMessages()
    for each in (message("a", retain="true"), message("b", retain="TRUE"), message("c", retain="false")):
        memory.add(each, TOPIC, policy, NOW)
    first, *rest = memory.messages(policy, NOW)
    assert first.message.headers == {"message-id": "b", "ActiveMQ.Retained": "true"}
    assert [each.message.id for each in rest] == (["c"] if policy == RecoveryPolicy("lastImage") else [])
    memory.add(message("d", body=b"", retain="true"), TOPIC, None, NOW)
    assert memory.messages(None, NOW) == []
    assert memory.bytes == 0


def test_what_was_retained_and_taken_back_meanwhile_is_not_learned_from_others():
    [retained], memory = _retained("a"), RetainedMessages()
    memory.learn(retained, [])
    assert memory.messages(None, NOW) == [retained]
    memory.add(message("b", body=b"", retain="true"), TOPIC, None, NOW)
    memory.learn(retained, [])
    assert memory.messages(None, NOW) == []
    memory = RetainedMessages()
    memory.add(message("b", body=b"", retain="true"), TOPIC, None, NOW)
    memory.learn(retained, [])
    assert (memory.messages(None, NOW), memory.bytes) == ([], 0)


def _retained(id):
    memory = RetainedMessages()
    memory.add(message(id, retain="true"), TOPIC, None, NOW)
    return memory.messages(None, NOW)


def test_what_two_others_tell_with_other_ages_stands_in_the_order_of_who_told_last():
    memory, policy = RetainedMessages(), RecoveryPolicy("fixedCount")
    memory.learn(None, [RetainedMessage(message("0"), TOPIC, NOW + 5)])
    memory.add(message("new"), TOPIC, policy, NOW + 9)
    memory.learn(None, [RetainedMessage(message(id), TOPIC, NOW) for id in "01"])
    assert [each.message.id for each in memory.messages(policy, NOW + 9)] == ["0", "1", "new"]
    assert memory.bytes == sum(each.size for each in memory.recent)
