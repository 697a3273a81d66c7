"""Test which clients may create destinations, how many, and when they are deleted."""

import itertools
from contextlib import contextmanager
from dataclasses import replace

import pytest

from brokerapp.config import default_config
from brokerapp.config.reader import parse_config
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.errors import BrokerError, InvalidDestination, LimitExceeded, RequestRefused
from brokerapp.model.definitions import CompositeDestination, ForwardTarget, PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from tests.protocol.clients import StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

queue, topic, parse = Destination.queue, Destination.topic, Destination.parse
_numbers = itertools.count(1)


@contextmanager
def running(store, *policies, name=None, composites=(), **broker):
    """A node with these policies; the attributes are those of the broker."""
    config = default_config(name or f"life-cycle-{next(_numbers)}", 0)
    definitions = config.definitions
    definitions = replace(
        definitions, policies=policies, virtual_destinations=(*definitions.virtual_destinations, *composites)
    )
    node = RunningNode(replace(config, definitions=definitions, **broker), store.url)
    try:
        yield node
    finally:
        node.stop()


def exists(node, destination):
    return node.look(lambda: node.node.broker.creation.exists(destination))


def gone(node, *destinations):
    wait_until(lambda: not any(exists(node, each) for each in destinations), f"the end of {destinations}")


def refused(client, command, destination, **headers):
    client.frame(command, destination=destination, wait=False, **headers)
    return client.error().headers["message"]


GONE_SOON = {"gc_inactive_destinations": True, "inactive_timeout_before_gc": 100}
SWEEPS = {"schedule_period_for_destination_purge": 20}


# -- removal


def test_idle_queues_and_topics_are_removed_and_come_back_when_named(store):
    policies = [PolicyEntry(parse(f"{kind}://gc.>"), **GONE_SOON) for kind in ("queue", "topic")]
    with running(store, *policies, **SWEEPS) as node:
        client = StompClient(node.port)
        client.send("/queue/gc.q", "m", persistent="true")
        client.send("/topic/gc.t", "m")
        client.send("/queue/other", "m", persistent="true")
        client.subscribe("/queue/gc.q,/queue/other")
        client.take(2)
        client.unsubscribe()
        gone(node, queue("gc.q"), topic("gc.t"))
        assert exists(node, queue("other"))
        client.send("/queue/gc.q", "again", persistent="true")  # by the connection that sent there before
        assert node.bodies("gc.q") == ["again"]
        assert node.numbers(queue("gc.q")).ProducerCount == 1


def test_neither_messages_nor_consumers_nor_subscribers_nor_declarations_are_removed(store):
    policies = [PolicyEntry(parse(f"{kind}://>"), **GONE_SOON) for kind in ("queue", "topic")]
    with running(store, *policies, destinations=(queue("declared"), topic("declared")), **SWEEPS) as node:
        client = StompClient(node.port, **{"client-id": "c"})
        client.send("/queue/full", "m", persistent="true")
        client.subscribe("/queue/consumed", id="1")
        client.subscribe("/topic/heard", id="2")
        client.subscribe("/topic/kept", id="3", **{"activemq.subscriptionName": "kept"})
        client.unsubscribe("3")
        client.send("/topic/kept", "m")
        node.ask(lambda admin: admin.create(topic("made")))
        client.send("/queue/idle,/topic/idle", "m")
        client.subscribe("/queue/idle", id="4")
        client.take()
        client.unsubscribe("4")
        gone(node, queue("idle"), topic("idle"))
        for each in (
            queue("full"), queue("consumed"), topic("heard"), topic("kept"), queue("declared"), topic("declared"),
            topic("made"),
        ):  # fmt: skip
            assert exists(node, each), each


