"""Test Open MQ's table of destinations, row by row, with the nodes of one broker."""

import pytest

from brokerapp.errors import DestinationNotFound
from brokerapp.model.destination import Destination
from tests.nodes.conftest import several_nodes
from tests.waiting import wait_until

#: Milliseconds without use after which an auto-created destination goes.
UNUSED_MS = 600
LONG, SHORT = "60000", "300"


@pytest.fixture(scope="module")
def broker(redis_url):
    """Two nodes, `a` and `b`, of a broker that removes what clients made and nobody uses."""
    with several_nodes(redis_url, "a", "b", auto_destroy_after=UNUSED_MS) as several:
        yield several


def returning(client_id: str, window: str = LONG) -> dict[str, str]:
    """The CONNECT of a client that may reconnect."""
    return {"client-id": client_id, "reconnect": window}


def stored(broker, destination: str) -> dict | None:
    """What the store knows of a destination; None: nothing."""
    return broker.ask(lambda store: store.logs.all_attributes()).get(destination)


def has(broker, node: str, temporary: str) -> bool:
    """Whether a node knows a temporary destination."""
    return broker[node].look(lambda: Destination.parse(temporary) in broker[node].node.broker.temporaries)


def own(broker, node: str, client, kind: str = "queue") -> str:
    """The one temporary destination of a client, with a consumer."""
    before = set(_at_home(broker, node))
    client.subscribe(f"/temp-{kind}/box", id="box")
    [made] = set(_at_home(broker, node)) - before
    return made


def _at_home(broker, node: str) -> list[str]:
    return broker[node].look(lambda: [str(each) for each, _ in broker[node].node.broker.temporaries.at_home()])


def by_all(temporary: str) -> str:
    """How everybody may call it."""
    return "/remote-" + temporary.replace("://", "/", 1)


def nowhere(broker, temporary: str) -> None:
    """Wait until no node has it, nor the store."""
    wait_until(lambda: not any(has(broker, node, temporary) for node in broker.nodes), "no node has it")
    wait_until(lambda: stored(broker, temporary) is None, "the store has it no more")


# -- admin-created


@pytest.mark.scenario("L01")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_what_an_operator_creates_at_a_node_is_there_at_all_until_one_deletes_it_at_any(broker, name, kind):
    made = Destination.parse(f"{kind}://{name}")
    broker["a"].ask(lambda admin: admin.create(made))
    for node in broker.nodes.values():
        wait_until(
            lambda node=node: node.look(lambda: node.node.broker.creation.is_declared(made)), "it is at the node"
        )
    assert stored(broker, str(made))
    broker["b"].ask(lambda admin: admin.delete(made))
    for node in broker.nodes.values():
        wait_until(
            lambda node=node: not node.look(lambda: node.node.broker.creation.is_declared(made)), "it is gone there"
        )
    assert stored(broker, str(made)) is None
    if kind == "queue":
        with pytest.raises(DestinationNotFound):
            broker["a"].ask(lambda admin: admin.delete(made))


# -- temporary


@pytest.mark.scenario("T01", "T02", "T10")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_it_is_at_all_nodes_from_its_creation_and_goes_everywhere_when_its_connection_breaks(
    broker, client, name, kind
):
    maker, sender = client("a"), client("b")
    temporary = own(broker, "a", maker, kind)
    assert "belongs" not in (stored(broker, temporary) or {})
    sender.send(by_all(temporary), "from the other node")
    assert maker.bodies() == ["from the other node"]
    maker.break_off()
    nowhere(broker, temporary)


@pytest.mark.scenario("T07", "T03")
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_client_that_may_reconnect_finds_its_own_at_another_node_with_what_came_meanwhile(broker, client, name, kind):
    first = client("a", **returning(name))
    temporary = own(broker, "a", first, kind)
    assert stored(broker, temporary)["belongs"]["client_id"] == name
    first.break_off()
    if kind == "queue":  # of a topic only who is there hears
        client("b").send(by_all(temporary), "meanwhile", persistent="true")
    again = client("b", **returning(name))
    again.subscribe(f"/temp-{kind}/box", id="box")
    wait_until(lambda: _at_home(broker, "a") == [], "the first node knows that it is elsewhere")
    client("a").send(by_all(temporary), "now")
    assert again.bodies(2)[-2:] == ["meanwhile", "now"] if kind == "queue" else again.bodies() == ["now"]
    again.leave()
    nowhere(broker, temporary)


@pytest.mark.scenario("T06")
def test_when_its_client_does_not_come_back_in_time_it_is_gone_at_all_nodes(broker, client, name):
    first = client("a", **returning(name, SHORT))
    temporary = own(broker, "a", first)
    wait_until(lambda: has(broker, "b", temporary), "it is known at the other node")
    first.break_off()
    nowhere(broker, temporary)


