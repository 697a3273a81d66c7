"""Test that permissions add up, and that everything else is refused."""

import pytest

from brokerapp.config import ConfiguredGrant
from brokerapp.engine.policy.authorization import AuthorizationMap, Principal
from brokerapp.model.destination import Destination

queue, topic = Destination.queue, Destination.topic
GRANTS = [
    ConfiguredGrant(queue(">"), read={"admins"}, write={"admins"}, admin={"admins"}),
    ConfiguredGrant(queue("USERS.>"), read={"users"}, write={"users"}, admin={"users"}),
    ConfiguredGrant(queue("DROP.>"), write={"users", "guests"}),
    ConfiguredGrant(topic("NEWS.*"), read={"guests"}),
    ConfiguredGrant(None, read={"users"}),
]


def access():
    return AuthorizationMap(
        [ConfiguredGrant(g.destination, frozenset(g.read), frozenset(g.write), frozenset(g.admin)) for g in GRANTS]
    )


def who(*groups):
    return Principal("somebody", frozenset(groups))


@pytest.mark.parametrize(
    ("groups", "verb", "destination", "expected"),
    [
        (["admins"], "read", queue("ANY"), True),
        (["admins"], "admin", queue("USERS.a"), True),
        (["users"], "read", queue("USERS"), True),
        (["users"], "read", queue("USERS.a.b"), True),
        (["users"], "read", queue("OTHERS"), False),
        (["users"], "write", queue("DROP.a"), True),
        (["users"], "read", queue("DROP.a"), False),
        (["guests"], "write", queue("DROP.a"), True),
        (["guests"], "admin", queue("DROP.a"), False),
        (["guests"], "read", topic("NEWS.a"), True),
        (["guests"], "read", queue("NEWS.a"), False),
        (["guests"], "read", topic("NEWS.a.b"), False),
        (["guests", "users"], "read", queue("USERS.a"), True),
        ([], "read", queue("USERS.a"), False),
        (["users"], "read", queue("USERS.>"), True),
        (["users"], "read", queue("USERS.*.a"), True),
        (["users"], "read", queue(">"), False),
        (["users"], "read", queue("*.a"), False),
    ],
)
def test_who_may_what(groups, verb, destination, expected):
    assert access().may(who(*groups), verb, destination) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"), [(">", True), ("*.a", True), ("USERS.>", True), ("OTHERS.>", False), ("DROP.>", False)]
)
def test_who_may_read_some_of_a_pattern(pattern, expected):
    assert access().may_some(who("users"), "read", queue(pattern)) is expected


def test_answers_that_are_remembered_stay_right_and_bounded(monkeypatch):
    monkeypatch.setattr("brokerapp.engine.policy.authorization.MAX_ANSWERS", 10)
    guarded = access()
    for number in range(50):
        for _ in range(2):
            assert guarded.may(who("users"), "read", queue(f"USERS.{number}")) is True
            assert guarded.may(who("users"), "read", queue(f"OTHERS.{number}")) is False
    assert len(guarded._answers) <= 10
