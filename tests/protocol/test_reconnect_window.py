"""Test that temporary destinations wait for a client that may reconnect."""

import pytest

from brokerapp.config import default_config
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


def returning(name, window="60000"):
    return {"client-id": name, "reconnect": window}


def temporaries(node):
    """The logs of temporary queues that exist."""
    return node.look(lambda: [log.name for log in node.node.broker.queues if log.destination.is_temporary])


def test_what_waits_in_its_temporary_queue_is_there_when_it_is_back(connect, node, name):
    client = connect(**returning(name))
    client.send("/temp-queue/box", "kept", persistent="true")
    [log] = temporaries(node)
    client.break_off()
    wait_until(
        lambda: node.look(lambda: name not in [each.client_id for each in node.node.broker.clients.values()]), "gone"
    )
    again = connect(**returning(name))
    again.subscribe("/temp-queue/box")
    assert again.bodies() == ["kept"]
    assert temporaries(node) == [log]
    again.leave()
    wait_until(lambda: temporaries(node) == [], "it goes with DISCONNECT")


def test_it_takes_the_place_of_its_own_dead_connection(connect, node, name):
    dead = connect(**returning(name))
    dead.send("/temp-queue/box", "kept", persistent="true")
    again = connect(**returning(name))
    assert dead.disconnected.wait(10)
    again.subscribe("/temp-queue/box")
    assert again.bodies() == ["kept"]
    again.leave()


def test_another_client_of_the_same_id_that_may_not_reconnect_does_not(connect, raw, name):
    connect(**returning(name))
    other = raw(None)
    other.tell("CONNECT", {"accept-version": "1.2", "host": "here", "client-id": name})
    assert "is connected already" in other.hear().headers["message"]


def test_after_the_time_it_asked_for_its_destinations_go(connect, node, name):
    client = connect(**returning(name, "150"))
    for kind in ("queue", "topic"):
        client.subscribe(f"/temp-{kind}/box", id=kind)
    client.break_off()
    wait_until(lambda: temporaries(node) == [], "they are gone")


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"reconnect": "soon", "client-id": "x"}, "soon must be true, false"),
        ({"reconnect": "true"}, "reconnect needs a client-id"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(raw, headers, why):
    client: RawClient = raw(None)
    client.tell("CONNECT", {"accept-version": "1.2", "host": "here", **headers})
    assert why in client.hear().headers["message"]


def test_they_wait_over_a_restart_of_the_broker(store, name):
    config = default_config(f"reconnecting-{name}", 0)
    first = RunningNode(config, store.url)
    client = StompClient(first.port, **returning(name))
    client.subscribe("/temp-topic/news", id="news")
    client.send("/temp-queue/box", "kept", persistent="true")
    before = temporaries(first)
    first.stop()
    second = RunningNode(config, store.url)
    try:
        assert temporaries(second) == before
        again = StompClient(second.port, **returning(name))
        again.subscribe("/temp-queue/box")
        assert again.bodies() == ["kept"]
        again.leave()
        wait_until(lambda: temporaries(second) == [], "gone")
    finally:
        second.stop()
