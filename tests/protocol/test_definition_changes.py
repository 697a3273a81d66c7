"""Test that definitions change under traffic without loss, and that removed ones have no effect."""

import asyncio
import itertools
import threading

import pytest

from brokerapp.config import read_config
from brokerapp.model.definitions import DEFAULT_VIRTUAL_TOPIC, CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.runtime.config_reload import period_ms, watch_file
from tests.protocol.running_node import RunningNode, named
from tests.waiting import wait_until

pytestmark = pytest.mark.scenario("RC-01")
queue, topic = Destination.queue, Destination.topic


@pytest.fixture(autouse=True)
def afterwards_as_before(node):
    yield
    node.define(DEFAULT_VIRTUAL_TOPIC)


class ContinuousSender:
    """A client that sends numbers, one after the other, until it is told to stop."""

    def __init__(self, client, destination):
        self.sent, self._stopped = [], threading.Event()
        self._thread = threading.Thread(target=self._send, args=(client, destination))
        self._thread.start()

    def _send(self, client, destination):
        for number in itertools.count():
            client.send(destination, str(number), persistent="true")
            self.sent.append(str(number))
            if self._stopped.is_set():
                return

    def goes_on(self, count=5):
        """Wait until so many more are sent."""
        there = len(self.sent) + count
        wait_until(lambda: len(self.sent) >= there, "more messages")

    def stop(self):
        self._stopped.set()
        self._thread.join()
        return self.sent


def test_adding_changing_and_removing_a_composite_loses_nothing(node, connect, name):
    place = queue(f"{name}.in")

    def forwards_to(*targets, only=True):
        node.define(
            CompositeDestination(
                place, tuple(ForwardTarget(queue(f"{name}.{each}")) for each in targets), forward_only=only
            )
        )

    stream = ContinuousSender(connect(), place.stomp)
    stream.goes_on()
    forwards_to("a")
    stream.goes_on()
    forwards_to("b")
    stream.goes_on()
    forwards_to("b", "c")
    stream.goes_on()
    node.define(DEFAULT_VIRTUAL_TOPIC)
    stream.goes_on()
    sent = stream.stop()
    found = {end: node.bodies(f"{name}.{end}") for end in ("in", "a", "b", "c")}
    assert sorted(found["in"] + found["a"] + found["b"], key=int) == sent
    assert set(found["c"]) < set(found["b"])
    for end, bodies in found.items():
        assert len(bodies) >= 5, end
        assert bodies == sorted(bodies, key=int)


def test_adding_changing_and_removing_a_virtual_topic(node, connect, name):
    client = connect()
    client.subscribe(f"/queue/Q.A.{name}.T", id="own")
    client.subscribe(f"/queue/C.A.{name}.T", id="changed")
    client.subscribe(f"/topic/{name}.T", id="plain")
    steps = [
        ((), {"plain"}),
        ((VirtualTopic(f"{name}.>", prefix="Q.*."),), {"plain", "own"}),
        ((VirtualTopic(f"{name}.>", prefix="C.*."),), {"plain", "changed"}),
        ((DEFAULT_VIRTUAL_TOPIC,), {"plain"}),
    ]
    for number, (definitions, reached) in enumerate(steps):
        node.define(*definitions)
        client.send(f"/topic/{name}.T", str(number))
        messages = client.take(len(reached))
        assert {each.headers["subscription"] for each in messages} == reached
        assert set(named(messages)) == {str(number)}
    assert client.has_no_more()


def test_consumer_queues_keep_what_they_hold_when_their_virtual_topic_goes(node, connect, name):
    client = connect()
    client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}")
    client.unsubscribe()
    client.send(f"/topic/VirtualTopic.{name}", "before")
    node.define()
    client.send(f"/topic/VirtualTopic.{name}", "while it is gone")
    node.define(DEFAULT_VIRTUAL_TOPIC)
    client.send(f"/topic/VirtualTopic.{name}", "after")
    client.subscribe(f"/queue/Consumer.A.VirtualTopic.{name}")
    assert client.bodies(2) == ["before", "after"]


XML = """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}">
  {section}
  <plugins><runtimeConfigurationPlugin checkPeriod="100"/></plugins>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>"""
SECTION = """<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
    <compositeQueue name="IN"><forwardTo><queue physicalName="OUT"/></forwardTo></compositeQueue>
  </virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "activemq.xml"


@pytest.fixture
def followed(store, file, name):
    """A node that follows its file."""
    file.write_text(XML.format(name=name, section=""))
    config = read_config(file)
    running = RunningNode(config, store.url)

    async def begin():
        return asyncio.get_running_loop().create_task(watch_file(file, {}, period_ms(config), running.node))

    task = running.do(begin)
    yield running
    running.look(task.cancel)
    running.stop()


def test_a_file_that_changes_is_followed_and_without_a_section_the_default_is_back(followed, connect, file, name):
    def definitions():
        return followed.look(lambda: followed.node.broker.routing.table.definitions.virtual_destinations)

    assert definitions() == (DEFAULT_VIRTUAL_TOPIC,)
    client = connect(port=followed.port)
    client.subscribe("/queue/OUT")
    file.write_text(XML.format(name=name, section=SECTION))
    wait_until(
        lambda: definitions() == (CompositeDestination(queue("IN"), (ForwardTarget(queue("OUT")),)),), "the composite"
    )
    client.send("/queue/IN", "forwarded")
    assert client.bodies() == ["forwarded"]
    file.write_text(XML.format(name=name, section="<destinationInterceptors><nonsense/></destinationInterceptors>"))
    file.write_text(XML.format(name=name, section=""))
    wait_until(lambda: definitions() == (DEFAULT_VIRTUAL_TOPIC,), "the default")
    client.leave()


def test_a_file_that_cannot_be_used_changes_nothing(followed, file, name, caplog):
    version = followed.look(lambda: followed.node.broker.routing.table.definitions.version)
    file.write_text(XML.format(name=name, section="<destinationInterceptors>"))
    wait_until(lambda: "is invalid and ignored" in caplog.text, "a complaint")
    assert followed.look(lambda: followed.node.broker.routing.table.definitions.version) == version


@pytest.mark.parametrize(
    ("plugin", "period"),
    [
        ("", 0),
        ("<runtimeConfigurationPlugin/>", 0),
        ('<runtimeConfigurationPlugin checkPeriod="0"/>', 0),
        ('<runtimeConfigurationPlugin checkPeriod="5"/>', 100),
        ('<runtimeConfigurationPlugin checkPeriod="5000"/>', 5000),
    ],
)
def test_the_file_is_looked_at_as_often_as_it_says(file, plugin, period):
    file.write_text(f"<broker><plugins>{plugin}</plugins></broker>")
    assert period_ms(read_config(file)) == period