@pytest.mark.scenario("T04", "T05", "T06", "K13")
def test_after_a_crash_of_its_node_those_that_may_reconnect_are_waited_for_and_others_go(broker, client, name):
    broker.start("c")
    kept, lost, late = client("c", **returning(f"{name}.kept")), client("c"), client("c", **returning(name, SHORT))
    waits, gone, too_late = (own(broker, "c", each) for each in (kept, lost, late))
    client("a").send(by_all(waits), "pending", persistent="true")
    [message] = kept.take()  # acknowledged by nobody
    assert message.body == "pending"
    kept.unsubscribe("box")
    client("a").send(by_all(waits), "later", persistent="true")
    broker.crash("c")
    nowhere(broker, gone)
    nowhere(broker, too_late)
    again = client("b", **returning(f"{name}.kept"))
    again.subscribe("/temp-queue/box", id="box")
    assert again.bodies()[-1] == "later"
    again.leave()
    nowhere(broker, waits)


# -- auto-created


@pytest.mark.scenario("L08", "L18")
def test_when_nobody_used_it_for_the_time_it_goes_wherever_it_was_used_and_an_operators_own_stays(broker, client, name):
    queue = broker.queue_at("a", name)
    stays = Destination.queue(f"{name}.admin")
    broker["b"].ask(lambda admin: admin.create(stays))
    consumer = client("b")
    consumer.subscribe(f"/queue/{queue}")
    sender = client("a")
    sender.send(f"/queue/{queue}", "one")
    assert consumer.bodies() == ["one"]
    consumer.unsubscribe()
    sender.leave()
    log = str(Destination.queue(queue))
    wait_until(lambda: stored(broker, log) is None, "nobody uses it")
    for node in broker.nodes.values():
        wait_until(
            lambda node=node: not node.look(lambda: Destination.parse(log) in node.node.broker.queues), "it is gone"
        )
    assert stored(broker, str(stays))["declared"]


@pytest.mark.scenario("L19", "L20")
def test_one_that_is_used_again_in_time_stays_and_one_that_is_emptied_goes_after_another_while(broker, client, name):
    unused, again, full = (broker.queue_at("b", f"{name}.{each}") for each in ("unused", "again", "full"))
    consumer, sender = client("a"), client("b")
    sender.send(f"/queue/{full}", "kept", persistent="true")
    sender.leave()
    for queue in (unused, again):
        consumer.subscribe(f"/queue/{queue}", id=queue)
        consumer.unsubscribe(queue)
    consumer.subscribe(f"/queue/{again}", id="later")
    wait_until(lambda: stored(broker, f"queue://{unused}") is None, "the time is over")
    assert stored(broker, f"queue://{again}")
    assert broker.depth(full) == 1
    broker["b"].ask(lambda admin: admin.purge(Destination.queue(full)))
    wait_until(lambda: stored(broker, f"queue://{full}") is None, "it goes, too")


@pytest.mark.scenario("L22", "L23")
def test_one_that_holds_a_message_stays_also_when_all_nodes_begin_anew_and_empty_ones_go_then(redis_url, name):
    with several_nodes(redis_url, "a", "b", auto_destroy_after=60_000) as several:
        for each in ("empty", "kept"):
            sender = several["b"].client()
            sender.send(f"/queue/{name}.{each}", each, persistent="true")
            sender.leave()
        several["a"].ask(lambda admin: admin.create(Destination.queue(f"{name}.admin")))
        several["a"].ask(lambda admin: admin.purge(Destination.queue(f"{name}.empty")))
        for node in "ab":
            several.stop(node)
        several.start("b")
        wait_until(lambda: stored(several, f"queue://{name}.empty") is None, "nothing is in it")
        assert several["b"].bodies(f"{name}.kept") == ["kept"]
        assert stored(several, f"queue://{name}.admin")["declared"]


def test_a_temporary_queue_of_another_broker_of_the_cluster_stays_where_one_node_is_told_of_it_before_the_other(
    broker, client
):
    queue = Destination.parse("temp-queue://ID:X-87a03350-4:1")
    a, b = broker["a"], broker["b"]
    a.look(lambda: a.node.broker.temporaries.host_remote(queue))
    a.do(a.node.broker.commits.barrier)  # b has learned of it by now
    b.do(b.node.broker.commits.barrier)  # and has written what follows
    b.look(lambda: b.node.broker.temporaries.host_remote(queue))
    consumer = client("a")
    consumer.subscribe(queue.stomp)
    client("b").send(queue.stomp, "reply")
    assert consumer.bodies() == ["reply"]
    a.look(lambda: a.node.broker.temporaries.remove(queue))
    wait_until(lambda: not has(broker, "b", str(queue)), "it is gone at both")
