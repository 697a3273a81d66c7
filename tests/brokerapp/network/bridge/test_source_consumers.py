"""Test the subscriptions of a bridge at its source."""

from types import SimpleNamespace

import pytest

from brokerapp.model.destination import Destination
from brokerapp.network.bridge.demand import DemandSubscription
from brokerapp.network.bridge.source_consumers import SourceConsumers
from brokerapp.network.options.definition import NetworkConnector
from brokerapp.network.options.options import options_of

TOPIC = DemandSubscription("1", Destination.topic("news"), None, 0, ("there",), durable=True)


@pytest.fixture
def source():
    """The link to the source: what was subscribed, what ended, and what is to be done later."""
    said = SimpleNamespace(begun=[], ended=[], due=[], delete_durable=lambda _name: None)
    said.subscribe = lambda wanted, *_: said.begun.append(wanted.id)
    said.unsubscribe = said.ended.append
    said.call_later = lambda _seconds, call: said.due.append(call)
    return said


@pytest.fixture
def intake(source):
    terms, _ = options_of(NetworkConnector("near", "static:(tcp://127.0.0.1:1)"))
    return SourceConsumers(source, "here", "there", terms, "out:", lambda _message: None)


def test_what_was_set_aside_is_tried_again_also_when_some_of_it_was_under_way_for_long(source, intake):
    intake.begin(TOPIC)
    intake.suspend(TOPIC, "no right to write")
    source.due.pop()()
    assert source.begun == ["out:1"]  # it waits for what is under way
    intake.unsubscribe_idle(lambda: ())
    source.due.pop()()
    assert (source.begun, source.ended, intake.suspended) == (["out:1", "out:1"], ["out:1"], {})


def test_a_subscription_that_the_source_refuses_is_tried_again_unless_nobody_wants_it_any_more(source, intake):
    wanted = {TOPIC.id: TOPIC}
    intake.begin(TOPIC)
    assert intake.is_subscription_receipt("begun:1")
    assert intake.on_refused("begun:1", wanted, "it has a consumer already") is TOPIC
    assert intake.suspended == {"1": "it has a consumer already"}
    source.due.pop()()
    assert (source.begun, source.ended, intake.suspended) == (["out:1", "out:1"], [], {})
    assert intake.on_refused("begun:1", {}, "it has a consumer already") is None
    intake.on_refused("begun:1", wanted, "it has a consumer already")
    intake.end(TOPIC)
    source.due.pop()()
    assert source.begun == ["out:1", "out:1"]


def test_nothing_is_remembered_of_a_subscription_that_is_over(source, intake):
    intake.begin(TOPIC)
    assert intake.is_durable("out:1")
    intake.end(TOPIC)
    assert intake.is_durable("out:1")  # what comes until then
    intake.unsubscribe_idle(lambda: ())
    assert not intake.is_durable("out:1")
