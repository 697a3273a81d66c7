"""A store that does not answer for longer than nodes may be silent: none of them is taken for dead for that."""

import os
import signal
import time
from urllib.parse import urlsplit

import pytest

from brokerapp.store.embedded import EmbeddedStore
from tests.interop.proxy import Proxy
from tests.nodes.conftest import TIMEOUT_MS, OneNode, SeveralNodes
from tests.protocol.running_node import until

TIMEOUT = TIMEOUT_MS / 1000


def test_when_the_store_answers_again_all_nodes_are_members_still(tmp_path):
    with EmbeddedStore(tmp_path / "store") as store:
        broker = SeveralNodes(store.url)
        try:
            broker.start("a", "b")
            clients = {name: broker[name].client() for name in "ab"}
            os.kill(store.pid, signal.SIGSTOP)
            time.sleep(1.2 * TIMEOUT)
            os.kill(store.pid, signal.SIGCONT)
            time.sleep(2 * broker["a"].node.membership.period)
            assert broker.members() == {"a", "b"}
            for client in clients.values():
                client.send("/queue/away", "served", persistent="true")
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
        until(lambda: not broker.ask(lambda store: store.beating()), "the store has heard of none for a timeout")
        ways["a"].let_through()
        until(lambda: broker["a"].look(lambda: first.is_sure), "a beats again, over another connection")
        time.sleep(TIMEOUT)
        ways["b"].let_through()
        until(lambda: broker["a"].look(lambda: first._may_judge), "a takes for dead who has not beaten since")
        time.sleep(2 * first.period)
        members = broker.ask(lambda store: store.members())[1]
        assert sorted(each["session"] for each in members.values()) == sorted(sessions)
        assert not any(each.node.failed.done() for each in broker.nodes.values())
    finally:
        for way in ways.values():
            way.let_through()
            way.cut()  # what was swallowed never comes
        broker.end()
