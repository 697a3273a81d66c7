"""Test the virtual selector cache: only messages that an offline consumer selects are stored for it."""

import time
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.model.definitions import VirtualTopic
from brokerapp.model.destination import Destination
from brokerapp.model.settings import SelectorCacheSettings
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


@pytest.fixture
def start(store, monkeypatch, name):
    """Starts nodes with such a cache; one store for all."""
    monkeypatch.setattr("brokerapp.runtime.reporting.node_reports.TICK_SECONDS", 0.1)
    running = []

    def make(selector_aware=True, **settings):
        for each in running:
            each.stop()
        running.clear()
        config = default_config(name.replace("[", "").replace("]", ""), 0)
        config = replace(config, selector_cache=SelectorCacheSettings(**settings))
        running.append(RunningNode(config, store.url))
        running[0].define(VirtualTopic(name="VT.>", selector_aware=selector_aware))
        return running[0]

    yield make
    for each in running:
        each.stop()


QUEUE = "Consumer.A.VT.x"


def publish(node, *colours):
    client = StompClient(node.port)
    for colour in colours:
        client.send("/topic/VT.x", colour, colour=colour, persistent="true")
    client.leave()


def come_and_go(node, selector=None, others=0):
    client = StompClient(node.port)
    client.subscribe(f"/queue/{QUEUE}", **({"selector": selector} if selector else {}))
    client.leave()
    wait_until(lambda: node.numbers(Destination.queue(QUEUE)).ConsumerCount == others, "it is gone")


def remembered(node):
    found = node.ask(lambda admin: admin.selectors())
    return list(found.get(Destination.queue(QUEUE), ()))


@pytest.mark.scenario("VT-12")
def test_what_an_absent_consumer_selected_builds_up_and_nothing_else(start):
    node = start()
    come_and_go(node, "colour = 'red'")
    publish(node, "red", "blue", "red")
    assert node.bodies(QUEUE) == ["red", "red"]
    assert remembered(node) == ["colour = 'red'"]


@pytest.mark.scenario("VT-13")
def test_a_consumer_without_a_selector_is_remembered_as_taking_all(start):
    node = start()
    come_and_go(node)
    publish(node, "red", "blue")
    assert node.bodies(QUEUE) == ["red", "blue"]
    assert remembered(node) == ["TRUE"]


def test_what_is_remembered_survives_a_node_that_dies_without_a_word(start, monkeypatch):
    node = start()
    come_and_go(node, "colour = 'red'")
    monkeypatch.setattr("brokerapp.core.subscriptions.consumers.Consumers.close", lambda self: None)
    node = start()
    publish(node, "red", "blue")
    assert node.bodies(QUEUE) == ["red"]


def test_an_entry_can_be_removed(start):
    node = start()
    come_and_go(node, "colour = 'red'")
    come_and_go(node, "colour = 'blue'")
    assert remembered(node) == ["colour = 'red'", "colour = 'blue'"]
    queue = Destination.queue(QUEUE)
    assert node.ask(lambda admin: admin.delete_selectors(queue, "colour = 'red'"))
    assert not node.ask(lambda admin: admin.delete_selectors(queue, "colour = 'red'"))
    publish(node, "red", "blue")
    assert node.bodies(QUEUE) == ["blue"]
    assert node.ask(lambda admin: admin.delete_selectors(queue))
    assert remembered(node) == []


def test_a_single_selector_replaces_the_one_before_and_wildcards_are_left_out(start):
    node = start(single_selector_per_destination=True, ignore_wildcard_selectors=True)
    come_and_go(node, "colour = 'red'")
    come_and_go(node, "colour = 'blue'")
    come_and_go(node, "colour LIKE 'gr%'")
    assert remembered(node) == ["colour = 'blue'"]
    come_and_go(node)
    assert remembered(node) == ["colour = 'blue'"], "the last without a selector is gone"
    come_and_go(node, "colour LIKE 'g\\_n' ESCAPE '\\'")
    assert len(remembered(node)) == 1


def test_browsers_and_temporary_queues_are_not_remembered(start):
    node = start()
    client = StompClient(node.port)
    client.subscribe(f"/queue/{QUEUE}", browser="true", selector="colour = 'red'")
    client.subscribe("/temp-queue/t", id="t", selector="colour = 'red'")
    assert node.ask(lambda admin: admin.selectors()) == {}
    client.leave()


def test_entries_nobody_uses_expire(start, monkeypatch):
    monkeypatch.setattr("brokerapp.core.subscriptions.selector_memory.EXPIRY_MS", 50)
    node = start(expire_after=300, persist_interval=1)
    staying = StompClient(node.port)
    staying.subscribe(f"/queue/{QUEUE}", selector="colour = 'blue'")
    come_and_go(node, "colour = 'red'", others=1)
    wait_until(lambda: remembered(node) == ["colour = 'blue'"], "the other one is old")
    time.sleep(0.4)
    assert remembered(node) == ["colour = 'blue'"], "one in use does not age"
    staying.leave()
