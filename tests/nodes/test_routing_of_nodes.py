"""Test that a change of routing reaches every node, and that each node reports its version."""

import asyncio
from dataclasses import replace

import pytest

from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from tests.nodes.conftest import TIMEOUT_MS, several_nodes

Q = Destination.queue


@pytest.fixture
def deaf(redis_url):
    """A broker of two nodes that hear no signals: only what is asked of each reaches it."""
    with several_nodes(redis_url, "a", "b") as broker:
        for name in ("a", "b"):
            node = broker[name].node

            async def stop_following(node=node) -> None:
                [task] = [each for each in node._tasks._running if each.get_name() == "signals"]
                task.cancel()
                await asyncio.wait([task])

            broker[name].do(stop_following)
        yield broker


def change(broker, name):
    """A composite queue of this name, in addition to what there is; the version of the change."""

    async def define(admin):
        current = await admin.definitions()
        made = CompositeDestination(Q(name), (ForwardTarget(Q(f"{name}.to")),))
        return await admin.define(replace(current, virtual_destinations=(*current.virtual_destinations, made)), "test")

    return broker.admin(define).version


def test_a_change_is_applied_by_every_node_before_it_is_answered(deaf):
    for number in range(3):
        version = change(deaf, f"everywhere.{number}")
        assert {deaf[name].node.broker.routing.table.definitions.version for name in ("a", "b")} == {version}


def test_each_node_says_by_which_version_it_routes(deaf):
    version = change(deaf, "told")
    told = {each.name: each.definitions for each in deaf.admin(lambda admin: admin.nodes())}
    assert told == {"a": version, "b": version}


def test_a_node_that_does_not_answer_is_told_apart_from_those_that_applied_the_change(deaf, monkeypatch):
    monkeypatch.setattr("brokerapp.admin.routing.REFRESH_SECONDS", 0.3 * TIMEOUT_MS / 1000)
    before = deaf["b"].node.broker.routing.table.definitions.version
    resume = deaf["b"].stall()
    try:
        version = change(deaf, "behind")
        told = {each.name: each.definitions for each in deaf.admin(lambda admin: admin.nodes())}
    finally:
        resume()
    assert told == {"a": version, "b": before}
