"""Test that every example configuration loads and does what its comment says."""

from pathlib import Path

import pytest

from brokerapp.config import ImportOutcome, export_xml, import_definitions, read_config
from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.selectors import compile_selector

FOLDER = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.xml"))


#: Those of two brokers that run beside each other: their ports have names of their own.
PORTS = {"network-a": "SLUICE_PORT_A", "network-b": "SLUICE_PORT_B"}


def read(name, **properties):
    return read_config(FOLDER / f"{name}.xml", properties)


def definitions(name):
    return read(name).definitions.virtual_destinations


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_loads_and_everything_in_it_is_understood(path):
    config = read_config(path, {PORTS.get(path.stem, "SLUICE_STOMP_PORT"): "4711"})
    assert config.name == path.stem
    assert [each.uri for each in config.connectors] == ["stomp://127.0.0.1:4711"]
    aside = [each for each in config.report if each.what in (ImportOutcome.UNKNOWN, ImportOutcome.IGNORED)]
    assert [each for each in aside if not each.why.endswith(" yet")] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_definitions_of_an_example_survive_export(path):
    found = read_config(path).definitions
    assert import_definitions(export_xml(found, "other"))[0] == found


def test_there_are_the_examples_of_the_documentation():
    assert {path.stem for path in EXAMPLES} >= {
        "orders", "all-topics-virtual", "selector-cache", "composite-queue", "wiretap", "filtered-destinations",
        "exclude-consumer-queues", "limits", "network-a", "network-b",
    }  # fmt: skip


def test_all_topics_virtual():
    assert definitions("all-topics-virtual") == (VirtualTopic(name=">", prefix="VirtualTopicConsumers.*."),)


def test_composite_queue():
    legs = ForwardTarget(Destination.queue("FOO")), ForwardTarget(Destination.topic("BAR"))
    assert definitions("composite-queue") == (CompositeDestination(Destination.queue("MY.QUEUE"), legs),)


def test_folders_that_a_broker_knows_when_it_starts_are_not_unknown_to_an_import():
    text = '<broker xmlns="http://activemq.apache.org/schema/core" dataDirectory="${activemq.data}/${what}"/>'
    unknown = [each.why for each in import_definitions(text)[1] if each.what is ImportOutcome.UNKNOWN]
    assert len(unknown) == 1
    assert "${what}" in unknown[0]


def test_wiretap():
    legs = (ForwardTarget(Destination.topic("Notifications")),)
    assert definitions("wiretap") == (
        CompositeDestination(Destination.queue("IncomingOrders"), legs, forward_only=False),
    )


def test_limits():
    orders, jobs, prices = read("limits").definitions.policies
    assert (orders.store_limit, orders.send_fail_if_no_space_after_timeout) == (100 << 20, 10_000)
    assert (jobs.prioritized_messages, prices.memory_limit, prices.store_limit) == (True, 1 << 20, 50 << 20)


def test_filtered_destinations():
    (composite,) = definitions("filtered-destinations")
    assert [(str(leg.destination), leg.selector) for leg in composite.legs] == [
        ("queue://FOO", "odd = 'yes'"),
        ("topic://BAR", "i = 5"),
    ]
    assert compile_selector(composite.legs[1].selector).matches({"i": "5"})


def test_selector_cache():
    config = read("selector-cache", **{"activemq.data": "/somewhere"})
    assert [(each.name, dict(each.options)) for each in config.plugins] == [
        ("virtualSelectorCacheBrokerPlugin", {"persistFile": "/somewhere/selectorcache.data"})
    ]
    assert config.definitions.virtual_destinations[0].selector_aware


def test_exclude_consumer_queues():
    config = read("exclude-consumer-queues")
    (connector,) = config.network_connectors
    assert connector.uri == "static://(tcp://localhost:61617)"
    assert connector.excluded == (Destination.queue("Consumer.*.VirtualTopic.>"),)
    assert any("Markdown" in each.why for each in config.report)
    assert config.definitions.virtual_destinations == (DEFAULT_VIRTUAL_TOPIC,)


def test_the_brokers_of_the_network_name_each_others_listener():
    a, b = read("network-a"), read("network-b")
    (to_b,) = a.network_connectors
    assert to_b.uri == f"static:({b.connectors[0].uri.replace('stomp', 'tcp')})"
    assert not b.network_connectors
    assert a.connectors[0].uri != b.connectors[0].uri


def test_orders():
    config = read("orders")
    topic, prices, incoming, returns = config.definitions.virtual_destinations
    assert topic == DEFAULT_VIRTUAL_TOPIC
    assert (prices.name, prices.prefix) == ("Prices.>", "Reader.*.")
    order = {"region": "eu", "amount": "150.50", "customer": "Ada", "express": "true"}
    taken = [
        leg.destination.name
        for leg in incoming.legs
        if not leg.selector or compile_selector(leg.selector).matches(order)
    ]
    assert taken == ["VirtualTopic.Orders", "Orders.Review", "Orders.Express"]
    assert not returns.forward_only
    assert [each.destination.name for each in config.definitions.policies] == [
        "Consumer.*.VirtualTopic.>",
        "Orders.Express",
    ]
    assert config.definitions.policies[0].dead_letter.kind == "individual"
