"""Test demand through virtual destinations of the other broker, as ActiveMQ's VirtualConsumerDemandTest does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokerapp.model.definitions import CompositeDestination, ForwardTarget, VirtualTopic
from brokerapp.model.destination import Destination
from tests.protocol.networking import bridged, destinations_of, running, to, wait_for_demand, wait_for_no_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

QUEUE, TOPIC = Destination.queue, Destination.topic
FLAGS = {"use_virtual_dest_subs": True, "use_virtual_dest_subs_on_creation": True}
INCLUDED = (TOPIC("news.>"), QUEUE("news.>"))
ASKING = {"useVirtualDestSubs": "true"}


@pytest.fixture(scope="module")
def b(store) -> Iterator[RunningNode]:
    """Where the virtual destinations are: a queue behind one is demand for it."""
    with running(store, **FLAGS) as node:
        yield node


@pytest.fixture(scope="module")
def a(store, b) -> Iterator[RunningNode]:
    """From here messages cross to B."""
    with running(store, replace(to(b.port, **ASKING), dynamically_included=INCLUDED)) as node:
        wait_until(lambda: bridged(node), "the bridge")
        yield node


@pytest.fixture(autouse=True)
def as_before(b) -> Iterator[None]:
    yield
    b.define()


def forwarding(topic: str, *queues: str) -> CompositeDestination:
    return CompositeDestination(TOPIC(f"news.{topic}"), tuple(ForwardTarget(QUEUE(each)) for each in queues))


def make(b: RunningNode, *queues: str) -> None:
    for each in queues:
        b.ask(lambda admin, each=each: admin.create(QUEUE(each)))


def publish(connect, a: RunningNode, topic: str) -> None:
    client = connect(port=a.port)
    client.send(f"/topic/news.{topic}", topic, persistent="true")
    client.leave()


@pytest.mark.scenario("VD-01")
def test_each_queue_of_a_virtual_topic_is_demand_for_its_topic_and_for_no_other(a, b, connect, name):
    b.define(VirtualTopic("news.>", prefix="For.*."))
    queues = {each: f"For.X.news.{name}.{each}" for each in ("1", "2")}
    make(b, *queues.values())
    wait_for_demand(a, *[f"topic://news.{name}.{each}" for each in queues])
    for each in "321":
        publish(connect, a, f"{name}.{each}")
    for each, queue in queues.items():
        wait_until(lambda queue=queue, each=each: b.bodies(queue) == [f"{name}.{each}"], f"one in {queue}")
    assert f"topic://news.{name}.3" not in destinations_of(a)


@pytest.mark.scenario("VD-05", "VD-12")
def test_a_composite_that_is_not_included_adds_nothing_and_one_of_queues_counts_as_one_of_topics(a, b, connect, name):
    other = CompositeDestination(TOPIC(f"other.{name}"), (ForwardTarget(QUEUE(name)),))
    source = CompositeDestination(QUEUE(f"news.{name}"), (ForwardTarget(QUEUE(name)),))
    b.define(forwarding(name, name), other, source)
    make(b, name)
    wait_for_demand(a, f"topic://news.{name}", f"queue://news.{name}")
    assert f"topic://other.{name}" not in destinations_of(a)
    sender = connect(port=a.port)
    for destination in (f"/topic/other.{name}", f"/topic/news.{name}", f"/queue/news.{name}"):
        sender.send(destination, destination, persistent="true")
    wait_until(lambda: sorted(b.bodies(name)) == [f"/queue/news.{name}", f"/topic/news.{name}"], "one of each")


@pytest.mark.scenario("VD-06", "VD-11")
@pytest.mark.parametrize("why", ["not on creation", "excluded"])
def test_no_queue_is_demand_for_what_is_excluded_nor_where_only_consumers_count(store, connect, name, why):
    flags = {"use_virtual_dest_subs": True, "use_virtual_dest_subs_on_creation": why == "excluded"}
    excluded = (TOPIC(f"news.{name}"),) if why == "excluded" else ()
    with (
        running(store, **flags) as b,
        running(store, replace(to(b.port, **ASKING), dynamically_included=INCLUDED, excluded=excluded)) as a,
    ):
        wait_until(lambda: bridged(a), "the bridge")
        b.define(forwarding(name, name), forwarding(f"{name}.seen", f"{name}.seen"))
        make(b, name)
        connect(port=b.port).subscribe(f"/queue/{name}.seen")
        wait_for_demand(a, f"topic://news.{name}.seen")  # who consumes counts
        assert destinations_of(a) == [f"topic://news.{name}.seen"]


@pytest.mark.scenario("VD-07")
def test_as_long_as_one_queue_is_left_behind_a_composite_messages_cross_for_it(a, b, connect, name):
    one, other = f"{name}.one", f"{name}.other"
    b.define(forwarding(name, one, other))
    make(b, one, other)
    wait_for_demand(a, f"topic://news.{name}")
    publish(connect, a, name)
    wait_until(lambda: (b.depth(one), b.depth(other)) == (1, 1), "a copy in each")
    b.define(forwarding(name, other))
    publish(connect, a, name)
    wait_until(lambda: (b.depth(one), b.depth(other)) == (1, 2), "one in that which is left")
    b.ask(lambda admin: admin.delete(QUEUE(one)))
    wait_for_demand(a, f"topic://news.{name}")
    b.ask(lambda admin: admin.delete(QUEUE(other)))
    wait_for_no_demand(a, f"topic://news.{name}")


@pytest.mark.scenario("VD-08")
def test_of_two_composites_to_one_queue_the_one_that_stays_keeps_its_demand(a, b, connect, name):
    goes, stays = f"{name}.goes", f"{name}.stays"
    b.define(forwarding(goes, name), forwarding(stays, name))
    make(b, name)
    wait_for_demand(a, f"topic://news.{goes}", f"topic://news.{stays}")
    b.define(forwarding(stays, name))
    wait_for_no_demand(a, f"topic://news.{goes}")
    for each in (goes, stays):
        publish(connect, a, each)
    wait_until(lambda: b.bodies(name) == [stays], "what was sent to the one that stays")


@pytest.mark.scenario("VD-09")
def test_a_composite_that_is_defined_when_its_queue_is_there_already_is_demand_at_once(a, b, connect, name):
    make(b, name)
    b.define(forwarding(name, name))
    wait_for_demand(a, f"topic://news.{name}")
    publish(connect, a, name)
    wait_until(lambda: b.depth(name) == 1, "the message")


@pytest.mark.scenario("VD-03")
def test_demand_by_force_durable_keeps_what_is_sent_while_the_link_is_down(store, b, connect, name):
    forced = Destination.parse(f"topic://news.{name}?forceDurable=true")
    with running(store, replace(to(b.port, **ASKING), dynamically_included=(forced,))) as a:
        b.define(forwarding(name, name))
        wait_until(lambda: bridged(a), "the bridge")
        make(b, name)
        wait_for_demand(a, f"topic://news.{name}")
        a.ask(lambda admin: admin.networks.stop("bridge"))
        publish(connect, a, name)
        assert b.depth(name) == 0
        a.ask(lambda admin: admin.networks.start("bridge"))
        wait_until(lambda: b.depth(name) == 1, "what was kept")


@pytest.mark.scenario("VD-04")
@pytest.mark.parametrize("consumes", [False, True])
def test_who_listens_late_is_told_once_what_is_demanded_already_and_nobody_else_is(b, connect, name, consumes):
    about = f"/topic/ActiveMQ.Advisory.VirtualDestination.Consumer.Topic.news.{name}"
    early, late = connect(port=b.port), connect(port=b.port)
    early.subscribe(about)
    b.define(forwarding(name, name))
    if consumes:  # the queue comes to be with it, and each is a cause
        connect(port=b.port).subscribe(f"/queue/{name}")
    else:
        make(b, name)
    causes = 2 if consumes else 1
    assert len(early.take(causes)) == causes
    late.subscribe(about)
    assert len(late.take(causes)) == causes
    assert late.has_no_more()
    assert early.has_no_more()
