import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.brokers.configuration import broker_xml
from benchmarks.generator.traffic import Traffic
from benchmarks.protocol.dialect import ActiveMQDialect, RabbitMQDialect
from benchmarks.scenarios.messages import Orders
from benchmarks.scenarios.routes import FilteredComposite, VirtualTopic
from benchmarks.scenarios.rows import BLOCK, SCENARIOS

CORE = "{http://activemq.apache.org/schema/core}"


@pytest.fixture(params=SCENARIOS, ids=lambda each: each.name)
def scenario(request):
    return request.param


def test_a_window_is_a_whole_number_of_blocks(scenario):
    assert scenario.window >= scenario.block
    assert scenario.window % scenario.block == 0
    assert all(count % (scenario.block * scenario.producers) == 0 for count in scenario.messages.values())


def sent(scenario):
    """Headers and bodies of the frames that the first producer writes in a window."""
    text = b"".join(block.data for block in Traffic(scenario).blocks(0, scenario.window))
    for each in text.split(b"\0")[:-1]:
        head, body = each.split(b"\n\n")
        yield dict(line.split(":", 1) for line in head.decode().split("\n")[1:]), body


def test_receipts_all_differ(scenario):
    receipts = [headers["receipt"] for headers, _ in sent(scenario) if "receipt" in headers]
    each = scenario.transaction or 1
    assert len(receipts) == len(set(receipts)) == (scenario.window // each if scenario.persistent else 0)


def test_bodies_are_json_with_the_number_of_the_message_and_as_long_as_their_header_says(scenario):
    found = [(headers, body) for headers, body in sent(scenario) if "content-length" in headers]
    numbers = [json.loads(body)["order"] for _, body in found]
    assert numbers == list(range(10_000_000, 10_000_000 + scenario.window))
    assert all(int(headers["content-length"]) == len(body) for headers, body in found)


def test_an_order_has_a_correlation_id_and_eight_properties_of_which_five_differ():
    orders = [Orders().headers(number) for number in range(10_000_000, 10_050_000)]
    differing = {name for name in orders[0] if len({each[name] for each in orders}) > len(orders) / 3}
    same = {name for name in orders[0] if len({each[name] for each in orders}) == 1}
    assert differing == {"correlation-id", "order", "customer", "total", "placed", "trace"}
    assert same == {"event", "schema", "currency"}


def test_bodies_of_orders_have_all_lengths_from_200_to_2500_and_are_the_same_in_each_run():
    orders = Orders()
    lengths = [len(orders.body(number)) for number in range(10_000_000, 10_001_009)]
    assert 200 <= min(lengths) < 220
    assert 2480 < max(lengths) <= 2500
    assert 1300 < sum(lengths) / len(lengths) < 1400
    assert len(set(lengths)) > 700
    assert Orders().body(10_000_000) == orders.body(10_000_000)
    assert Orders(seed=18).body(10_000_000) != Orders().body(10_000_000)


def test_a_ratio_is_asked_for_only_of_peers_that_take_part(scenario):
    assert set(scenario.bars) <= set(scenario.messages)


def test_the_shares_of_filtered_legs_are_what_their_selectors_take():
    route = FilteredComposite(legs=5)
    numbers = range(10_000_000, 10_000_000 + BLOCK)
    regions = [route.properties(number)["region"] for number in numbers]
    taken = [sum(f"'{region}'" in selector for region in regions) for _, selector in route.filtered()]
    expected = [sum(map(group.takes, numbers)) for group in route.groups(ActiveMQDialect())]
    assert taken == expected == [50, 40, 30, 20, 10]


def test_each_application_has_a_queue_of_its_own_in_both_dialects():
    groups = VirtualTopic(3).groups(ActiveMQDialect())
    assert [each.subscribe["destination"] for each in groups] == [
        f"/queue/Consumer.App{number}.VirtualTopic.Bench" for number in range(3)
    ]
    groups = VirtualTopic(3).groups(RabbitMQDialect())
    assert {each.subscribe["destination"] for each in groups} == {VirtualTopic(3).destination(0)}
    assert len({each.subscribe["x-queue-name"] for each in groups}) == 3


def test_the_configuration_declares_a_leg_for_each_queue_with_its_selector():
    route = FilteredComposite(legs=2)
    scenario = next(each for each in SCENARIOS if isinstance(each.route, FilteredComposite))
    root = ET.fromstring(broker_xml(scenario, 1234, Path("/data & more")))
    legs = [(leg.get("queue"), leg.get("selector")) for leg in root.iter(f"{CORE}filteredDestination")]
    assert legs == scenario.route.filtered()
    assert route.filtered() == [
        ("bench.filtered.0", "region IN ('r0', 'r1')"),
        ("bench.filtered.1", "region IN ('r1')"),
    ]
    assert root.find(f"{CORE}broker").get("dataDirectory") == "/data & more"
    assert root.find(f".//{CORE}transportConnector").get("uri") == "stomp://127.0.0.1:1234"
