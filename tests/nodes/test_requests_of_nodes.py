"""Test requests of clients and operators for destinations at any node."""

import asyncio
import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from brokerapp.errors import BrokerError, StoreUnavailable
from brokerapp.model.broker_path import BRIDGE_DURABLE_PREFIX
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from tests.nodes.links.test_lost_links import without_links
from tests.waiting import wait_until


@pytest.fixture
def queue(broker, name):
    """A queue at home at a."""
    return broker.queue_at("a", name)


@pytest.fixture
def filled(client, queue):
    """It holds three messages that were sent at b, of which a has not heard more than their number."""
    sender = client("b")
    for number in range(3):
        sender.send(f"/queue/{queue}", str(number), persistent="true")


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_browser_sees_what_was_sent_at_any_node(client, queue, filled, node):
    client("a").send(f"/queue/{queue}", "3", persistent="true")
    browser = client(node)
    browser.subscribe(f"/queue/{queue}", browser="true")
    assert browser.bodies(4) == ["0", "1", "2", "3"]


def test_an_operator_moves_what_was_sent_at_any_node(broker, queue, filled):
    target = f"{queue}.moved"
    assert broker.admin(lambda admin: admin.move(Destination.queue(queue), Destination.queue(target))) == 3
    assert (broker.depth(queue), broker.depth(target)) == (0, 3)


def test_a_topic_with_subscribers_at_another_node_is_not_deleted(broker, client, name):
    for number in range(2):
        client("b").subscribe(f"/topic/{name}.{number}")
    for number in range(2):
        with pytest.raises(BrokerError, match="has subscribers"):
            broker.admin(lambda admin, number=number: admin.delete(Destination.topic(f"{name}.{number}")))


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_durable_subscription_in_use_is_not_deleted_wherever_it_is_at_home(broker, client, name, node):
    consumer = client(node, **{"client-id": name})
    for number in range(6):  # some are at home at the other node
        consumer.subscribe(f"/topic/{name}", id=f"{number}", **{"activemq.subscriptionName": f"{number}"})
    for number in range(6):
        consumer.frame("UNSUBSCRIBE", **{"id": "none", "activemq.subscriptionName": f"{number}"})
        assert "its consumers unsubscribe first" in consumer.error().headers["message"]
    consumer.send(f"/topic/{name}", "x", persistent="true")
    assert consumer.bodies(6) == ["x"] * 6
    for number in range(6):
        consumer.unsubscribe(id=f"{number}")
        consumer.frame("UNSUBSCRIBE", **{"id": "none", "activemq.subscriptionName": f"{number}"})
    assert not [each for each in broker["a"].node.broker.durables if each.identity.client_id == name]


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_shared_subscription_in_use_keeps_what_it_keeps_wherever_it_is_at_home(client, name, node):
    consumer, other = client("a"), client(node)
    for number in range(6):
        shared = {"activemq.subscriptionName": f"{name}.{number}", "activemq.shared": "true"}
        consumer.subscribe(f"/topic/{name}", id=f"{number}", **shared)
        other.subscribe(f"/topic/{name}.other", id=f"{number}", **shared)
        assert "consumers" in other.error().headers["message"]
    other.send(f"/topic/{name}", "x", persistent="true")
    assert consumer.bodies(6) == ["x"] * 6
    for number in range(6):
        shared = {"activemq.subscriptionName": f"{name}.{number}", "activemq.shared": "true"}
        consumer.unsubscribe(id=f"{number}")
        other.subscribe(f"/topic/{name}.other", id=f"{number}", **shared)
    other.send(f"/topic/{name}.other", "y", persistent="true")
    assert other.bodies(6) == ["y"] * 6


def durable_elsewhere(broker, client, name):
    """A client at b, and the name of one of its durable subscriptions, at home at a, that it consumes as `s`."""
    consumer, home = client("b", **{"client-id": name}), broker["a"].node.broker
    names = map(f"{BRIDGE_DURABLE_PREFIX}{{}}".format, itertools.count())
    while True:
        subscription = next(names)
        consumer.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": subscription})
        if not home.durables.find(name, subscription).log.is_remote:
            return consumer, subscription
        consumer.unsubscribe()


