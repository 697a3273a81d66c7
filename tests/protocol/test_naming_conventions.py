"""Test connector options that change names: consumer queues of topics, routing types."""

from dataclasses import replace

import pytest

from brokerapp.config.reader import parse_config
from brokerapp.errors import ConfigurationRefused
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode, named

URI = "stomp://127.0.0.1:0?{}"
FILE = """<broker brokerName="{}"><transportConnectors>
<transportConnector name="s" uri="{}"/></transportConnectors></broker>"""
WILDCARDS = "virtualTopicConsumerWildcards"


def config(name, query):
    return parse_config(FILE.format(name, URI.format(query).replace("&", "&amp;")), {})


@pytest.fixture(scope="module")
def node(store):
    query = (
        f"{WILDCARDS}=Consumer.*.%3E%3B2,Aware.*.%3E%3B2%3BselectorAware=true;anycastPrefix=jms.queue.;"
        "multicastPrefix=jms.topic."
    )
    running = RunningNode(replace(config("conventions", query), use_virtual_topics=False), store.url)
    running.define()
    yield running
    running.stop()


@pytest.mark.scenario("F01", "F05", "V14")
def test_consumer_queues_are_subscriptions_of_any_topic(connect, name):
    one, two, other, producer = connect(), connect(), connect(), connect()
    one.subscribe(f"/queue/Consumer.A.{name}", prefetch=1, ack="client-individual")
    two.subscribe(f"Consumer.A.{name}", prefetch=1, ack="client-individual")
    other.subscribe(f"/queue/Consumer.B.{name}")
    for body in "ab":
        producer.send(f"/topic/{name}", body)
    assert sorted(one.bodies() + two.bodies()) == ["a", "b"]
    assert other.bodies(2) == ["a", "b"]


@pytest.mark.scenario("F06")
def test_one_queue_holds_a_whole_subtree(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/Consumer.A.{name}.>")
    client.send(f"/topic/{name}.x", "x")
    client.send(f"/topic/{name}.y.z", "y")
    messages = client.take(2)
    assert named(messages) == ["x", "y"]
    assert {each.headers["destination"] for each in messages} == {f"/queue/Consumer.A.{name}.>"}


@pytest.mark.scenario("F03", "F04")
def test_the_queue_collects_for_those_who_are_away_and_only_from_its_first_consumer_on(connect, node, name):
    client = connect()
    client.send(f"/topic/{name}", "too early", persistent="true")
    client.subscribe(f"/queue/Consumer.A.{name}")
    client.unsubscribe()
    client.send(f"/topic/{name}", "kept", persistent="true")
    client.subscribe(f"/queue/{name}::Consumer.A.{name}")  # the same, by its full name
    assert client.bodies() == ["kept"]


@pytest.mark.scenario("F07", "F09")
def test_selectors_of_the_first_consumers_are_the_queues(connect, node, name):
    a, b, late = connect(), connect(), connect()
    a.subscribe(f"/queue/Aware.A.{name}", selector="s = 'A'")
    b.subscribe(f"/queue/Aware.B.{name}", selector="s = 'B'")
    for s in "ABC":
        a.send(f"/topic/{name}", s, s=s, persistent="true")
    assert [a.bodies(), b.bodies()] == [["A"], ["B"]]
    assert [node.depth(f"Aware.{each}.{name}") for each in "AB"] == [0, 0]
    a.unsubscribe()
    late.subscribe(f"/queue/Aware.A.{name}", selector="s = 'B'")  # what the queue takes and it wants: nothing
    for s in "AB":
        b.send(f"/topic/{name}", s, s=s, persistent="true")
    assert b.bodies() == ["B"]
    assert late.has_no_more()
    assert node.bodies(f"Aware.A.{name}") == ["A"]


@pytest.mark.scenario("F08")
def test_without_the_mark_what_nobody_wants_stays_in_the_queue(connect, node, name):
    client = connect()
    client.subscribe(f"/queue/Consumer.A.{name}", selector="s = 'A'")
    for s in "AB":
        client.send(f"/topic/{name}", s, s=s, persistent="true")
    assert client.bodies() == ["A"]
    assert client.has_no_more()
    assert node.bodies(f"Consumer.A.{name}") == ["B"]


@pytest.mark.scenario("F19")
def test_what_is_sent_to_a_consumers_queue_is_refused_as_it_is_no_queue_of_its_own(connect, name):
    client = connect()
    client.subscribe(f"/queue/Consumer.A.{name}")
    client.send(f"/queue/Consumer.A.{name}", "lost?", wait=False)
    assert "is a subscription of the topic" in client.error().headers["message"]


@pytest.mark.scenario("S01", "S03", "S04")
def test_prefixes_and_headers_say_what_a_plain_name_is(connect, node, name):
    client = connect()
    client.subscribe(f"jms.topic.{name}", id="topic")
    client.subscribe(name, id="typed", **{"subscription-type": "MULTICAST"})
    client.send(f"jms.topic.{name}", "t")
    client.send(name, "t", destination_type="MULTICAST")
    client.send(f"jms.queue.{name}", "q", persistent="true")
    client.send(name, "q", persistent="true")
    messages = client.take(4)
    assert [(each.body, each.headers["destination-type"]) for each in messages] == [("t", "MULTICAST")] * 4
    assert node.bodies(name) == ["q", "q"]
    client.frame("SEND", destination=name, wait=False, **{"destination-type": "anycast"})
    assert "destination-type:anycast is neither" in client.error().headers["message"]


@pytest.mark.scenario("F12")
def test_queues_of_an_anycast_address_share_what_is_sent_to_it(connect, node, name):
    client = connect()
    for queue in ("q1", "q2"):
        client.subscribe(f"{name}::{name}.{queue}", id=queue, **{"subscription-type": "ANYCAST"})
        client.unsubscribe(queue)
    for _ in range(2):
        client.send(f"jms.queue.{name}", "shared", persistent="true")
        client.send(f"{name}::{name}.q1", "own", persistent="true", destination_type="ANYCAST")
    assert sorted(node.bodies(f"{name}.q1")) == ["own", "own", "shared"]
    assert node.bodies(f"{name}.q2") == ["shared"]
    assert node.depth(name) == 0


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (f"{WILDCARDS}=Consumer.*.>;2", "write > as %3E"),
        (f"{WILDCARDS}=Consumer.*.%3E;2", "the number is missing"),
        (f"{WILDCARDS}=Consumer.*.%3E", "the number is missing"),
        (f"{WILDCARDS}=Consumer.*.%3E%3Btwo", "is not a whole number"),
        ("virtualTopicConsumerLruCacheMax=many", "virtualTopicConsumerLruCacheMax=many is not a whole number"),
    ],
)
@pytest.mark.scenario("V07")
def test_an_option_that_cannot_be_understood_is_refused_with_its_line(query, rule):
    with pytest.raises(ConfigurationRefused, match=f"line 2: transportConnector: .*{rule}"):
        config("x", query)


