"""Test when and how a listener of advisories is told of consumers at other nodes."""

from types import SimpleNamespace

import pytest

from brokerapp.core.advisories import remote_advisories as module
from brokerapp.core.advisories.remote_advisories import RemoteAdvisories
from brokerapp.model.destination import Destination
from brokerapp.nodes.links.propagation import Propagation
from brokerapp.nodes.links.protocol import PeerMessageType

TOPIC = "ActiveMQ.Advisory.Consumer.Queue.q"
OF_QUEUE, OF_ALL = Destination.topic(TOPIC), Destination.topic("ActiveMQ.Advisory.>")


def consumer(number):
    """What is told of one."""
    return TOPIC, {"ConsumerInfo": {"consumerId": {"connectionId": "c", "sessionId": 1, "value": number}}}


@pytest.fixture
def node():
    """One that knows of another, b, and what it said to that."""
    said, told = [], []
    homes = SimpleNamespace(other_sessions=["b"], send=lambda _session, word, *facts: said.append((word, *facts)))
    homes.propagation, homes.selector_interest = Propagation(None, homes), None
    here = [consumer(number) for number in range(5)]
    elsewhere = RemoteAdvisories(placement=homes, here=lambda: here, tell=lambda topic, document: told.append(document))
    return SimpleNamespace(elsewhere=elsewhere, known=homes.propagation, said=said, told=told)


def asked(node):
    """The number of what it asked the other node for last, if that is its consumers."""
    return next((facts[0] for word, *facts in node.said if word is PeerMessageType.GET_CONSUMERS), None)


def test_who_listens_knows_all_consumers_when_all_nodes_have_told_of_theirs(node):
    done = []
    node.known.add_listener(OF_QUEUE)
    node.elsewhere.listen([OF_QUEUE], lambda: done.append(len(node.told)))
    node.known.on_confirmed("b", 1, "")  # that somebody listens
    node.elsewhere.heard_all("b", [consumer(1)], last=False)
    node.elsewhere.heard_all("b", [consumer(2)], last=True)
    assert done == []
    node.known.on_confirmed("b", asked(node), "")
    assert done == [2]


@pytest.mark.parametrize(
    ("topic", "asks"), [(OF_QUEUE, True), (OF_ALL, True), (Destination.topic("ActiveMQ.Advisory.Connection"), False)]
)
def test_others_are_asked_for_consumers_when_one_begins_to_listen_to_them_and_not_again_for_the_next(node, topic, asks):
    node.known.add_listener(topic)
    node.elsewhere.listen([topic], lambda: None)
    assert (asked(node) is not None) == asks
    node.said.clear()
    node.known.add_listener(topic)
    node.elsewhere.listen([topic], lambda: None)
    assert asked(node) is None


def test_consumers_are_told_in_parts(node, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 2)
    node.elsewhere.wanted("b", 7)
    *parts, known = node.said
    assert [(len(rows), last) for _, rows, last in parts] == [(2, False), (2, False), (1, True)]
    assert known == (PeerMessageType.CONFIRMED, 7, "")


def test_of_a_list_that_broke_off_nothing_counts(node):
    node.elsewhere.heard_all("b", [consumer(1)], last=False)
    node.elsewhere.ask("b")
    node.elsewhere.heard_all("b", [], last=True)
    assert node.told == []
