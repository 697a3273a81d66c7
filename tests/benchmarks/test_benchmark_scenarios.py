import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.brokers.configuration import broker_xml
from benchmarks.generator.connection import send_blocks
from benchmarks.protocol.dialect import ActiveMQDialect, RabbitMQDialect
from benchmarks.scenarios.rows import BLOCK, SCENARIOS, FilteredComposite, VirtualTopic

CORE = "{http://activemq.apache.org/schema/core}"


@pytest.fixture(params=SCENARIOS, ids=lambda each: each.name)
def scenario(request):
    return request.param


def test_a_window_is_a_whole_number_of_blocks(scenario):
    assert scenario.window >= scenario.block
    assert scenario.window % scenario.block == 0
    assert all(count % (scenario.block * scenario.producers) == 0 for count in scenario.messages.values())


def test_receipts_on_their_way_all_differ(scenario):
    text = b"".join(send_blocks(scenario))
    receipts = [line for line in text.split(b"\n") if line.startswith(b"receipt:")]
    assert len(receipts) == len(set(receipts)) == (scenario.window if scenario.persistent else 0)


def test_a_ratio_is_asked_for_only_of_peers_that_take_part_and_goals_lie_beyond_bars(scenario):
    assert set(scenario.bars) | set(scenario.goals) <= set(scenario.messages)
    assert all(scenario.goals[peer] >= bar for peer, bar in scenario.bars.items())


def test_the_shares_of_filtered_legs_are_what_their_selectors_take():
    route = FilteredComposite(legs=5)
    sent = [route.properties(number)["region"] for number in range(BLOCK)]
    taken = [sum(f"'{region}'" in selector for region in sent) for _, selector in route.filtered()]
    assert taken == [group.share * BLOCK for group in route.groups(ActiveMQDialect())] == [50, 40, 30, 20, 10]


def test_each_application_has_a_queue_of_its_own_in_both_dialects():
    groups = VirtualTopic(3).groups(ActiveMQDialect())
    assert [each.subscribe["destination"] for each in groups] == [
        f"/queue/Consumer.App{number}.VirtualTopic.Bench" for number in range(3)
    ]
    groups = VirtualTopic(3).groups(RabbitMQDialect())
    assert {each.subscribe["destination"] for each in groups} == {VirtualTopic(3).destination}
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
