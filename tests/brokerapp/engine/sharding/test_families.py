"""Test which logs are one family: all that one message may be copied to, whatever the definitions are."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerapp.engine.policy.dead_letters import dead_letter_destination
from brokerapp.engine.routing.bindings import Binding
from brokerapp.engine.routing.route_walk import route
from brokerapp.engine.routing.routing_context import RoutingContext, SubscriptionLog
from brokerapp.engine.sharding.families import TEMPORARY_FAMILY, Families
from brokerapp.errors import RequestRefused
from brokerapp.model.definitions import (
    CompositeDestination,
    DeadLetterStrategy,
    Definitions,
    ForwardTarget,
    MirroredQueue,
    PolicyEntry,
    VirtualTopic,
)
from brokerapp.model.destination import NAMED_KINDS, Destination, DestinationKind
from brokerapp.model.message import Message
from brokerapp.model.subscription_identity import SubscriptionIdentity

queue, topic = Destination.queue, Destination.topic
MESSAGE = Message("ID:1", b"message-id:ID\\c1\n", b"", persistent=True)
INDIVIDUAL = DeadLetterStrategy(kind="individual", queue_prefix="DLQ.", topic_prefix="DLQ.Topic.")


def composite(name, *targets):
    return CompositeDestination(
        Destination.parse(name), tuple(ForwardTarget(Destination.parse(each)) for each in targets)
    )


def families(*virtual, policies=()):
    return Families(Definitions(1, virtual, tuple(policies)))


def individual(*patterns, **changes):
    return [PolicyEntry(Destination.parse(each), replace(INDIVIDUAL, **changes)) for each in patterns]


@pytest.mark.parametrize(
    ("definition", "log"),
    [
        (VirtualTopic("VirtualTopic.>"), "queue://Consumer.A.VirtualTopic.Orders"),
        (VirtualTopic(">"), "queue://Consumer.A.VirtualTopic.Orders"),
        (VirtualTopic("VirtualTopic.*", "Q.", ".copy"), "queue://Q.VirtualTopic.Orders.copy"),
    ],
)
def test_a_consumer_queue_is_of_the_family_of_its_virtual_topic(definition, log):
    found = families(definition)
    assert found.family_of(log) == found.family_of("topic://VirtualTopic.Orders") == "topic://VirtualTopic.Orders"


@pytest.mark.parametrize(
    "log", ["queue://Orders", "topic://Orders", "queue://Consumer.A.Orders", "queue://Consumer.VirtualTopic.Orders"]
)
def test_a_log_that_no_definition_concerns_is_a_family_by_itself(log):
    assert families(VirtualTopic("VirtualTopic.>")).family_of(log) == log


def test_each_topic_of_a_virtual_topic_with_a_wildcard_is_a_family_by_itself():
    found = families(VirtualTopic("VirtualTopic.>"))
    assert found.family_of("queue://Consumer.A.VirtualTopic.x") != found.family_of("queue://Consumer.A.VirtualTopic.y")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Consumer.A.VirtualTopic.Orders.>", "topic://VirtualTopic.Orders"),
        ("Consumer.A.VirtualTopic.*.eu", "topic://VirtualTopic"),
    ],
)
def test_a_consumer_queue_of_several_topics_is_placed_by_what_its_name_has_before_the_wildcard(name, family):
    assert families(VirtualTopic("VirtualTopic.>")).family_of(str(queue(name))) == family


@pytest.mark.parametrize(("names", "family"), [(["b", "a"], "topic://a"), (["a.>"], "topic://a"), ([">"], "topic://>")])
def test_a_named_subscription_is_of_the_family_of_its_first_topic(names, family):
    log = SubscriptionIdentity("client", "name", tuple(map(topic, names))).log(1)
    assert families().family_of(str(log), [topic(each) for each in names]) == family


@pytest.mark.parametrize("client", ["C", "*", "C.A.x"])
def test_the_name_of_a_subscription_is_not_taken_for_that_of_a_queue(client):
    found = families(VirtualTopic(">", "C.*.", ""), VirtualTopic(">", "", ""), MirroredQueue("", ""))
    log = str(SubscriptionIdentity(client, "A.x", (topic("y"),)).log(1))
    assert found.family_of(log) == log
    assert found.family_of(log, [topic("y")]) == found.family_of("topic://y")


def test_a_named_subscription_of_a_virtual_topic_lives_with_the_consumer_queues():
    found = families(VirtualTopic("VirtualTopic.>"), composite("queue://in", "topic://VirtualTopic.Orders"))
    expected = found.family_of("queue://Consumer.A.VirtualTopic.Orders")
    assert found.family_of("subscription://client:name", [topic("VirtualTopic.Orders")]) == expected == "queue://in"


def test_a_queue_bound_to_an_address_lives_with_it_unless_definitions_place_it():
    found = families(VirtualTopic("VirtualTopic.>"))
    assert found.family_of("queue://billing", [topic("Orders")]) == "topic://Orders"
    assert found.family_of("queue://Consumer.A.VirtualTopic.x", [topic("Orders")]) == "topic://VirtualTopic.x"


def test_a_composite_lives_with_its_targets_and_theirs():
    found = families(composite("queue://b", "topic://c", "queue://d"), composite("queue://a", "queue://b"))
    names = ["queue://a", "queue://b", "topic://c", "queue://d"]
    assert {found.family_of(each) for each in names} == {"queue://a"}
    assert found.family_of("queue://c") == "queue://c"  # another kind


def test_composites_with_a_common_target_are_one_family_named_after_the_first():
    found = families(composite("queue://z", "queue://common"), composite("queue://y", "queue://common"))
    assert {found.family_of(f"queue://{each}") for each in ("y", "z", "common")} == {"queue://y"}


def test_composites_that_form_a_loop_are_one_family():
    found = families(composite("queue://b", "queue://a"), composite("queue://a", "queue://b"))
    assert {found.family_of("queue://a"), found.family_of("queue://b")} == {"queue://a"}


def test_a_filtered_target_lives_with_its_composite():
    filtered = CompositeDestination(topic("in"), (ForwardTarget(queue("red"), "colour = 'red'"),))
    assert families(filtered).family_of("queue://red") == "topic://in"


def test_a_composite_joins_the_virtual_topic_that_it_forwards_to_with_all_its_queues():
    found = families(VirtualTopic("VirtualTopic.>"), composite("queue://in", "queue://Consumer.A.VirtualTopic.x"))
    names = ["queue://in", "queue://Consumer.B.VirtualTopic.x", "topic://VirtualTopic.x"]
    assert {found.family_of(each) for each in names} == {"queue://in"}
    assert found.family_of("topic://VirtualTopic.y") == "topic://VirtualTopic.y"


def test_all_that_match_a_composite_with_a_wildcard_live_with_its_targets():
    found = families(composite("topic://Orders.>", "queue://all"))
    names = ["topic://Orders", "topic://Orders.eu", "queue://all"]
    assert {found.family_of(each) for each in names} == {"topic://Orders.>"}
    assert found.family_of("topic://Bills.eu") == "topic://Bills.eu"


def test_a_composite_over_consumer_queues_joins_the_topics_that_they_belong_to_and_no_others():
    found = families(VirtualTopic("VirtualTopic.>"), composite("queue://Consumer.*.VirtualTopic.eu.*", "queue://all"))
    names = ["topic://VirtualTopic.eu.x", "queue://Consumer.B.VirtualTopic.eu.y", "queue://all"]
    assert {found.family_of(each) for each in names} == {"queue://Consumer.*.VirtualTopic.eu.*"}
    assert found.family_of("topic://VirtualTopic.us.x") == "topic://VirtualTopic.us.x"


def test_composites_whose_wildcards_overlap_are_one_family():
    found = families(composite("queue://a.*", "queue://one"), composite("queue://*.b", "queue://two"))
    assert found.family_of("queue://one") == found.family_of("queue://two") == found.family_of("queue://a.c")


def test_the_consumers_of_a_mirror_live_with_the_queue():
    found = families(VirtualTopic("VirtualTopic.>"), MirroredQueue())
    names = ["queue://Orders", "topic://VirtualTopic.Mirror.Orders", "queue://Consumer.A.VirtualTopic.Mirror.Orders"]
    assert {found.family_of(each) for each in names} == {"queue://Orders"}


def test_a_queue_and_a_topic_that_copy_to_each_other_are_one_family():
    found = families(VirtualTopic(">", "", ""), MirroredQueue("", ""))
    assert found.family_of("queue://Orders") == found.family_of("topic://Orders")


@pytest.mark.parametrize("source", ["queue://Orders", "topic://Orders", "queue://Consumer.A.VirtualTopic.x"])
@pytest.mark.parametrize("changes", [{}, {"queue_suffix": ".dead", "topic_suffix": ".dead"}])
def test_an_individual_dead_letter_queue_lives_with_what_fails_there(source, changes):
    found = families(VirtualTopic("VirtualTopic.>"), policies=individual("queue://>", "topic://>", **changes))
    dead = dead_letter_destination(
        replace(INDIVIDUAL, **changes), Destination.parse(source), MESSAGE, expired=False, durable=""
    )
    assert found.family_of(str(dead)) == found.family_of(source)


@pytest.mark.parametrize("client", ["client", "a.host"])
def test_the_dead_letter_queue_of_a_subscriber_lives_with_the_topic(client):
    strategy = {"destination_per_durable_subscriber": True}
    found = families(policies=individual("topic://news.eu", **strategy))
    own = SubscriptionIdentity(client, "name", (topic("news.eu"),)).short_name
    dead = dead_letter_destination(
        replace(INDIVIDUAL, **strategy), topic("news.eu"), MESSAGE, expired=False, durable=own
    )
    assert found.family_of(str(dead)) == "topic://news.eu"


def test_the_dead_letter_queue_of_a_subscriber_lives_with_the_topic_whose_policy_is_one_of_several_alike():
    strategy = {"destination_per_durable_subscriber": True}
    policies = [*individual("topic://news.>", **strategy), *individual("topic://news.*", expiration=1, **strategy)]
    for order in (policies, policies[::-1]):
        found = families(policies=order)
        assert found.family_of("queue://DLQ.Topic.news.eu.sport.client:name") == "topic://news.eu.sport"
        assert found.family_of("queue://DLQ.Topic.news.eu.client:name") == "topic://news.eu"


def test_a_queue_called_like_a_dead_letter_queue_is_none_where_the_policy_of_the_source_says_otherwise():
    found = families(policies=individual("queue://Orders.>"))
    assert found.family_of("queue://DLQ.Orders.eu") == "queue://Orders.eu"
    assert found.family_of("queue://DLQ.Bills") == "queue://DLQ.Bills"
    assert found.family_of("topic://DLQ.Orders.eu") == "topic://DLQ.Orders.eu"


def test_a_shared_dead_letter_queue_joins_nobody():
    shared = PolicyEntry(queue("x.>"), DeadLetterStrategy(dead_letter_queue="Failed"))
    found = families(
        composite("queue://a", "queue://ActiveMQ.DLQ"), composite("queue://Failed", "queue://b"), policies=[shared]
    )
    assert {found.family_of(f"queue://{each}"): each for each in ("a", "b", "ActiveMQ.DLQ", "Failed")} == {
        "queue://a": "a", "queue://b": "b", "queue://ActiveMQ.DLQ": "ActiveMQ.DLQ", "queue://Failed": "Failed",
    }  # fmt: skip


def test_a_composite_that_collects_dead_letters_does_not_join_all_queues_that_have_them():
    found = families(composite("queue://DLQ.>", "queue://all"), policies=individual("queue://>"))
    assert found.family_of("queue://DLQ.Orders") == found.family_of("queue://all") == "queue://DLQ.>"
    assert found.family_of("queue://Orders") == "queue://Orders"


@pytest.mark.parametrize("log", ["temp-queue://ID:1:2", "temp-topic://ID:1:3"])
def test_temporary_destinations_are_one_family_whatever_is_fed_to_them(log):
    assert families(composite("queue://a", log)).family_of(log, [topic("a")]) == TEMPORARY_FAMILY


ELEMENTS = st.sampled_from(["a", "b", "C", "V", "M", "D"])
NAMES = st.lists(ELEMENTS, min_size=1, max_size=4).map(".".join)
PATTERNS = st.one_of(
    NAMES,
    st.lists(st.one_of(ELEMENTS, st.just("*")), min_size=1, max_size=4).map(".".join),
    st.lists(st.one_of(ELEMENTS, st.just("*")), max_size=3).map(lambda elements: ".".join([*elements, ">"])),
)
KINDS = st.sampled_from(NAMED_KINDS)
AFFIXES = st.sampled_from([("C.*.", ""), ("C.", ""), ("C.*.V.", ""), ("C.*.", ".b"), ("", ".b.a"), ("", "")])


@st.composite
def definitions(draw):
    """Definitions whose consumer queues belong to one topic each."""
    affixes = draw(AFFIXES)
    topics = draw(st.lists(PATTERNS, max_size=2, unique=True))
    every = [VirtualTopic(name, *affixes) for name in topics]
    every += [
        CompositeDestination(
            Destination(draw(KINDS), name),
            tuple(
                ForwardTarget(Destination(draw(KINDS), leg)) for leg in draw(st.lists(NAMES, min_size=1, max_size=2))
            ),
            forward_only=draw(st.booleans()),
        )
        for name in draw(st.lists(PATTERNS, max_size=3, unique=True))
    ]
    if draw(st.booleans()):
        every.append(MirroredQueue(*draw(st.sampled_from([("M.", ""), ("V.M.", ""), ("", ".M"), ("M.", ".a.b")]))))
    policies = [
        PolicyEntry(Destination(draw(KINDS), name), replace(INDIVIDUAL, queue_prefix="D.", topic_prefix="D.V."))
        for name in draw(st.lists(PATTERNS, max_size=2, unique=True))
    ]
    return Definitions(1, tuple(every), tuple(policies))


def consumer_queues(definitions, names):
    """Names of queues that messages may be copied to: some given ones, and consumer queues of some topics."""
    made = [
        each.prefix.replace("*", "a") + name + each.postfix
        for each in definitions.virtual_destinations
        if isinstance(each, VirtualTopic)
        for name in names
    ]
    return tuple({*names, *made, *(f"C.b.M.{name}" for name in names)})


def has_mirror(definitions):
    return any(isinstance(each, MirroredQueue) for each in definitions.virtual_destinations)


@settings(max_examples=400, deadline=None)
@given(definitions(), st.lists(NAMES, min_size=1, max_size=6, unique=True), KINDS)
def test_all_copies_of_a_message_are_of_one_family(defined, names, kind):
    followed, bound = topic(names[-1]), topic(names[0])
    subscription = SubscriptionIdentity("client", "name", (followed,))
    fed_by = {str(subscription.log(1)): [followed], "queue://bound": [bound]}
    sent_to, found = Destination(kind, names[0]), Families(defined)
    ends_there = found.family_of("queue://bound") == "queue://bound" and not has_mirror(defined)
    context = RoutingContext(
        consumer_queues(defined, names),
        (Binding(bound.name, "bound"),) if ends_there else (),
        (SubscriptionLog(subscription, str(subscription.log(1))),),
    )
    try:
        reached = route(MESSAGE, sent_to, context.topology(defined))
    except RequestRefused:
        return  # definitions that form a loop, which nobody can save
    copies = {str(each.destination) for each in (*reached.queues, *reached.topics)}
    assert len({found.family_of(log, fed_by.get(log, ())) for log in copies}) <= 1


@settings(max_examples=150, deadline=None)
@given(definitions(), st.lists(NAMES, min_size=1, max_size=6), st.data())
def test_the_order_of_definitions_makes_no_difference(defined, names, data):
    other = replace(
        defined,
        virtual_destinations=tuple(data.draw(st.permutations(defined.virtual_destinations))),
        policies=tuple(data.draw(st.permutations(defined.policies))),
    )
    logs = [str(Destination(kind, name)) for kind in (*NAMED_KINDS, DestinationKind.SUBSCRIPTION) for name in names]
    one, another = Families(defined), Families(other)
    assert [one.family_of(each) for each in logs] == [another.family_of(each) for each in logs]


@settings(max_examples=150, deadline=None)
@given(definitions(), NAMES, KINDS)
def test_the_family_is_of_a_destination_that_is_in_it(defined, name, kind):
    found = Families(defined)
    family = found.family_of(str(Destination(kind, name)))
    assert found.family_of(family) == family
