"""Test the replies of statisticsBrokerPlugin."""

import json
import time

import pytest

from brokerapp.core.advisories.statistics_plugin import DATED, ENDED
from tests.protocol.running_node import RunningNode, node_of

XML = """<broker xmlns="http://activemq.apache.org/schema/core" brokerName="counting">
  <plugins>
    <statisticsBrokerPlugin/>
    <simpleAuthenticationPlugin><users>
      <authenticationUser username="a" password="a" groups="users"/>
    </users></simpleAuthenticationPlugin>
    <authorizationPlugin><map><authorizationMap><authorizationEntries>
      <authorizationEntry queue=">" read="users" write="users" admin="users"/>
      <authorizationEntry topic=">" read="users" write="users" admin="users"/>
    </authorizationEntries></authorizationMap></map></authorizationPlugin>
  </plugins>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:0"/></transportConnectors>
</broker>"""


@pytest.fixture(scope="module")
def node(store):
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def client(connect):
    return connect(login="a", passcode="a")


def numbers(frame):
    """The map a message holds."""
    entries = json.loads(frame.body)["map"]["entry"]
    found = {}
    for each in entries:
        name, *value = each.pop("string") if len(each) == 1 else (each.pop("string"), *each.values())
        found[name] = value[0]
    return found


@pytest.mark.scenario("SC-12")
@pytest.mark.parametrize("persistent", ["true", "false"])
def test_the_numbers_of_a_queue_come_to_who_asked(client, name, node, persistent):
    client.send(f"/queue/{name}", "12345")
    client.send(f"/queue/{name}", "123")
    client.subscribe("/temp-queue/answers")
    client.send(f"/queue/ActiveMQ.Statistics.Destination.{name}", reply_to="/temp-queue/answers", persistent=persistent)
    asked_ms = time.time() * 1000
    [answer] = client.take()
    assert answer.headers["transformation"] == "jms-map-json"
    assert abs(int(answer.headers["timestamp"]) - asked_ms) < 60_000
    found = numbers(answer)
    assert (found["destinationName"], found["brokerName"]) == (f"queue://{name}", "counting")
    assert (found["size"], found["enqueueCount"], found["averageMessageSize"]) == (2, 2, 4)
    assert node.depth(f"ActiveMQ.Statistics.Destination.{name}") == 0


@pytest.mark.scenario("SC-12")
def test_a_pattern_asks_for_all_that_match_of_its_kind(client, name):
    for place in (f"/queue/{name}.1", f"/queue/{name}.2", f"/topic/{name}.3"):
        client.send(place, "x")
    client.subscribe(f"/queue/{name}.answers")
    client.send(f"/queue/ActiveMQ.Statistics.Destination.{name}.*", reply_to=f"/queue/{name}.answers")
    found = {numbers(each)["destinationName"] for each in client.take(3)}
    assert found == {f"queue://{name}.{end}" for end in ("1", "2", "answers")}
    client.send(f"/topic/ActiveMQ.Statistics.Destination.{name}.*", reply_to=f"/queue/{name}.answers")
    assert numbers(client.take()[0])["destinationName"] == f"topic://{name}.3"


@pytest.mark.scenario("SC-12")
def test_a_queue_tells_its_memory_its_times_and_when_its_first_message_came(client, name):
    client.send(f"/queue/{name}", "12345")
    client.subscribe(f"/queue/{name}", ack="client")
    client.take()
    client.subscribe("/temp-queue/answers", id="answers")
    ask = {"reply_to": "/temp-queue/answers", "correlation_id": "c1", DATED: "true", ENDED: "true"}
    client.send(f"/queue/ActiveMQ.Statistics.Destination.{name}", **ask)
    answer, last = client.take(2)
    assert (answer.headers["correlation-id"], json.loads(last.body)) == ("c1", {"map": ""})
    found = numbers(answer)
    assert 0 < found["averageEnqueueTime"] < found["maxEnqueueTime"] + 1  # of which whole milliseconds are told
    assert (found["memoryUsage"], found["memoryPercentUsage"], found["messagesCached"]) == (
        0,
        0,
        0,
    )  # it was handed out
    assert found["memoryLimit"] > 0
    assert abs(found["firstMessageTimestamp"] / 1000 - time.time()) < 60
    for percent in json.loads(answer.body)["map"]["entry"]:
        assert percent["string"] != "memoryPercentUsage" or percent["int"] == 0


@pytest.mark.scenario("SC-12")
def test_each_consumer_of_queues_or_of_topics_tells_its_numbers(client, name):
    client.send(f"/queue/{name}", "12345", a="2")
    options = {"selector": "a > 1", "activemq.prefetchSize": "7", "activemq.exclusive": "true"}
    client.subscribe(f"/queue/{name}", id="1", ack="client", **options)
    client.subscribe(f"/topic/{name}", id="2")
    client.take()
    client.subscribe("/temp-queue/answers", id="answers")
    client.send("/queue/ActiveMQ.Statistics.Subscription", reply_to="/temp-queue/answers")
    by_name = {each["destinationName"]: each for each in map(numbers, client.take(2))}
    one = by_name[name]
    assert (one["selector"], one["prefetchSize"], one["exclusive"], one["slowConsumer"]) == (
        "convert_string_expressions:a > 1",
        7,
        True,
        False,
    )
    counters = ("enqueueCounter", "dispatchedCounter", "dequeueCounter", "dispatchedQueueSize", "sessionId")
    assert [one[each] for each in counters] == [1, 1, 0, 1, -1]
    assert one["connectionId"].startswith("ID:")
    client.send("/topic/ActiveMQ.Statistics.Subscription", reply_to="/temp-queue/answers")
    plain = numbers(client.take()[0])
    assert (plain["destinationName"], plain["selector"], plain["exclusive"]) == (name, "", False)


@pytest.mark.scenario("SC-12")
def test_the_numbers_of_the_broker_are_the_sums(client, node, name):
    client.subscribe("/temp-queue/answers", transformation="jms-map-xml")
    client.send("/queue/ActiveMQ.Statistics.Broker", reply_to="/temp-queue/answers")
    [answer] = client.take()
    assert answer.headers["transformation"] == "jms-map-xml"
    assert answer.body.startswith("<map>\n  <entry>\n    <string>brokerName</string>\n    <string>counting</string>")
    assert f"<string>{node.node.addresses[0]}</string>" in answer.body
    assert "<string>enqueueCount</string>\n    <long>" in answer.body


def test_who_asks_for_nothing_or_says_no_address_gets_no_answer(client, name, node):
    client.subscribe(f"/queue/{name}")
    client.send("/queue/ActiveMQ.Statistics.Broker", "x")
    client.send("/queue/ActiveMQ.Statistics.Broker", "x", reply_to=" ")
    client.send("/queue/ActiveMQ.Statistics.Nonsense", "x", reply_to=f"/queue/{name}")
    client.send("/queue/ActiveMQ.Statistics.Destination.none", "x", reply_to=f"/queue/{name}")
    assert client.has_no_more()


def test_without_the_plugin_such_queues_are_like_any_other(store, connect):
    from brokerapp.config import default_config

    running = RunningNode(default_config("not counting", 0), store.url)
    try:
        client = connect(port=running.port)
        client.send("/queue/ActiveMQ.Statistics.Broker", "x", reply_to="/queue/r")
        assert running.depth("ActiveMQ.Statistics.Broker") == 1
        client.leave()
    finally:
        running.stop()
