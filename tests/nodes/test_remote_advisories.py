"""Test when and how a listener of advisories is told of consumers at other nodes."""

import json
from types import SimpleNamespace

import pytest

from brokerapp.engine.routing.advisory_subjects import subject_of
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
    events = SimpleNamespace(topic_subscribers_changed=lambda: None)
    listeners = TopicListeners(peers=peers, requests=requests, retained=None, events=events)
    advisories = SimpleNamespace(
        existing_here=lambda: [consumer(number) for number in range(5)],
        exists_here=lambda document: False,
        publish_here=lambda topic, document: told.append(document),
    )
    remote = RemoteAdvisories(peers=peers, requests=requests, listeners=listeners, advisories=advisories)
    return SimpleNamespace(
        advisories=advisories, remote=remote, listeners=listeners, requests=requests, said=said, told=told
    )


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
    ("topic", "asks"), [(OF_QUEUE, True), (OF_ALL, True), (Destination.topic("ActiveMQ.Advisory.MasterBroker"), False)]
)
def test_others_are_asked_what_exists_when_one_begins_to_listen_to_that_and_not_again_for_the_next(node, topic, asks):
    node.listeners.add(topic)
    node.remote.listen([topic], lambda: None)
    assert (asked(node) is not None) == asks
    node.said.clear()
    node.listeners.add(topic)
    node.remote.listen([topic], lambda: None)
    assert asked(node) is None


def test_what_is_listened_to_is_told_in_parts(node, monkeypatch):
    monkeypatch.setattr(module, "BATCH_SIZE", 2)
    node.listeners.on_listeners("b", 6, [("topic", TOPIC, True)])
    node.said.clear()
    node.remote.on_requested("b", 7)
    *parts, known = node.said
    assert [(len(rows), last) for _, rows, last in parts] == [(2, False), (2, False), (1, True)]
    assert known == (PeerMessageType.CONFIRMED, 7, "")


def test_of_a_list_that_broke_off_nothing_counts(node):
    node.remote.on_consumers("b", [consumer(1)], False)
    node.remote.introduce("b")
    node.remote.on_consumers("b", [], True)
    assert node.told == []


def test_nothing_is_told_to_a_node_where_nobody_listens(node):
    node.remote.on_requested("b", 7)
    assert node.said == [(PeerMessageType.CONSUMERS, [], True), (PeerMessageType.CONFIRMED, 7, "")]


def test_what_nobody_listens_to_any_more_is_forgotten_and_told_again_to_the_next_who_does(node):
    for _ in range(2):
        node.listeners.add(OF_QUEUE)
        node.remote.on_consumers("b", [consumer(1)], True)
        node.listeners.remove(OF_QUEUE)
        node.remote.on_listener_removed(OF_QUEUE)
        assert node.remote.known(f"{TOPIC}.>") == []
    assert node.told == [consumer(1)[1]] * 2


def test_what_says_nothing_that_advisories_say_is_passed_on(node):
    for body in (b"", b"no JSON", b"[]", b"{}", b'{"ConsumerInfo": 1}', b'{"DestinationInfo": {}}'):
        assert node.remote.on_advisory("b", TOPIC, body)


def ended(number):
    """What is told when one ended."""
    return {"RemoveInfo": {"objectId": {"@class": "ConsumerId", "connectionId": "c", "sessionId": 1, "value": number}}}


def tell(node, document):
    """Let node b publish an advisory; return whether listeners here are told of it."""
    return node.remote.on_advisory("b", TOPIC, json.dumps(document).encode())


def test_the_end_of_a_consumer_is_told_unless_its_client_has_it_at_this_node_by_now(node):
    node.listeners.add(OF_QUEUE)
    for number in (1, 2):
        assert tell(node, consumer(number)[1])
    node.advisories.exists_here = lambda document: subject_of(document).id == "c:1:1"
    assert [tell(node, ended(number)) for number in (1, 2)] == [False, True]


def test_what_ended_with_a_node_is_told_but_for_what_its_client_has_at_this_node_by_now(node):
    node.listeners.add(OF_QUEUE)
    node.remote.on_consumers("b", [consumer(1), consumer(2)], True)
    node.told.clear()
    node.advisories.exists_here = lambda document: subject_of(document).id == "c:1:1"
    node.remote.on_member_removed("b")
    assert [subject_of(document) for document in node.told] == [("c:1:2", False)]
