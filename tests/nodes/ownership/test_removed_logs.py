"""Logs that one node removes while another one stores into them."""

import pytest

from brokerapp.model.destination import Destination
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.nodes.links.protocol import PeerMessageType
from tests.nodes.ownership.test_handoff import _slow_to_store
from tests.waiting import wait_until


def _logs(broker):
    return set(broker.ask(lambda store: store.logs.all_attributes()))


def _queues(broker, node):
    return broker[node].node.broker.queues


@pytest.mark.parametrize("home", "ab")
def test_a_durable_subscription_that_is_removed_as_another_node_stores_into_it_is_gone_and_may_come_again(
    broker, client, name, home
):
    homes = broker[home].node.broker.placement
    name = next(each for each in map(f"{name}-{{}}".format, range(99)) if homes.is_local(f"subscription://{each}:s"))
    log, durable = f"subscription://{name}:s", {"activemq.subscriptionName": "s"}
    subscriber, sender = client("b", **{"client-id": name}), client("a")
    subscriber.subscribe(f"/topic/{name}", **durable)
    subscriber.unsubscribe()
    with _slow_to_store(broker["a"], 0.5):
        sender.send(f"/topic/{name}", "lost", wait=False, persistent="true")
        wait_until(
            lambda: broker["a"].look(lambda: broker["a"].node.broker.commits.has_pending_for(log)), "a stores into it"
        )
        subscriber.frame("UNSUBSCRIBE", id="s", **durable)
        sender.round_trip()
    for node in "ab":
        wait_until(lambda node=node: _queues(broker, node).get(log) is None, f"{node} knows it no more")
    wait_until(lambda: log not in _logs(broker), "it is removed from the store")
    subscriber.subscribe(f"/topic/{name}", **durable)
    sender.send(f"/topic/{name}", "kept", persistent="true")
    assert subscriber.bodies() == ["kept"]
    broker.start("c")  # it can read what the store says of all logs
    broker.stop("c")


def test_a_durable_subscription_that_is_there_again_stays_though_another_node_still_stores_into_the_removed_one(
    broker, client, name
):
    home = broker["b"].node.broker
    name = next(
        each for each in map(f"{name}-{{}}".format, range(99)) if home.placement.is_local(f"subscription://{each}:s")
    )
    log, durable = f"subscription://{name}:s", {"activemq.subscriptionName": "s"}
    subscriber, sender = client("b", **{"client-id": name}), client("a")
    subscriber.subscribe(f"/topic/{name}", **durable)
    subscriber.unsubscribe()
    with _slow_to_store(broker["a"], 1.5):
        sender.send(f"/topic/{name}", "early", wait=False, persistent="true")
        wait_until(
            lambda: broker["a"].look(lambda: broker["a"].node.broker.commits.has_pending_for(log)), "a stores into it"
        )
        subscriber.frame("UNSUBSCRIBE", id="s", **durable)
        wait_until(lambda: log not in _logs(broker) and not home.durables._discarded, "it is removed")
        subscriber.subscribe(f"/topic/{name}", **durable)
        assert broker["a"].node.broker.commits.busy
    sender.send(f"/topic/{name}", "kept", persistent="true")
    bodies = subscriber.bodies()
    assert "kept" in (bodies if bodies == ["kept"] else subscriber.bodies())
    broker["a"].do(broker["a"].node.broker.commits.barrier)
    assert log in _logs(broker)


def test_what_arrives_for_a_temporary_queue_that_is_gone_costs_no_link(broker, client, name):
    owner, sender = client("a"), client("b")
    owner.subscribe("/temp-queue/r", id="r")
    owner.send(f"/queue/{name}", "x", reply_to="/temp-queue/r", persistent="true")
    sender.subscribe(f"/queue/{name}")
    [message] = sender.take()
    [log] = [each.name for each in _queues(broker, "a") if each.destination.is_temporary]
    assert message
    owner.leave()
    wait_until(lambda: _queues(broker, "a").get(log) is None, "it is gone")
    homes = broker["a"].node.broker.placement
    broker["a"].look(lambda: homes.remote_appends.on_appended(homes.peers.other_sessions[0], log, 1, 1, 1, 1))
    wait_until(lambda: log not in _logs(broker), "nothing is left of it")


def test_what_arrives_for_a_subscription_of_which_its_home_has_not_heard_yet_is_kept(broker, client, name, monkeypatch):
    """Its maker reaches the node that stores into it before it reaches the home."""
    home, other = (broker[each].node.broker for each in "ab")
    names = map(f"{name}-{{}}".format, range(99))
    name = next(each for each in names if home.placement.is_local(f"subscription://{each}:s"))
    wanted, late = SubscriptionIdentity(name, "s", (Destination.topic(name),)), []

    def hear_late(session, id, rows):
        late.append((session, 0, rows))
        home.placement.peers.send(session, PeerMessageType.CONFIRMED, id, "")

    monkeypatch.setitem(home.placement.inbox._handlers, PeerMessageType.LOGS, hear_late)
    log = broker["b"].look(lambda: other.durables.create(wanted)).log.name
    client("b").send(f"/topic/{name}", "kept", persistent="true")
    wait_until(lambda: home.queues.get(log) is not None, "the home looks it up")
    monkeypatch.undo()
    broker["a"].look(lambda: [home.placement.declarations.on_logs(*each) for each in late])
    subscriber = client("a", **{"client-id": name})
    subscriber.subscribe(f"/topic/{name}", **{"activemq.subscriptionName": "s"})
    assert subscriber.bodies() == ["kept"]
    client("b").send(f"/topic/{name}", "more", persistent="true")
    assert subscriber.bodies() == ["more"]
