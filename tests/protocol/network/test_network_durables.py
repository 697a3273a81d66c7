"""Test what a broker stores for durable subscribers of another one behind a bridge, and how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from brokerapp.model.destination import Destination
from tests.protocol.clients import StompClient
from tests.protocol.networking import bridged, running, start, to, wait_for_demand
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def b(store) -> Iterator[RunningNode]:
    """The remote broker of all."""
    node = start(store)
    yield node
    node.stop()


def keeping(node: RunningNode, name: str) -> dict[str, set[str]]:
    """The topics of a test that a broker keeps for its bridges, by their client-ids."""
    found: dict[str, set[str]] = {}
    for each in node.look(lambda: [one.identity for one in node.node.broker.durables]):
        for topic in each.topics:
            if each.name.startswith("NC-DS_") and topic.name.startswith(name):
                found.setdefault(each.client_id, set()).add(topic.name)
    return found


def kept(node: RunningNode, name: str) -> set[str]:
    """The topics of a test that a broker keeps for its bridges."""
    return set().union(*keeping(node, name).values())


def durable(connect, node: RunningNode, topic: str) -> StompClient:
    """A durable subscriber of this topic, and of no other."""
    client = connect(port=node.port, **{"client-id": f"client of {topic}"})
    client.subscribe(f"/topic/{topic}", **{"activemq.subscriptionName": topic})
    return client


def forget(connect, node: RunningNode, topic: str) -> None:
    """Delete that subscription, which has no subscriber."""
    client = connect(port=node.port, **{"client-id": f"client of {topic}"})
    client.unsubscribe(id="-", **{"activemq.subscriptionName": topic})
    client.leave()


def switch(node: RunningNode, on: bool) -> None:
    node.ask(lambda admin: (admin.networks.start if on else admin.networks.stop)("bridge"))


@pytest.mark.scenario("NB-55")
@pytest.mark.parametrize("dynamic_only", ["false", "true"])
def test_what_was_deleted_while_the_link_was_down_is_not_kept_for_any_more(store, b, connect, name, dynamic_only):
    gone, stays = f"{name}.gone", f"{name}.stays"
    with running(store, to(b.port, dynamicOnly=dynamic_only)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        for topic in (gone, stays):
            durable(connect, b, topic).leave()
        wait_until(lambda: kept(a, name) == {gone, stays}, "both")
        switch(a, False)
        sender = connect(port=a.port)
        for topic in (gone, stays):
            sender.send(f"/topic/{topic}", "while it was down", persistent="true")
        forget(connect, b, gone)
        switch(a, True)
        wait_until(lambda: kept(a, name) == {stays}, "the end of what nobody is to get")
        assert durable(connect, b, stays).bodies() == ["while it was down"]
        assert kept(a, name) == {stays}


def test_what_a_connector_excludes_from_now_on_is_not_kept_any_more(store, b, connect, name):
    connector = to(b.port)
    with running(store, connector) as a:
        wait_until(lambda: bridged(a), "the bridge")
        for topic in (f"{name}.no", f"{name}.yes"):
            durable(connect, b, topic).leave()
        wait_until(lambda: kept(a, name) == {f"{name}.no", f"{name}.yes"}, "both")
        excluding = replace(connector, excluded=(Destination.topic(f"{name}.no"),))
        a.ask(lambda admin: admin.networks.put_connector(excluding.to_json()))
        wait_until(lambda: kept(a, name) == {f"{name}.yes"}, "the end of the excluded one")


@pytest.mark.parametrize("connected", [True, False])
def test_with_a_connector_goes_what_was_kept_for_it(store, b, connect, name, connected):
    connectors = (to(b.port, duplex="true"), to(b.port, name="bridge_of_another"))
    with running(store, *connectors) as a:
        wait_until(lambda: all(a.look(lambda: [way.bridges for way in a.node.network.connections])), "the bridges")
        for node in (a, b):
            durable(connect, node, f"{name}.{node.name}").leave()
        wait_until(lambda: len(keeping(a, name)) == 2 and kept(b, name) == {f"{name}.{a.name}"}, "what is kept at both")
        if not connected:
            switch(a, False)
        a.ask(lambda admin: admin.networks.remove_connector("bridge"))
        wait_until(
            lambda: list(keeping(a, name)) == [f"bridge_of_another_{b.name}_inbound_{a.name}"], "only the other one"
        )
        wait_until(lambda: bool(kept(b, name)) is not connected, "what the other broker kept")
        a.ask(lambda admin: admin.networks.remove_connector("bridge_of_another"))
        wait_until(lambda: not kept(a, name), "the other one")
        for node in (a, b):
            forget(connect, node, f"{name}.{node.name}")


def test_with_a_connector_that_a_file_has_no_more_goes_what_was_kept_for_it(store, b, connect, name):
    stays, goes = to(b.port, name="bridge_of_another"), to(b.port)
    with running(store, stays, goes) as a:
        wait_until(lambda: all(a.look(lambda: [way.bridges for way in a.node.network.connections])), "the bridges")
        durable(connect, b, name).leave()
        wait_until(lambda: len(keeping(a, name)) == 2, "what is kept for both")
        a.restart(network_connectors=(stays,))
        wait_until(
            lambda: list(keeping(a, name)) == [f"bridge_of_another_{b.name}_inbound_{a.name}"], "only the other one"
        )
        a.restart(network_connectors=())
        wait_until(lambda: not kept(a, name), "neither")
        forget(connect, b, name)


def kept_at(node: RunningNode, topic: str) -> list[int]:
    """How many messages of a topic it keeps for its bridges."""
    return node.look(
        lambda: [
            each.log.depth
            for each in node.node.broker.durables
            if each.identity.leads_to and Destination.topic(topic) in each.identity.topics
        ]
    )


def test_what_came_from_a_broker_is_not_kept_for_the_bridge_to_it(store, connect, name):
    with running(store) as b, running(store, to(b.port)) as a:
        b.ask(lambda admin: admin.networks.put_connector(to(a.port, name="back").to_json()))
        wait_until(lambda: bridged(a) and bridged(b), "the bridges")
        subscribers = [durable(connect, node, name) for node in (a, b)]
        wait_for_demand(a, f"topic://{name}")
        wait_for_demand(b, f"topic://{name}")
        b.ask(lambda admin: admin.networks.stop("back"))
        connect(port=a.port).send(f"/topic/{name}", "from a", persistent="true")
        connect(port=b.port).send(f"/topic/{name}", "from b", persistent="true")
        assert subscribers[0].bodies() == ["from a"]
        assert sorted(subscribers[1].bodies(2)) == ["from a", "from b"]
        assert kept_at(b, name) == [1]
        b.ask(lambda admin: admin.networks.start("back"))
        assert subscribers[0].bodies() == ["from b"]
        b.restart()
        found = b.look(lambda: {each.identity.name: each.identity.leads_to for each in b.node.broker.durables})
        assert found == {name: "", f"NC-DS_{b.name}_{name}": a.name}


def test_a_subscription_that_is_in_use_for_now_is_tried_again(store, b, connect, name, monkeypatch):
    for each in ("REFUSED_SECONDS", "SUSPENDED_SECONDS"):  # the first try may come before the ghost is gone
        monkeypatch.setattr(f"brokerapp.network.bridge.source_consumers.{each}", 0.1)
    with running(store, to(b.port)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        subscriber = durable(connect, b, name)
        wait_until(lambda: kept(a, name) == {name}, "it")
        switch(a, False)
        [log] = a.look(lambda: [each.log for each in a.node.broker.durables.of_topic(Destination.topic(name))])
        ghost = SimpleNamespace(client=SimpleNamespace(member=""), owner_session="")
        a.look(lambda: log.consumers.append(ghost))  # whoever has it
        switch(a, True)

        def said() -> str:
            [way] = a.ask(lambda admin: admin.networks.stats()).connectors[0].ways
            return way.last_error

        wait_until(lambda: "has a consumer already" in said(), "the refusal")
        a.look(lambda: log.consumers.remove(ghost))
        connect(port=a.port).send(f"/topic/{name}", "after all", persistent="true")
        assert subscriber.bodies() == ["after all"]


@pytest.mark.scenario("NB-54")
def test_forced_to_be_durable_nothing_is_lost_for_a_plain_subscriber_while_the_link_is_down(store, b, connect, name):
    forced = Destination.parse(f"topic://{name}.>?forceDurable=true")
    with running(store, replace(to(b.port), dynamically_included=(forced,))) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer, sender = connect(port=b.port), connect(port=a.port)
        consumer.subscribe(f"/topic/{name}.x")
        wait_for_demand(a, f"topic://{name}.x")
        assert kept(a, name) == {f"{name}.x"}
        switch(a, False)
        sender.send(f"/topic/{name}.x", "while it was down", persistent="true")
        switch(a, True)
        assert consumer.bodies() == ["while it was down"]
        consumer.leave()
        wait_until(lambda: not kept(a, name), "the end of it with the last subscriber")


def test_a_subscriber_that_comes_back_after_the_link_gets_what_was_kept_for_it_by_force(
    store, b, connect, name, monkeypatch
):
    forced = Destination.parse(f"topic://{name}?forceDurable=true")
    with running(store, replace(to(b.port), dynamically_included=(forced,))) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=b.port)
        consumer.subscribe(f"/topic/{name}")
        wait_for_demand(a, f"topic://{name}")
        switch(a, False)
        consumer.leave()
        connect(port=a.port).send(f"/topic/{name}", "kept", persistent="true")
        switch(a, True)
        wait_until(lambda: bridged(a), "the bridge")
        back = connect(port=b.port)
        back.subscribe(f"/topic/{name}")
        assert back.bodies() == ["kept"]
        switch(a, False)
        back.leave()
        monkeypatch.setattr("brokerapp.network.bridge.advisory_listener.FORCED_DURABLE_GRACE_SECONDS", 0.05)
        switch(a, True)
        wait_until(lambda: not kept(a, name), "the end of its time to come back")
