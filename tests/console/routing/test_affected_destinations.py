"""Test at which destinations a definition requires permissions to apply it. Pure."""

import pytest

from brokerapp.engine.routing.destination_trie import covers
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    RedeliveryPolicy,
    RedeliverySettings,
    VirtualTopic,
)
from brokerapp.model.destination import Destination
from console.access.roles import Permission, RoleGrant
from console.routing.definitions.affected_destinations import affected_destinations, named_destinations, widen_pattern

Q, T = Destination.queue, Destination.topic


def own(**options) -> DeadLetterStrategy:
    return DeadLetterStrategy("individual", **options)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a.b", "a.b"),
        ("Consumer.*.orders.>", "Consumer.*.orders.>"),
        ("Consumer.*.orders.>.late", "Consumer.*.orders.>"),
        ("c*.orders", "*.orders"),
        ("x>", ">"),
        ("a.x>.b", "a.>"),
    ],
)
def test_what_wildcards_become_of_any_text_is_matched(text, pattern):
    assert widen_pattern(text) == pattern


@pytest.mark.parametrize(
    ("topic", "queue"),
    [
        (VirtualTopic("mine.t"), "Consumer.*.mine.t"),
        (VirtualTopic("mine.>", "theirs."), "theirs.mine.>"),
        (VirtualTopic("mine.>", "theirs.", ".late"), "theirs.mine.>"),
        (VirtualTopic("mine.*", "theirs."), "theirs.mine.*"),
        (VirtualTopic(">", "theirs."), "theirs.>"),
    ],
)
def test_a_virtual_topic_is_also_about_its_consumer_queues(topic, queue):
    assert named_destinations(topic) == (T(topic.name), Q(queue))


def test_the_shortest_name_that_a_pattern_matches_counts_with_what_stands_behind_it():
    """`mine.>` matches `mine`, whose queue is `c.minelate`: no `c.mine.>` holds it."""
    queues = [each.name for each in named_destinations(VirtualTopic("mine.>", "c.", "late")) if each.is_queue]
    assert any(covers(each, "c.minelate") for each in queues)
    assert any(covers(each, "c.mine.a.blate") for each in queues)


@pytest.mark.parametrize(
    ("item", "places"),
    [
        (
            CompositeDestination(Q("mine"), (ForwardTarget(T("theirs")), ForwardTarget(Q("x.>")))),
            {Q("mine"), T("theirs"), Q("x.>")},
        ),
        (MirroredQueue("mirror."), {Q(">"), T("mirror.>")}),
        (RedeliveryPolicy(Q("mine.>")), {Q("mine.>")}),
        (RedeliverySettings(), {Q(">"), T(">")}),
        (PolicyEntry(Q("mine.>")), {Q("mine.>")}),
        (PolicyEntry(Q("mine"), DeadLetterStrategy()), {Q("mine")}),
        (PolicyEntry(Q("mine"), DeadLetterStrategy(dead_letter_queue="topic://t")), {Q("mine"), T("t")}),
        (PolicyEntry(Q("mine.>"), own()), {Q("mine.>")}),
        (PolicyEntry(Q("mine.>"), own(queue_prefix="theirs.")), {Q("mine.>"), Q("theirs.mine.>")}),
        (
            PolicyEntry(Q("mine"), own(queue_prefix="", queue_suffix=".dead", use_queue_for_queue_messages=False)),
            {Q("mine"), T("mine.dead")},
        ),
        (
            PolicyEntry(T("mine"), own(topic_prefix="d.", destination_per_durable_subscriber=True)),
            {T("mine"), Q("d.mine"), Q("d.mine.>")},
        ),
        (
            PolicyEntry(Q("mine"), include_body_for_advisory=True),
            {Q("mine"), T("ActiveMQ.Advisory.*.Queue.mine")},
        ),
        (None, set()),
    ],
)
def test_a_definition_reaches_all_that_messages_come_to_by_it(item, places):
    assert set(affected_destinations(item)) == places


@pytest.mark.parametrize(
    ("scopes", "name", "may"),
    [
        (["mine.>"], "mine::mine.a", True),
        (["mine.>"], "theirs::mine.a", False),
        (["mine.>", "topic://theirs"], "theirs::mine.a", False),  # it may be a queue that is shared
        (["mine.>", "theirs"], "theirs::mine.a", True),
        (["mine.>"], "::mine.a", True),
        ([], "theirs::mine.a", True),
    ],
)
def test_who_calls_a_queue_by_a_full_name_binds_it_so_the_right_must_be_for_the_address_too(scopes, name, may):
    grant = RoleGrant.parse("operator", scopes, ["route"])
    assert grant.allows(Permission.SEND, Q(name)) is grant.allows(Permission.ROUTE, T(name)) is may
    assert grant.allows(Permission.BROWSE, Q(name))
