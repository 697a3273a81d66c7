"""Brokers that find each other by multicast, on the loopback interface."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from brokerapp.config import TransportConnector, default_config
from brokerapp.network.options.definition import NetworkConnector
from tests.protocol.networking import bridges_of
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="interfaces are chosen as Linux has it")


def start(store, name: str, group: str) -> RunningNode:
    uri = f"multicast://default?group={group}&networkInterface=lo&keepAliveInterval=100"
    listening = TransportConnector("stomp", "stomp", "127.0.0.1", 0, attributes=(("discoveryUri", uri),))
    connector = NetworkConnector("found", f"{uri}&initialReconnectDelay=100&useExponentialBackOff=false")
    return RunningNode(
        replace(default_config(name, 0), connectors=(listening,), network_connectors=(connector,)), store.url
    )


def leads_to(node: RunningNode) -> set[str]:
    return {each.there for each in bridges_of(node)}


def test_brokers_of_a_group_find_each_other_as_they_come_and_go(store, connect, name):
    names = [f"{name}-{letter}" for letter in "abc"]
    a, b, c = nodes = [start(store, each, name) for each in names]
    try:
        for node in nodes:
            others = {each for each in names if each != node.name}
            wait_until(lambda node=node, others=others: leads_to(node) == others, f"the bridges of {node.name}")
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}")
        connect(port=a.port).send(f"/queue/{name}", "found", persistent="true")
        assert consumer.bodies() == ["found"]
        c.stop()
        nodes.remove(c)
        wait_until(lambda: leads_to(a) == {b.name} and len(a.node.network.connections) == 1, "the end of the way to c")
    finally:
        for node in nodes:
            node.stop()
