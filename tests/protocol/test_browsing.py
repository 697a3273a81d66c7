"""Test browsing over STOMP with browser:true."""

import pytest

from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from tests.protocol.running_node import named
from tests.waiting import wait_until


def browse(client, destination, id="b", **headers):
    """What a browser of the destination is shown, up to the end."""
    client.subscribe(destination, id=id, browser="true", **headers)
    return until_end(client)


def until_end(client):
    shown = []
    while (message := client.take()[0]).headers.get("browser") != "end":
        shown.append(message)
    return shown


@pytest.fixture(params=["1.1", "1.2"])
def version(request):
    return request.param


@pytest.mark.scenario("S1-09")
def test_a_browser_sees_all_and_takes_nothing(connect, node, name, version):
    client = connect(version)
    for number in range(10):
        client.send(f"/queue/{name}", str(number))
    client.subscribe(f"/queue/{name}", id="b", browser="true")
    shown = [client.take()[0] for _ in range(11)]
    assert named(shown) == [*map(str, range(10)), ""]
    assert shown[-1].headers["browser"] == "end"
    assert shown[-1].headers["subscription"] == "b"
    assert shown[-1].headers["destination"] == f"/queue/{name}"
    assert node.depth(name) == 10
    client.send(f"/queue/{name}", "later")
    assert client.has_no_more(), "a snapshot does not grow"
    client.unsubscribe("b")
    client.subscribe(f"/queue/{name}")
    assert client.bodies(11) == [*map(str, range(10)), "later"]


@pytest.mark.scenario("S2-05")
def test_acks_of_a_browser_are_harmless_and_make_room_while_a_nack_is_refused(connect, node, name, version):
    client = connect(version)
    for number in range(5):
        client.send(f"/queue/{name}", str(number))
    client.subscribe(f"/queue/{name}", id="b", browser="true", ack="client-individual", prefetch=2)
    first, second = client.take(2)
    assert client.has_no_more()
    client.ack(first)
    [third] = client.take()
    client.nack(second)
    assert "NACK" in client.error().headers["message"]
    client.frame("BEGIN", transaction="t")
    client.ack(second, transaction="t")
    client.frame("ABORT", transaction="t")
    client.ack(third)
    assert named(until_end(client)) == ["3", "4"]
    assert node.depth(name) == 5
    assert node.numbers(Destination.queue(name)).DeadLetterCount == 0


def test_a_browser_is_no_consumer_and_sees_also_what_consumers_hold(connect, node, name):
    consumer, browser = connect(), connect()
    for body in "abc":
        consumer.send(f"/queue/{name}", body)
    consumer.subscribe(f"/queue/{name}", ack="client-individual", prefetch=2)
    consumer.take(2)
    assert named(browse(browser, f"/queue/{name}")) == ["a", "b", "c"]
    assert node.numbers(Destination.queue(name)).ConsumerCount == 1
    assert node.numbers(Destination.queue(name)).InFlightCount == 2


@pytest.mark.scenario("AD-14")
def test_a_browser_sees_more_than_any_page(connect, node, name):
    """ActiveMQ shows a browser 400 messages."""
    client, total = connect(), 2_500
    for number in range(total):
        client.send(f"/queue/{name}", str(number), wait=False)
    wait_until(lambda: node.depth(name) == total, "all are stored")
    assert named(browse(client, f"/queue/{name}")) == [*map(str, range(total))]


def test_a_browser_with_a_selector_sees_what_it_wants(connect, name):
    client = connect()
    for number in range(6):
        client.send(f"/queue/{name}", str(number), kind="odd" if number % 2 else "even")
    assert named(browse(client, f"/queue/{name}", selector="kind = 'odd'")) == ["1", "3", "5"]


def test_a_browser_of_a_list_or_pattern_sees_all_queues(connect, name):
    client = connect()
    for each in "ab":
        client.send(f"/queue/{name}.{each}", each)
    assert sorted(named(browse(client, f"/queue/{name}.>"))) == ["a", "b"]
    assert named(browse(client, f"/queue/{name}.b,/queue/{name}.a", id="c")) == ["b", "a"]


def test_a_browser_of_a_wildcard_consumer_queue_sees_what_that_queue_holds(connect, name):
    client, pattern = connect(), f"/queue/Consumer.A.VirtualTopic.{name}.>"
    client.subscribe(pattern)
    client.unsubscribe()
    client.send(f"/topic/VirtualTopic.{name}.x", "kept")
    assert named(browse(client, pattern)) == ["kept"]


def test_an_empty_queue_is_at_its_end_at_once(connect, name):
    assert browse(connect(), f"/queue/{name}") == []


def test_stomp_1_0_and_topics_have_no_browsers(connect, name):
    old, new = connect("1.0"), connect()
    old.subscribe(f"/queue/{name}", browser="true")
    assert "1.1" in old.error().headers["message"]
    new.subscribe(f"/topic/{name}", browser="true")
    assert "topic" in new.error().headers["message"]


def test_a_browser_that_does_not_read_costs_one_page(raw, connect, node, name):
    sender, total, body = connect(), 2_000, "x" * 10_000
    for _ in range(total):
        sender.send(f"/queue/{name}", body, wait=False)
    wait_until(lambda: node.depth(name) == total, "all are stored")
    slow = raw(receive_buffer=8192)
    slow.tell("SUBSCRIBE", {"id": "b", "destination": f"/queue/{name}", "browser": "true"})

    def blocked():
        return any(each.is_socket_full for each in node.node.broker.clients.values())

    wait_until(lambda: node.look(blocked), "its socket is full")
    [subscription] = [s for c in node.node.broker.clients.values() for s in c.subscriptions.values() if s.browse_cursor]
    assert subscription.client.delivered_count < total
    seen = 0
    while slow.hear().headers.get("browser") != "end":
        seen += 1
    assert seen == total


def test_a_browser_sees_what_its_client_sent_right_before_it(raw, name):
    client = raw()
    frames = [encode("SEND", {"destination": f"/queue/{name}", "persistent": "true"}, each) for each in (b"a", b"b")]
    frames.append(encode("SUBSCRIBE", {"destination": f"/queue/{name}", "id": "b", "browser": "true"}))
    client.write(b"".join(frames))
    assert [client.hear().body for _ in range(3)] == [b"a", b"b", b""]