def test_a_removed_consumer_queue_collects_no_more(store):
    policy = PolicyEntry(queue("Consumer.*.VirtualTopic.>"), **GONE_SOON)
    with running(store, policy, **SWEEPS) as node:
        client = StompClient(node.port)
        client.subscribe("/queue/Consumer.A.VirtualTopic.T")
        client.unsubscribe()
        client.send("/topic/VirtualTopic.T", "kept", persistent="true")
        assert node.bodies("Consumer.A.VirtualTopic.T") == ["kept"]
        client.subscribe("/queue/Consumer.A.VirtualTopic.T")
        assert client.bodies() == ["kept"]
        client.unsubscribe()
        gone(node, queue("Consumer.A.VirtualTopic.T"))
        client.send("/topic/VirtualTopic.T", "missed", persistent="true")
        assert not exists(node, queue("Consumer.A.VirtualTopic.T"))


def test_what_is_used_again_in_time_stays(store):
    policy = PolicyEntry(topic(">"), gc_inactive_destinations=True, inactive_timeout_before_gc=1_000_000)
    with running(store, policy, **SWEEPS) as node:
        client = StompClient(node.port)
        client.send("/topic/t", "m")
        idle_since = lambda: node.look(lambda: node.node.broker.idle_destinations._idle.get(topic("t")))  # noqa: E731
        wait_until(idle_since, "a first look")
        client.send("/topic/t", "m")
        wait_until(lambda: idle_since()[1] == 2, "a new beginning")


def test_a_sweep_removes_no_more_than_it_may_and_looks_at_many_in_steps(store, monkeypatch):
    monkeypatch.setattr("brokerapp.core.destinations.idle_destinations.STEP", 2)
    policy = PolicyEntry(queue(">"), gc_inactive_destinations=True, inactive_timeout_before_gc=0)
    with running(store, policy, max_purged_destinations_per_sweep=3) as node:
        broker = node.node.broker
        client = StompClient(node.port)
        for number in range(7):
            client.subscribe(f"/queue/{number}", id=str(number))
        left = lambda: node.look(lambda: len(list(broker.queues)))  # noqa: E731
        client.leave()
        wait_until(lambda: left() == 7 and not node.look(lambda: broker.clients), "the end of the client")
        for expected in (4, 1, 0):
            node.look(broker.idle_destinations.sweep)
            wait_until(lambda expected=expected: left() == expected, f"{expected} left")


def test_numbers_of_topics_without_listeners_are_bounded(store, monkeypatch):
    monkeypatch.setattr("brokerapp.core.dispatch.counters.MAX_DESTINATIONS", 10)
    with running(store) as node:
        client = StompClient(node.port)
        client.subscribe("/topic/heard")
        for number in range(30):
            client.send(f"/topic/{number}", "m")
        node.look(node.node.broker.idle_destinations.bound_topics)
        known = [each for each in node.look(lambda: node.node.broker.counters.destinations()) if each.kind == "topic"]
        assert len(known) <= 10
        assert topic("heard") in known
        assert topic("29") in known


# -- creation


@pytest.mark.scenario("F14")
def test_only_operators_create_what_a_policy_leaves_to_them(store):
    policies = [PolicyEntry(parse(f"{kind}://>"), auto_create=False) for kind in ("queue", "topic")]
    open_ones = PolicyEntry(queue("open.>"))
    forward = CompositeDestination(queue("entry"), (ForwardTarget(queue("leg")),))
    with running(store, *policies, open_ones, composites=(forward,), destinations=(queue("named"),)) as node:
        client = StompClient(node.port)
        for text in ("/queue/q", "/topic/t", "/queue/a::q", "/queue/named,/queue/q"):
            for command in ("SEND", "SUBSCRIBE"):
                assert "allows only operators to create it" in refused(client, command, text, id="x")
            later = refused(client, "SEND", text, AMQ_SCHEDULED_DELAY="100")
            assert "allows only operators to create it" in later
        assert not exists(node, queue("q"))
        client.send("/queue/open.q", "m")
        client.send("/queue/named", "m")
        client.send("/queue/entry", "m", persistent="true")  # its legs are the operators' doing, too
        assert node.bodies("leg") == ["m"]
        client.send("/temp-queue/mine", "m")
        client.subscribe("/queue/no*.such.*", id="pattern")
        for each in (queue("q"), topic("t")):
            node.ask(lambda admin, each=each: admin.create(each))
            client.send(each.stomp, "m")
        assert client.errors.empty()


