"""Test that a NACK for a queue of another node is complete when its receipt arrives."""

from dataclasses import replace
from functools import partial

import pytest

from brokerapp.model.commands import NackCommand
from brokerapp.model.definitions import RedeliveryPolicy, RedeliverySettings
from brokerapp.model.destination import Destination
from tests.nodes.links.test_lost_links import without_links
from tests.waiting import wait_until

DLQ = "ActiveMQ.DLQ"


@pytest.fixture
def queue(broker, name):
    """A queue at home at a."""
    return broker.queue_at("a", name)


@pytest.fixture
def taker(queue, client):
    """A consumer of that queue at b, which gets one message after the other."""
    taker = client("b")
    taker.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    for body in ("bad", "worse", "good"):
        taker.send(f"/queue/{queue}", body, persistent="true")
    return taker


def dead(broker, queue):
    """Which of a queue's messages are dead letters."""
    found = broker.admin(lambda admin: admin.browse(Destination.queue(DLQ), limit=1000)).messages
    return [each.body.decode() for each in found if each.original_destination == f"/queue/{queue}"]


def test_without_a_link_to_the_home_it_is_a_dead_letter_when_its_receipt_comes_and_comes_no_more(broker, queue, taker):
    taker.nack(*taker.take())  # all nodes know of the queue of dead letters from now on
    message = taker.take()[0]
    without_links(broker["b"], True)
    try:
        taker.nack(message)
        assert dead(broker, queue) == ["bad", "worse"]
        assert broker.depth(queue) == 1
    finally:
        without_links(broker["b"], False)
    [message] = taker.take()
    assert (message.body, message.headers.get("redelivered")) == ("good", None)
    taker.ack(message)
    wait_until(lambda: broker["a"].depth(queue) == 0, "the home knows")


def test_the_home_tells_operators_of_it_once(broker, queue, taker):
    for _ in range(2):
        taker.nack(*taker.take())
    taker.ack(*taker.take())

    def numbers():
        _, told, _ = broker.admin(lambda admin: admin.stats())
        return [
            (each.QueueSize, each.EnqueueCount, each.DequeueCount, each.DeadLetterCount, each.InFlightCount)
            for each in told
            if each.destination.name == queue
        ]

    wait_until(lambda: numbers() == [(0, 3, 3, 2, 0)], "the numbers of all nodes together")


@pytest.mark.parametrize("first", ["it is rejected", "the log is taken"])
def test_what_is_rejected_as_its_log_comes_home_is_a_dead_letter_once(broker, client, name, first):
    queue = broker.queue_at("b", name)
    taker = client("b")
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    taker.send(f"/queue/{queue}", "bad", persistent="true")
    [message] = taker.take()
    node = broker["b"].node.broker
    log, homes = node.queues[f"queue://{queue}"], node.placement
    [subscription] = log.consumers

    def between_two_homes():
        """The log is at home here from now on, and what the store knows of it is not read yet; in that moment..."""
        homes.outbound_handoff.on_handed_off(log)
        log.is_remote = True
        log.release_ownership()
        rejects = partial(
            node.rejections.reject,
            subscription.client,
            NackCommand(message.headers["ack"], None, None, None),
        )
        steps = [rejects, homes.handoff_in.take_over]
        for step in steps if first == "it is rejected" else reversed(steps):
            step()

    broker["b"].look(between_two_homes)
    wait_until(lambda: not broker["b"].look(lambda: log.is_remote), "it is taken")
    taker.send(f"/queue/{queue}", "good", persistent="true")
    assert [(each.body, each.headers.get("redelivered")) for each in taker.take()] == [("good", None)]
    assert dead(broker, queue) == ["bad"]
    assert broker["b"].depth(queue) == broker.depth(queue) == 1


def test_the_redelivery_policy_of_its_queue_holds(broker, queue, taker):
    async def define(admin):
        policies = (RedeliveryPolicy(Destination.queue(queue), maximum_redeliveries=1, initial_redelivery_delay=1),)
        now = await admin.definitions()
        return await admin.define(replace(now, redelivery=RedeliverySettings(policies=policies)), "test")

    version = broker.admin(define).version
    for node in "ab":
        broker[node].wait_for_definitions(version)
    taken = []
    for settle in (taker.nack, taker.ack, taker.ack, taker.nack):
        [message] = taker.take()
        taken.append((message.body, message.headers.get("redelivered")))
        settle(message)
    assert taken == [("bad", None), ("worse", None), ("good", None), ("bad", "true")]  # at the end, once
    assert dead(broker, queue) == ["bad"]
