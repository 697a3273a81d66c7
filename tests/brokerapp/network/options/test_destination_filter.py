"""Test which destinations a connector forwards, and when it would do so twice."""

from dataclasses import replace

import pytest

from brokerapp.config.reader import parse_config
from brokerapp.model.definitions import VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.network.options.address import BrokerAddress
from brokerapp.network.options.destination_filter import (
    duplicate_warnings,
    exclusion_reason,
    exclusions_within,
    queues_held_for,
)
from brokerapp.network.options.options import ConnectorOptions

TERMS = ConnectorOptions("bridge", (BrokerAddress("b", 1),))
QUEUE, TOPIC = Destination.queue, Destination.topic


@pytest.mark.scenario("NB-03", "NB-04", "NB-05")
@pytest.mark.parametrize(
    ("changes", "target", "reason"),
    [
        ({}, QUEUE("q"), ""),
        ({"excluded": (QUEUE("a.>"),)}, QUEUE("a.b"), "excluded"),
        ({"excluded": (QUEUE("a.>"),)}, TOPIC("a.b"), ""),
        ({"excluded": (QUEUE("x"), QUEUE("y"))}, QUEUE("y"), "excluded"),
        ({"dynamically_included": (QUEUE("a.*"),)}, QUEUE("a.b"), ""),
        ({"dynamically_included": (QUEUE("a.*"),)}, QUEUE("b"), "not included"),
        ({"dynamically_included": (QUEUE("a"),), "statically_included": (QUEUE("b"),)}, QUEUE("b"), ""),
        ({}, TOPIC("ActiveMQ.Advisory.Queue"), "advisories"),
    ],
)
def test_what_a_connector_bridges_and_why_not_the_rest(changes, target, reason):
    said = exclusion_reason(replace(TERMS, **changes), target)
    assert said == "" if reason == "" else reason in said


@pytest.mark.parametrize(
    ("excluded", "target", "names"),
    [
        ((QUEUE("a.b.>"),), QUEUE("a.>"), ["a.b.>"]),
        ((QUEUE("a.b"), QUEUE("c")), QUEUE("a.*"), ["a.b"]),
        ((TOPIC("a.b.>"),), QUEUE("a.>"), []),
        ((QUEUE("a.b"),), QUEUE("a"), []),
    ],
)
def test_what_a_pattern_that_is_consumed_takes_in_and_is_excluded(excluded, target, names):
    assert exclusions_within(replace(TERMS, excluded=excluded), target) == names


@pytest.mark.parametrize(
    ("changes", "path", "named"),
    [
        ({}, (), ["t::q", "t::r"]),
        ({"excluded": (QUEUE("t::q"),)}, (), ["t::r"]),
        ({"dynamically_included": (QUEUE("t::q"), TOPIC("t"))}, (), ["t::q"]),
        ({"static_bridge": True, "statically_included": (TOPIC("t"),)}, (), []),
        ({"static_bridge": True, "statically_included": (TOPIC("t"), QUEUE("t::r"))}, (), ["t::r"]),
        ({"message_ttl": 2}, ("far",), []),
        ({"message_ttl": 2, "consumer_ttl": 2}, ("far",), ["t::q", "t::r"]),
        ({"consumer_ttl": -1}, ("far", "farther"), ["t::q", "t::r"]),
        ({"destination_filter": "Topic.>"}, (), []),
    ],
)
def test_which_copies_in_bound_queues_are_for_consumers_behind_the_bridge_too(changes, path, named):
    assert queues_held_for(replace(TERMS, **changes), ["t::q", "t::r"], path) == named


VIRTUAL = (VirtualTopic("VirtualTopic.>"),)


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, False),  # a virtual topic is demanded by plain subscribers only
        ({"use_virtual_dest_subs": True}, True),
        ({"use_virtual_dest_subs": True, "excluded": (QUEUE("Consumer.*.VirtualTopic.>"),)}, False),
        ({"use_virtual_dest_subs": True, "excluded": (TOPIC("VirtualTopic.>"),)}, False),
        ({"dynamically_included": (TOPIC("VirtualTopic.>"),)}, False),
        ({"dynamically_included": (TOPIC("VirtualTopic.a"), QUEUE("Consumer.>"))}, True),
        ({"dynamically_included": (QUEUE("Consumer.>"),)}, False),
        ({"statically_included": (TOPIC("VirtualTopic.a"),)}, True),
        ({"statically_included": (TOPIC("VirtualTopic.a"),), "static_bridge": True}, False),
    ],
)
def test_virtual_topics_and_their_queues_both_are_too_much(changes, warned):
    assert bool(duplicate_warnings(replace(TERMS, **changes), VIRTUAL)) is warned


def test_a_local_virtual_topic_makes_no_copies_of_what_bridges_bring():
    local = (replace(VIRTUAL[0], local=True),)
    assert duplicate_warnings(replace(TERMS, use_virtual_dest_subs=True), local) == []


def test_the_import_of_such_a_connector_warns_in_its_line():
    found = parse_config(
        """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="a">
        <networkConnectors>
          <networkConnector name="n" uri="static:(tcp://h:1)" useVirtualDestSubs="true"/>
        </networkConnectors></broker>""",
        {},
    ).report
    [warning] = [each for each in found if "twice" in each.why]
    assert (warning.line, warning.element) == (3, "networkConnector")
