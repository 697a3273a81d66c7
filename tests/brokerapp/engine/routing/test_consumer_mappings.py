"""Test how the option consumerMappings is parsed, and what consumer queues are called."""

import pytest

from brokerapp.engine.routing.consumer_mappings import ConsumerMappings, MappedQueue, parse_mappings
from brokerapp.errors import ConfigurationRefused

CLASSIC = "Consumer.*.>;2"


def mapped(value, name, **options):
    mappings, _ = parse_mappings(value)
    return ConsumerMappings(mappings, **options).mapped(name)


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (CLASSIC, "Consumer.A.VirtualTopic.Orders", "VirtualTopic.Orders::Consumer.A.VirtualTopic.Orders"),
        (CLASSIC, "Consumer.A.Orders", "Orders::Consumer.A.Orders"),
        (CLASSIC, "Consumer.A.T.>", "T.>::Consumer.A.T.>"),
        (CLASSIC, "Consumer.A.T.*", "T.*::Consumer.A.T.*"),
        (CLASSIC, "Consumer..T", "T::Consumer..T"),
        (CLASSIC, "Consumer.A", None),
        (CLASSIC, "Consumer", None),
        (CLASSIC, "Orders.Consumer.A", None),
        ("VirtualTopicConsumers.*.>;2", "VirtualTopicConsumers.A.T", "T::VirtualTopicConsumers.A.T"),
        ("Client.*.Sub.>;3", "Client.x.Sub.t.u", "t.u::Client.x.Sub.t.u"),
        ("A.B;0", "A.B", "A.B::A.B"),
        ("A.>;1,A.b.>;2", "A.b.c", "b.c::A.b.c"),  # the first counts
        ("A.b.>;2,A.>;1", "A.b.c", "c::A.b.c"),
        ("A.>;9", "A.b.c", None),
        ("A.>.>;1", "A.b", "b::A.b"),
        ("A.b.>;1", "A.*.c", "*.c::A.*.c"),  # a literal * in the name meets any element of such a filter
        ("A.*.EE;1", "A.*.EE", "*.EE::A.*.EE"),
        ("A.>;11", ".".join("Abcdefghijkl"), "l::" + ".".join("Abcdefghijkl")),
        ("", "Consumer.A.T", None),
        (CLASSIC + ",", "Consumer.A.T", "T::Consumer.A.T"),
    ],
)
@pytest.mark.scenario("V01", "V02", "V03", "V05", "V10", "V12", "V13", "V15")
def test_a_queues_name_becomes_its_topics_fully_qualified_name(value, name, expected):
    assert mapped(value, name) == (MappedQueue(expected, False) if expected else None)


@pytest.mark.scenario("V04")
def test_several_mappings_with_options():
    value = "A.>;1;selectorAware=true,B.*.>;2,C.*.*.*.EE;3;selectorAware=false"
    assert mapped(value, "A.SomeTopic") == MappedQueue("SomeTopic::A.SomeTopic", True)
    assert mapped(value, "B.b.SomeTopic.B") == MappedQueue("SomeTopic.B::B.b.SomeTopic.B", False)
    assert mapped(value, "C.c.c.SomeTopic.EE") == MappedQueue("SomeTopic.EE::C.c.c.SomeTopic.EE", False)
    assert mapped(value, "Identity7") is None


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("Consumer.*.>", "the number is missing, as in Consumer.*.>;2, where a uri has %3B"),
        ("x;", "'' is not a whole number"),
        ("x;two", "'two' is not a whole number"),
        ("x; 2", "' 2' is not a whole number"),
        ("x;-1", "'-1' is not a whole number"),
        ("x;1.5", "'1.5' is not a whole number"),
        (";2", "the filter is empty"),
        ("a.>;1,,b.>;1", "the filter is empty"),
        ("a.>;1,a.>;2", "there is a mapping for 'a.>' already"),
    ],
)
@pytest.mark.scenario("V08")
def test_what_cannot_be_understood_is_refused_with_the_mapping_and_the_rule(value, rule):
    with pytest.raises(ConfigurationRefused, match="virtualTopicConsumerWildcards") as refused:
        parse_mappings(value)
    assert rule in str(refused.value)


@pytest.mark.parametrize(
    ("value", "aware", "warnings"),
    [
        ("x.>;1;selectorAware=true", True, 0),
        ("x.>;1;selectorAware=TRUE", True, 0),
        ("x.>;1;selectorAware=yes", False, 1),
        ("x.>;1;foo=1", False, 1),
        ("x.>;1;selectorAware=true;foo=bar", True, 1),
        ("x.y;2", False, 1),
    ],
)
@pytest.mark.scenario("V09")
def test_what_is_odd_is_said(value, aware, warnings):
    [mapping], said = parse_mappings(value)
    assert (mapping.selector_aware, len(said)) == (aware, warnings)


@pytest.mark.parametrize(
    ("value", "overlap"),
    [
        ("A.>;1,A.b.>;2", True),
        ("A.*;1,*.b;1", True),
        ("A.*;1,A.*.c;1", False),
        ("A.>;1,B.>;1", False),
        ("A;0,A.>;0", True),
    ],
)
def test_overlapping_filters_are_said_to_overlap(value, overlap):
    assert bool(parse_mappings(value)[1]) == overlap


@pytest.mark.scenario("V11")
def test_what_is_remembered_of_names_is_bounded():
    mappings, _ = parse_mappings(CLASSIC)
    found = ConsumerMappings(mappings, remembered=100)
    for number in range(250):
        assert found.mapped(f"Consumer.A.T{number}") == MappedQueue(f"T{number}::Consumer.A.T{number}", False)
        assert found.mapped("Consumer.A.T0") == MappedQueue("T0::Consumer.A.T0", False)
    assert found.mapped.cache_info().currsize == 100
