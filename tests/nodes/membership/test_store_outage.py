"""Test that no node is expelled because the store does not answer."""

import os
import signal
import time
from urllib.parse import urlsplit

import pytest

from brokerapp.store.server.embedded import EmbeddedStore
from tests.interop.proxy import Proxy
from tests.nodes.conftest import TIMEOUT_MS, OneNode, SeveralNodes
from tests.waiting import wait_until

TIMEOUT = TIMEOUT_MS / 1000


def stand_still(store):
    os.kill(store.pid, signal.SIGSTOP)
    time.sleep(1.2 * TIMEOUT)
    os.kill(store.pid, signal.SIGCONT)


def die(store):
    os.kill(store.pid, signal.SIGKILL)
    wait_until(store.restart_if_dead, "the store is started again")


@pytest.mark.scenario("K12")
@pytest.mark.parametrize("goes_away", [stand_still, die])
def test_when_the_store_answers_again_all_nodes_are_members_still(tmp_path, goes_away):
    with EmbeddedStore(tmp_path / "store") as store:
        broker = SeveralNodes(store.url)
        try:
            broker.start("a", "b")
            sessions = {each.node.session for each in broker.nodes.values()}
            clients = {name: broker[name].client() for name in "ab"}
            queue = broker.queue_at("a", "away")
            clients["b"].subscribe(f"/queue/{queue}", ack="client-individual", prefetch=1)
            for number in range(2):
                clients["a"].send(f"/queue/{queue}", str(number), persistent="true")
            [held] = clients["b"].take()
            goes_away(store)
            time.sleep(2 * broker["a"].node.membership.period)
            for client in clients.values():
                client.send("/queue/away", "served", persistent="true")
            assert {each["session"] for each in broker.ask(lambda store: store.nodes.members())[1].values()} == sessions
            clients["b"].ack(held)
            [other] = clients["b"].take()
            assert (other.body, "redelivered" in other.headers) == ("1", False)
        finally:
            broker.end()


@pytest.fixture
def ways(redis_url):
    """By node, its way to the store."""
    made = {name: Proxy(urlsplit(redis_url).path) for name in "ab"}
    yield made
    for each in made.values():
        each.close()


def test_who_reaches_the_store_again_first_takes_nobody_for_dead_that_the_network_keeps_from_it(redis_url, ways):
    broker = SeveralNodes(redis_url)
    try:
        for name, way in ways.items():
            broker.nodes[name] = OneNode(broker.name, name, f"redis://127.0.0.1:{way.port}")
        first, sessions = broker["a"].node.membership, [each.node.session for each in broker.nodes.values()]
        for way in ways.values():
            way.swallow()
        wait_until(
            lambda: not broker.ask(lambda store: store.nodes.live_names()), "the store has heard of none for a timeout"
        )
        ways["a"].let_through()
        wait_until(lambda: broker["a"].look(lambda: first.is_confirmed), "a beats again, over another connection")
        time.sleep(TIMEOUT)
        ways["b"].let_through()
        wait_until(lambda: broker["a"].look(lambda: first._can_expel), "a takes for dead who has not beaten since")
        time.sleep(2 * first.period)
        members = broker.ask(lambda store: store.nodes.members())[1]
        assert sorted(each["session"] for each in members.values()) == sorted(sessions)
        assert not any(each.node.failed.done() for each in broker.nodes.values())
    finally:
        for way in ways.values():
            way.let_through()
            way.cut()  # what was swallowed never comes
        broker.end()