def durables_of(broker, client_id):
    """What the store keeps for a client."""
    return [
        each
        for each in broker.ask(lambda store: store.logs.all_attributes())
        if each.startswith(f"subscription://{client_id}:")
    ]


def test_who_deletes_a_durable_subscription_and_leaves_is_told_good_bye_when_it_is_gone(broker, client, name):
    consumer, subscription = durable_elsewhere(broker, client, name)
    kept, clients = len(durables_of(broker, name)), broker["b"].node.broker.clients
    [leaving] = [each for each in clients.values() if each.client_id == name]
    consumer.unsubscribe()
    without_links(broker["b"], True)
    try:
        consumer.frame("UNSUBSCRIBE", wait=False, **{"id": "none", "activemq.subscriptionName": subscription})
        consumer.frame("DISCONNECT", wait=False, receipt="bye")
        wait_until(lambda: leaving.disconnected, "the node has heard it")
        broker["b"].do(broker["b"].node.broker.commits.barrier)
        assert broker["b"].look(lambda: leaving.id in clients)
    finally:
        without_links(broker["b"], False)
    assert consumer.disconnected.wait(20)
    wait_until(lambda: len(durables_of(broker, name)) == kept - 1, "it is gone")


def test_what_a_bridge_says_it_needs_no_more_stays_while_somebody_at_another_node_consumes_it(broker, client, name):
    consumer, _ = durable_elsewhere(broker, client, name)

    def keep(node):
        broker[node].look(lambda: broker[node].node.broker.durables.remove_unused_of_bridge(name, ()))
        for each in "ab":
            broker[each].do(broker[each].node.broker.commits.barrier)

    keep("b")
    consumer.send(f"/topic/{name}", "x", persistent="true")
    assert consumer.bodies() == ["x"]
    consumer.unsubscribe()
    keep("b")
    wait_until(lambda: not durables_of(broker, name), "all are gone")


@pytest.fixture
def full(broker, client, name):
    """A queue that has no room."""

    async def define(admin):
        policies = (PolicyEntry(Destination.queue(f"{name}.full"), store_limit=1024),)
        return await admin.define(replace(await admin.definitions(), policies=policies), "test")

    broker["a"].wait_for_definitions(broker.admin(define).version)
    sender, flow = client("a"), broker["a"].node.broker.flow_control
    for _ in range(5):
        sender.send(f"/queue/{name}.full", "x" * 400, wait=False, persistent="true")
    wait_until(lambda: broker["a"].look(lambda: list(flow.waiting())), "it is full")
    return f"{name}.full"


def test_what_is_acknowledged_in_transactions_is_held_where_its_log_is_next_and_is_no_debt(
    broker, client, queue, full, filled
):
    """In one that is open, and in one whose COMMIT waits for room."""
    consumer, flow = client("a"), broker["a"].node.broker.flow_control
    consumer.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    for transaction in ("waits", "open"):
        consumer.frame("BEGIN", transaction=transaction)
        consumer.ack(*consumer.take(), transaction=transaction)
        consumer.send(f"/queue/{full}", "y" * 400, transaction=transaction)
    consumer.take()
    consumer.frame("COMMIT", wait=False, transaction="waits")
    wait_until(lambda: broker["a"].look(lambda: any(each.settled for each in flow.waiting())), "the COMMIT waits")
    homes = leave(broker, queue)
    [subscription] = homes.outbound_consumers.known_consumers(broker["a"].node.broker.queues[f"queue://{queue}"])
    about = broker["a"].look(lambda: homes.outbound_consumers._attach_arguments(subscription, homes.peers.session))
    assert about["credit"] == subscription.credit == 0
    broker["a"].look(homes.handoff_in.take_over)
    other = client("a")
    other.subscribe(f"/queue/{queue}")
    assert other.has_no_more()
    other.subscribe(f"/queue/{full}", id="full")
    assert len([each for each in other.take(6) if each.body.startswith("y")]) == 1
    wait_until(lambda: broker.depth(queue) == 2, "the COMMIT is done")
    assert other.has_no_more()


