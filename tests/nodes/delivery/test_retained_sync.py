"""Test how a joining node learns the retained messages of topics, page by page."""

import asyncio
from types import SimpleNamespace

import pytest

from brokerapp.core.subscriptions.retroactive import RetroactiveRecovery
from brokerapp.model.definitions import RecoveryPolicy
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.topics import retained_sync
from brokerapp.nodes.topics.retained_sync import RetainedSync, RetainedSyncSession
from tests.broker_parts import part_of
from tests.nodes.parts import peers_of

POLICY = SimpleNamespace(recovery=RecoveryPolicy("fixedCount", maximum_size=100))
TOPICS = [Destination.topic(each) for each in "xy"]


class Node:
    """One of three, that hears what the others say a moment later."""

    def __init__(self, nodes, session, joining=False):
        self.nodes, self.session, self.told, self.mute = nodes, session, [], False
        topology = SimpleNamespace(remembers=True, policy_for=lambda _topic: POLICY)
        self.recovery = part_of(
            RetroactiveRecovery, routing=SimpleNamespace(table=topology),
            timers=SimpleNamespace(call_every=lambda *_: None),
        )  # fmt: skip
        others = [each for each in "abc" if each != session]
        self.peers = peers_of(session, others, self.tell)
        self.peers.set_joining(is_joining=joining)
        self.known = NodeRequests(peers=self.peers)
        self.past = RetainedSync(peers=self.peers, requests=self.known, retained=self.recovery)

    def tell(self, session, word, *facts):
        self.told.append((word, *facts))
        if not self.mute:
            other = self.nodes[session]
            hear = {
                PeerMessageType.GET_RETAINED: other.past.on_page_requested,
                PeerMessageType.RETAINED: other.past.on_page,
                PeerMessageType.CONFIRMED: other.known.on_confirmed,
            }
            asyncio.get_running_loop().call_soon(hear[word], self.session, *facts)

    def remember(self, count):
        for topic in TOPICS:
            for number in range(count):
                id = f"{topic.name}{number}"
                self.recovery.published([Message(id, f"message-id:{id}\n".encode(), b"body")], RoutedCopy(topic))

    @property
    def pages(self):
        """How many messages were on each that it told."""
        return [len(facts[0]) for word, *facts in self.told if word is PeerMessageType.RETAINED]

    @property
    def remembers(self):
        return [kept.message.id for _, kept, _ in self.recovery.all()]


@pytest.fixture
def nodes():
    """Of which `a` joins."""
    found = {}
    found.update({each: Node(found, each, joining=each == "a") for each in "abc"})
    return found


def learn(*joining):
    async def all_learn():
        async with asyncio.timeout(10):
            await asyncio.gather(*(each.past.fetch() for each in joining))

    asyncio.run(all_learn())


def test_of_two_that_join_at_once_both_learn_from_the_one_that_was_there(nodes):
    nodes["b"].peers.set_joining(is_joining=True)
    nodes["c"].remember(2)
    learn(nodes["a"], nodes["b"])
    assert nodes["a"].remembers == nodes["b"].remembers == ["x0", "x1", "y0", "y1"]


def test_it_is_told_page_by_page_and_no_more_than_asked_for(nodes, monkeypatch):
    monkeypatch.setattr(retained_sync, "PAGE_BYTES", 600)
    nodes["b"].remember(3)
    nodes["c"].remember(3)
    learn(nodes["a"])
    assert nodes["a"].remembers == ["x0", "x1", "x2", "y0", "y1", "y2"]
    assert nodes["b"].pages == [2, 2, 2, 0]
    assert nodes["c"].pages == []
    assert nodes["b"].past._sessions == {}


def test_where_one_goes_before_it_has_told_all_the_next_one_is_asked(nodes, monkeypatch):
    monkeypatch.setattr(retained_sync, "PAGE_BYTES", 1)
    joining, goes, stays = nodes.values()
    goes.remember(3)
    stays.remember(3)
    heard = joining.past.on_page

    def first_page(session, rows):
        heard(session, rows)
        goes.mute, joining.past.on_page = True, heard
        asyncio.get_running_loop().call_later(0.01, joining.known.on_member_lost, goes.session)

    joining.past.on_page = first_page
    learn(joining)
    assert joining.remembers == stays.remembers
    assert stays.pages == [1] * 6 + [0]


def test_a_page_that_was_lost_with_its_link_is_told_again():
    telling = RetainedSyncSession(iter([["first"], ["second"]]))
    assert [telling.page_at(each) for each in (0, 0, 1, 1, 2, 2)] == [["first"]] * 2 + [["second"]] * 2 + [[], []]