@pytest.mark.scenario("V06")
def test_options_are_decoded_layer_by_layer_and_written_so_that_they_are_read_again():
    for value in ("Consumer.*.%3E%3B2", "Consumer.*.%3e%3b2", "Consumer.*.%253E%253B2"):
        [connector] = config("x", f"a=b;{WILDCARDS}={value};c=d").connectors
        assert connector.options == (("a", "b"), (WILDCARDS, "Consumer.*.>;2"), ("c", "d"))
        [again] = config("x", connector.uri.partition("?")[2]).connectors
        assert again == connector


def test_what_is_odd_is_reported():
    found = config("x", f"{WILDCARDS}=A.%3E%3B1%3BselectorAware=yes,A.b.%3E%3B2").report
    said = " ".join(str(each) for each in found if WILDCARDS in each.element)
    assert "has no effect" in said
    assert "overlap" in said


def test_names_may_have_another_separator_than_the_dot(store, name):
    text = FILE.format(f"separated-{name}", "stomp://127.0.0.1:0")
    plugin = "<plugins><destinationPathSeparatorPlugin/></plugins>"
    running = RunningNode(
        parse_config(text.replace("<transportConnectors>", plugin + "<transportConnectors>"), {}), store.url
    )
    client = StompClient(running.port)
    subscribed = ("/queue/a/b", "/queue/a.c", "/topic/t/>", "/queue/Consumer/A/VirtualTopic/x", "/temp-queue/own/one",
                  "queue://d/e")  # fmt: skip
    for id, destination in enumerate(subscribed):
        client.subscribe(destination, id=str(id))
    sent = ("/queue/a.b", "/queue//a/ /c/", "/topic/t/u/v", "/topic/VirtualTopic/x", "/temp-queue/own/one", "a/b,a/c",
            "queue://d/e")  # fmt: skip
    for destination in sent:
        client.send(destination, "m", wait=False)
    got = [(each.headers["subscription"], each.headers["destination"]) for each in client.take(8)]
    shown = ["/queue/a.b", "/queue/a.c", "/topic/t.u.v", "/queue/Consumer.A.VirtualTopic.x", "/queue/d.e"]
    of_names = sorted(each for each in got if each[0] != "4")
    assert of_names == [
        ("0", shown[0]),
        ("0", shown[0]),
        ("1", shown[1]),
        ("1", shown[1]),
        ("2", shown[2]),
        ("3", shown[3]),
        ("5", shown[4]),
    ]
    client.leave()
    running.stop()
