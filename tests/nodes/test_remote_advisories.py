"""Test when and how a listener of advisories is told of consumers at other nodes."""

from types import SimpleNamespace

import pytest

from brokerapp.model.destination import Destination
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.topics import remote_advisories as module
from brokerapp.nodes.topics.remote_advisories import RemoteAdvisories
from brokerapp.nodes.topics.topic_listeners import TopicListeners
from tests.nodes.parts import peers_of

TOPIC = "ActiveMQ.Advisory.Consumer.Queue.q"
OF_QUEUE, OF_ALL = Destination.topic(TOPIC), Destination.topic("ActiveMQ.Advisory.>")


def consumer(number):
    """What is told of one."""
    return TOPIC, {"ConsumerInfo": {"consumerId": {"connectionId": "c", "sessionId": 1, "value": number}}}


@pytest.fixture
def node():
    """One that knows of another, b, and what it said to that."""
    said, told = [], []
    peers = peers_of("a", ["b"], lambda _session, word, *facts: said.append((word, *facts)))
    requests = NodeRequests(peers=peers)
    listeners = TopicListeners(peers=peers, requests=requests, retained=None, events=None)
    advisories = SimpleNamespace(
        local_consumers=lambda: [consumer(number) for number in range(5)],
        publish_here=lambda topic, document: told.append(document),
        publish_consumer_gone=lambda topic, id: told.append(id),
    )
    remote = RemoteAdvisories(peers=peers, requests=requests, listeners=listeners, advisories=advisories)
    return SimpleNamespace(remote=remote, listeners=listeners, requests=requests, said=said, told=told)


def asked(node):
    """The number of what it asked the other node for last, if that is its consumers."""
    return next((facts[0] for word, *facts in node.said if word is PeerMessageType.GET_CONSUMERS), None)


def test_who_listens_knows_all_consumers_when_all_nodes_have_told_of_theirs(node):
    done = []
    node.listeners.add(OF_QUEUE)
    node.remote.listen([OF_QUEUE], lambda: done.append(len(node.told)))
    node.requests.on_confirmed("b", 1, "")  # that somebody listens
    node.remote.on_consumers("b", [consumer(1)], False)
    node.remote.on_consumers("b", [consumer(2)], True)
    assert done == []
    node.requests.on_confirmed("b", asked(node), "")
    assert done == [2]


@pytest.mark.parametrize(
    ("topic", "asks"), [(OF_QUEUE, True), (OF_ALL, True), (Destination.topic("ActiveMQ.Advisory.Connection"), False)]
)
def test_others_are_asked_for_consumers_when_one_begins_to_listen_to_them_and_not_again_for_the_next(node, topic, asks):
    node.listeners.add(topic)
    node.remote.listen([topic], lambda: None)
    assert (asked(node) is not None) == asks
    node.said.clear()
    node.listeners.add(topic)
    node.remote.listen([topic], lambda: None)
    assert asked(node) is None


def test_consumers_are_told_in_parts(node, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SIZE", 2)
    node.remote.on_requested("b", 7)
    *parts, known = node.said
    assert [(len(rows), last) for _, rows, last in parts] == [(2, False), (2, False), (1, True)]
    assert known == (PeerMessageType.CONFIRMED, 7, "")


def test_of_a_list_that_broke_off_nothing_counts(node):
    node.remote.on_consumers("b", [consumer(1)], False)
    node.remote.introduce("b")
    node.remote.on_consumers("b", [], True)
    assert node.told == []