def test_operators_create_a_queue_called_like_a_pattern_only_where_that_collects_what_virtual_topics_feed(store):
    with running(store) as node:
        node.ask(lambda admin: admin.create(queue("Consumer.A.VirtualTopic.>")))
        StompClient(node.port).send("/topic/VirtualTopic.orders", "m", persistent="true")
        assert node.bodies("Consumer.A.VirtualTopic.>") == ["m"]
        for each in (queue("Orders.>"), topic("VirtualTopic.>")):
            with pytest.raises(BrokerError, match="makes a pattern, which names many"):
                node.ask(lambda admin, each=each: admin.create(each))


def test_operators_send_and_move_messages_to_a_queue_called_like_a_pattern_only_where_they_may_create_it(store):
    def send(to: str) -> dict:
        return node.ask(lambda admin: admin.send(OperatorMessage(to, body=b"m").to_json(), 1, "kim"))

    with running(store) as node:
        assert send("/queue/Consumer.A.VirtualTopic.>")["queues"] == ["queue://Consumer.A.VirtualTopic.>"]
        send("plain")
        for each in ("Orders.*", "y.>", "/queue/plain,/queue/y.>", "/topic/prices.>"):
            with pytest.raises(InvalidDestination, match="makes a pattern, which names many"):
                send(each)
        with pytest.raises(BrokerError, match="makes a pattern, which names many"):
            node.ask(lambda admin: admin.move(queue("plain"), queue("y.>")))
        assert not any(exists(node, each) for each in (queue("Orders.*"), queue("y.>")))
        assert node.bodies("plain") == ["m"]


def test_dead_letters_find_their_queue_where_clients_may_create_none(store):
    with running(store, PolicyEntry(queue(">"), auto_create=False), destinations=(queue("q"),)) as node:
        client = StompClient(node.port)
        client.subscribe("/queue/q", ack="client")
        client.send("/queue/q", "m", persistent="true")
        client.nack(client.take()[0])
        assert node.bodies("ActiveMQ.DLQ") == ["m"]


def test_what_operators_create_survives_a_restart_until_they_delete_it(store):
    policies = [PolicyEntry(parse(f"{kind}://>"), auto_create=False) for kind in ("queue", "topic")]
    made = (queue("q"), topic("t"))
    with running(store, *policies, name="life-cycle-restart") as node:
        for each in made:
            node.ask(lambda admin, each=each: admin.create(each))
    with running(store, *policies, name="life-cycle-restart") as node:
        for each in made:
            assert exists(node, each)
            assert node.look(lambda each=each: node.node.broker.creation.is_declared(each))
            node.ask(lambda admin, each=each: admin.delete(each))
            assert not exists(node, each)
    with running(store, *policies, name="life-cycle-restart") as node:
        assert not any(exists(node, each) for each in made)


@pytest.mark.scenario("PO-01")
def test_no_more_destinations_come_into_being_than_a_policy_allows(store):
    policies = [PolicyEntry(parse(f"{kind}://few.>"), max_destinations=2) for kind in ("queue", "topic")]
    with running(store, *policies, PolicyEntry(queue("few.special"))) as node:
        client = StompClient(node.port)
        for kind in ("queue", "topic"):
            for name in ("few.1", "few.2", "many.1", "many.2", "many.3"):
                client.send(f"/{kind}/{name}", "m")
            for command in ("SEND", "SUBSCRIBE"):
                error = refused(client, command, f"/{kind}/few.3", id="x")
                assert f"the policy for {kind}://few.> allows 2 destinations" in error
            client.send(f"/{kind}/few.1", "more")
        client.send("/queue/few.special", "m")  # its own policy sets no limit
        with pytest.raises(LimitExceeded, match="allows 2 destinations"):
            node.ask(lambda admin: admin.create(queue("few.4")))
        node.ask(lambda admin: admin.delete(queue("few.2")))
        node.ask(lambda admin: admin.delete(queue("few.special")))
        client.send("/queue/few.3", "m")
        assert client.errors.empty()