@pytest.fixture
def held(broker, client, queue):
    """Of two messages of the queue a consumer at a holds one."""
    consumer = client("a")
    consumer.subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
    for number in range(2):
        consumer.send(f"/queue/{queue}", str(number), persistent="true")
    [message] = consumer.take()
    return consumer, message


def leave(broker, queue, home="a"):
    """Let the home of the queue have it no more, as when it moves to another node."""
    homes, log = broker[home].node.broker.placement, broker[home].node.broker.queues[f"queue://{queue}"]

    def vacate():
        homes.outbound_handoff.on_handed_off(log)
        log.is_remote = True
        log.release_ownership()

    broker[home].look(vacate)
    return homes


@pytest.mark.parametrize("verb", ["purge", "remove"])
def test_what_consumers_hold_is_left_alone_while_the_home_of_a_queue_has_not_taken_it_yet(broker, queue, held, verb):
    consumer, message = held
    homes = leave(broker, queue)
    broker["a"].look(lambda: broker["a"].node.broker.timers.at(0, homes.handoff_in.take_over))  # a moment later
    assert broker.admin(lambda admin: getattr(admin, verb)(Destination.queue(queue))) == 1
    assert broker.depth(queue) == 1
    consumer.ack(message)
    assert broker.depth(queue) == 0


def test_who_asks_for_messages_of_a_queue_that_moves_meanwhile_is_told_to_ask_again(broker, queue, held, monkeypatch):
    homes = broker["a"].node.broker.placement
    monkeypatch.setattr(homes.handoff_in, "is_pending", lambda _log: False)  # asked a moment before
    leave(broker, queue)
    for ask in (
        lambda admin: admin.purge(Destination.queue(queue)),
        lambda admin: admin.remove(Destination.queue(queue)),
        lambda admin: admin.delete(Destination.queue(queue)),
        lambda admin: admin.step("remove", Destination.queue(queue), range(1, 100_000, 1000)),
    ):
        with pytest.raises(StoreUnavailable, match="moved to another node: try again"):
            broker.admin(ask)
    assert broker.depth(queue) == 2
    broker["a"].look(homes.handoff_in.take_over)


def test_what_waits_until_nodes_have_taken_queues_home_keeps_no_other_request_waiting(
    broker, client, name, monkeypatch
):
    queues, waiting = {home: broker.queue_at(home, f"{name}.{home}") for home in "ab"}, set()
    homes = {}
    for home, queue in queues.items():
        client(home).send(f"/queue/{queue}", "x", persistent="true")
        homes[home] = one = leave(broker, queue, home)
        [other] = one.peers.other_sessions
        broker[home].look(lambda one=one, other=other: one.handoff.on_link_down(other))  # it may take nothing for now
        awaits = one.handoff_in.is_pending
        monkeypatch.setattr(
            one.handoff_in, "is_pending", lambda log, awaits=awaits: awaits(log) and not waiting.add(log)
        )

    async def ask(admin):
        async with asyncio.timeout(20):
            purges = [asyncio.create_task(admin.purge(Destination.queue(each))) for each in queues.values()]
            while len(waiting) < len(queues):
                await asyncio.sleep(0.01)
            await asyncio.wait_for(admin.cluster(), 5)
            for home, one in homes.items():
                done = *one.peers.other_sessions, one.peers.members.epoch
                broker[home].look(lambda one=one, done=done: one.handoff.on_epoch_done(*done))
                broker[home].look(one.handoff_in.take_over)
            return await asyncio.gather(*purges)

    assert broker.admin(ask) == [1, 1]


def test_for_whom_a_durable_subscription_is_kept_all_nodes_know(broker, name):
    here, there = (broker[each].node.broker.durables for each in "ab")
    kept = SubscriptionIdentity(name, "s", (Destination.topic(name),), groups=("users",))
    for wanted in (kept, replace(kept, groups=("admins",), leads_to="east"), replace(kept, groups=())):
        first = SimpleNamespace(takeover=wanted)
        broker["a"].look(lambda wanted=wanted, first=first: here.adopt(here.claim(wanted), first))
        broker["a"].do(broker["a"].node.broker.commits.barrier)
        assert broker["b"].look(lambda: there.find_identity(kept)).identity == wanted
        assert bool(there.logs_kept_for_bridges(["east"])) == bool(wanted.leads_to)
