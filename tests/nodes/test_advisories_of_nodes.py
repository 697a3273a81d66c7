"""Test that subscribers of advisories at one node learn of consumers at all nodes."""

import json
import queue

import pytest

from tests.nodes.conftest import several_nodes
from tests.waiting import wait_until


@pytest.fixture
def broker(redis_url):
    """A broker of two nodes, which may be crashed."""
    with several_nodes(redis_url, "a", "b") as several:
        yield several


class Listener:
    """Hears of the consumers of a queue, at a node."""

    def __init__(self, client, destination):
        self._client, self.consumers = client, []
        client.subscribe(f"/topic/ActiveMQ.Advisory.Consumer.Queue.{destination}", transformation="jms-advisory-json")

    def hear(self):
        """How many consumers there are, as far as it was told."""
        while True:
            try:
                document = json.loads(self._client.messages.get_nowait().body)
            except queue.Empty:
                return len(self.consumers)
            if "ConsumerInfo" in document:
                self.consumers.append(_key(document["ConsumerInfo"]["consumerId"]))
            else:
                self.consumers.remove(_key(document["RemoveInfo"]["objectId"]))


def _key(id):
    return id["connectionId"], id["value"]


def what_a_bridge_hears(node, client, destination):
    """Until it knows all."""
    node.look(lambda: [setattr(each, "bridge", "other") for each in node.node.broker.clients.values()])
    topics = [f"ActiveMQ.Advisory.{event}.Queue.{destination}" for event in ("Consumer", "BridgeConsumer")]
    client.subscribe("/topic/" + ",/topic/".join(topics), transformation="jms-advisory-json")
    heard = []
    while "AllConsumers" not in heard:
        heard += json.loads(client.take()[0].body)
    client.leave()
    return heard


def test_who_listens_hears_of_consumers_at_other_nodes_that_are_there_come_go_and_die_with_their_node(
    broker, client, name
):
    there = client("b")
    there.subscribe(f"/queue/{name}", id="1")
    assert what_a_bridge_hears(broker["a"], client("a"), name) == ["ConsumerInfo", "AllConsumers"]
    listener = Listener(client("a"), name)
    wait_until(lambda: listener.hear() == 1, "the consumer that was there before")
    there.subscribe(f"/queue/{name}", id="2")
    wait_until(lambda: listener.hear() == 2, "one that came")
    second = Listener(client("a"), name)
    wait_until(lambda: second.hear() == 2, "the same, for who listens later")
    there.unsubscribe(id="1")
    wait_until(lambda: listener.hear() == second.hear() == 1, "one that went")
    broker.crash("b")
    wait_until(lambda: listener.hear() == second.hear() == 0, "one whose node died")


def test_what_came_and_went_while_nodes_did_not_reach_each_other_is_told_when_they_do(broker, client, name):
    there = client("b")
    there.subscribe(f"/queue/{name}", id="goes", wait=False)
    there.subscribe(f"/queue/{name}.stays", id="stays")
    goes, stays, comes = (Listener(client("a"), each) for each in (name, f"{name}.stays", f"{name}.comes"))
    wait_until(lambda: goes.hear() == stays.hear() == 1, "those that are there")

    def meanwhile():
        """Between losing the link and having it again b's client does as it likes."""
        links = broker["b"].node.membership._links
        for link in list(links._links.values()):
            link.close()
            links.on_link_down(link)
        client_here = next(each for each in broker["b"].node.broker.clients.values() if "goes" in each.subscriptions)
        broker["b"].node.broker.subscriptions.end(client_here, client_here.subscriptions["goes"])

    broker["b"].look(meanwhile)
    there.subscribe(f"/queue/{name}.comes", id="comes")
    wait_until(lambda: (goes.hear(), stays.hear(), comes.hear()) == (0, 1, 1), "what is so now")
    assert len(stays.consumers) == 1


@pytest.mark.parametrize(
    "body",
    [
        '{"DestinationInfo": {"destination": {"string": "q"}, "operationType": 0}}',
        '{"DestinationInfo": {"destination": {"string": "q", "@class": []}, "operationType": 0}}',
        '{"ConsumerInfo": {"consumerId": {"value": 1}}, "DestinationInfo": 1}',
        "[" * 100_000,
    ],
    ids=["no kind", "a kind that is none", "two at once", "deep"],
)
def test_what_a_client_sends_as_an_advisory_ends_no_link_between_nodes(broker, client, body):
    topic = "/topic/ActiveMQ.Advisory.Queue"
    listener, sender = client("a"), client("b")
    listener.subscribe(topic)
    for each in (body, "next"):
        sender.send(topic, each)
    heard = []
    while "next" not in heard:
        heard += [each.body for each in listener.take()]
    assert body in heard
