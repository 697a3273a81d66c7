"""Test that attributes of a queue survive kill -9: paused state, selectors, priorities."""

from __future__ import annotations

import asyncio

import pytest

from brokerapp.admin import BrokerAdmin
from brokerapp.model.destination import Destination
from brokerapp.system.data_directory import DataDirectory
from tests.faults.processes import BrokerProcess
from tests.protocol.clients import StompClient

pytestmark = pytest.mark.slow

PLUGIN = """\
<plugins><virtualSelectorCacheBrokerPlugin persistFile="selectors.data"/></plugins>
<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
  <virtualTopic name="VirtualTopic.&gt;" selectorAware="true"/>
</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
<destinationPolicy><policyMap><policyEntries>
  <policyEntry queue="urgent" prioritizedMessages="true"/>
</policyEntries></policyMap></destinationPolicy>"""


@pytest.fixture
def broker(tmp_path):
    process = BrokerProcess(tmp_path, PLUGIN)
    try:
        process.start()
        yield process
    finally:
        process.end()


def ask(broker, question):
    async def once():
        admin = BrokerAdmin(*DataDirectory(broker.data).locate_store())
        try:
            return await question(admin)
        finally:
            await admin.close()

    return asyncio.run(once())


def test_a_pause_and_a_remembered_selector_outlive_the_node(broker):
    queue = "Consumer.A.VirtualTopic.x"
    client = StompClient(broker.port)
    client.subscribe(f"/queue/{queue}", selector="colour = 'red'")
    for number, priority in enumerate([4, 9, 0, 9]):
        client.send("/queue/urgent", str(number), priority=str(priority), persistent="true")
    ask(broker, lambda admin: admin.pause(Destination.queue(queue)))
    broker.kill()
    broker.start()
    client = StompClient(broker.port)
    for colour in ("red", "blue"):
        client.send("/topic/VirtualTopic.x", colour, colour=colour, persistent="true")
    assert broker.depths(queue) == {queue: 1}
    client.subscribe(f"/queue/{queue}")
    assert client.has_no_more(), "it is paused"
    ask(broker, lambda admin: admin.pause(Destination.queue(queue), False))
    assert client.bodies() == ["red"]
    assert list(ask(broker, lambda admin: admin.selectors_of(Destination.queue(queue)))) == ["colour = 'red'", "TRUE"]
    client.send("/queue/urgent", "4", priority="5", persistent="true")
    client.subscribe("/queue/urgent")
    assert client.bodies(5) == ["1", "3", "4", "0", "2"]
    client.leave()