@pytest.mark.scenario("PO-01")
def test_none_come_into_being_where_none_are_allowed(store):
    with running(store, PolicyEntry(queue("none.>"), max_destinations=0)) as node:
        assert "allows 0 destinations" in refused(StompClient(node.port), "SEND", "/queue/none.1")


# -- the start, and names


@pytest.mark.parametrize("forgetful", [{"delete_all_messages_on_startup": True}, {"persistent": False}])
def test_a_broker_may_begin_anew(store, forgetful):
    with running(store, name="anew") as node:
        client = StompClient(node.port, **{"client-id": "c"})
        client.subscribe("/topic/t", **{"activemq.subscriptionName": "s"})
        client.send("/queue/q,/topic/t", "m", persistent="true")
    with running(store, name="anew", **forgetful, destinations=(queue("named"),)) as node:
        found = {str(each.destination) for each in node.look(lambda: list(node.node.broker.queues))}
        assert found == {"queue://named"}
        client = StompClient(node.port)
        client.send("/queue/q", "new", persistent="true")
        assert node.bodies("q") == ["new"]


@pytest.mark.scenario("AD-09", "AD-10")
def test_names_are_trimmed_and_their_options_are_kept_to_be_seen(store):
    with running(store) as node:
        client = StompClient(node.port)
        client.send("/queue/ spaces inside  ?consumer.priority=3&x=a%20b", "m", persistent="true")
        client.send("/queue/spaces inside", "m", persistent="true")
        assert node.depth("spaces inside") == 2
        assert node.numbers(queue("spaces inside")).Options == "consumer.priority=3&x=a b"
        client.send("/queue/dead?isDLQ=true", "m")
        assert node.numbers(queue("dead")).DLQ


def test_the_file_says_it_in_activemqs_words():
    text = """<broker schedulePeriodForDestinationPurge="300" maxPurgedDestinationsPerSweep="7"
        deleteAllMessagesOnStartup="true" xmlns:s="urn:sluice"><destinationPolicy><policyMap><policyEntries>
        <policyEntry queue="a" gcInactiveDestinations="true" inactiveTimeoutBeforeGC="1000" maxDestinations="5"/>
        <policyEntry queue="b" gcInactiveDestinations="true" inactiveTimoutBeforeGC="2000" s:autoCreate="false"/>
        </policyEntries></policyMap></destinationPolicy></broker>"""
    config = parse_config(text, {})
    one, other = config.definitions.policies
    assert (one.gc_inactive_destinations, one.inactive_timeout_before_gc, one.max_destinations) == (True, 1000, 5)
    assert (other.inactive_timeout_before_gc, other.auto_create) == (2000, False)
    assert config.schedule_period_for_destination_purge == 300
    assert config.max_purged_destinations_per_sweep == 7
    assert config.delete_all_messages_on_startup


def test_a_subscription_without_topics_is_refused_and_one_in_the_store_does_not_keep_a_node_from_starting(store):
    with pytest.raises(RequestRefused, match="needs at least one topic"):
        SubscriptionIdentity("client", "empty", ())
    subscription = SubscriptionIdentity("client", "once", (topic("t"),))
    with running(store, name="without-topics") as node:
        log = node.ask(lambda admin: admin.create_subscription(subscription))
        broker = node.node.broker

        async def leave_without_topics() -> None:
            durable = broker.durables.known(str(log))
            broker.queues.describe(durable.log, {**subscription.attributes(), "topics": []})
            await broker.commits.barrier()

        node.do(leave_without_topics)
    with running(store, name="without-topics") as node:
        assert node.look(lambda: node.node.broker.durables.known(str(log))) is None
