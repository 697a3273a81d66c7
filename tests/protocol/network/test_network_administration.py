"""Test network connectors at run time: status, changes, and who may be a bridge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brokerapp.config import Authentication, ConfiguredGrant, TransportConnector, User
from brokerapp.errors import DefinitionRefused, RequestRefused
from brokerapp.model.definitions import Definitions, RedeliveryPolicy, RedeliverySettings
from brokerapp.model.destination import Destination
from brokerapp.model.network_stats import BridgeConnectionState, ConnectorStats, NetworkStats
from brokerapp.network.bridge.bridge import Bridge
from tests.protocol.networking import (
    QUICK,
    bridged,
    duplex_pair,
    running,
    to,
    wait_for_demand,
)
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def pair(store) -> Iterator[tuple[RunningNode, RunningNode]]:
    """A and B; A has a duplex bridge to B."""
    with duplex_pair(store) as both:
        yield both


def stats_of(node: RunningNode) -> NetworkStats:
    return node.ask(lambda admin: admin.networks.stats())


def connector_of(node: RunningNode) -> ConnectorStats:
    return stats_of(node).connectors[0]


@pytest.mark.scenario("NB-67")
def test_a_broker_tells_what_its_bridges_did_and_for_whom(pair, connect, name):
    a, b = pair
    [before] = connector_of(a).ways
    consumer, other = connect(port=b.port), connect(port=b.port)
    consumer.subscribe(f"/queue/{name}")
    other.subscribe(f"/queue/{name}")
    wait_for_demand(a, f"queue://{name}")
    sender = connect(port=a.port)
    for _ in range(3):
        sender.send(f"/queue/{name}", "12345", persistent="true")
    wait_until(lambda: consumer.messages.qsize() + other.messages.qsize() == 3, "the messages")
    wait_until(lambda: connector_of(a).ways[0].bridges[0].under_way == 0, "the receipts")
    [way] = connector_of(a).ways
    assert (way.state, way.remote, way.address) == (
        BridgeConnectionState.CONNECTED,
        b.name,
        f"tcp://127.0.0.1:{b.port}",
    )
    out, back = way.bridges
    assert (out.source, out.target, back.source, back.target) == (a.name, b.name, b.name, a.name)
    assert out.forwarded - before.bridges[0].forwarded == 3
    assert out.forwarded_bytes - before.bridges[0].forwarded_bytes == 15
    found = a.ask(lambda admin: admin.networks.demand("bridge"))
    [demand] = [each for each in found[b.name, "out"] if each.destination == f"queue://{name}"]
    assert (len(demand.consumers), demand.forwarded, demand.path) == (2, 3, [b.name])
    [incoming] = stats_of(b).incoming
    assert (incoming.broker, incoming.received >= 3) == (a.name, True)


def test_what_was_here_already_is_counted_for_the_bridge_that_brings_it_again(pair, connect, name):
    bridge = connect(port=pair[1].port, **{"sluice-broker": f"far-{name}"})
    for _ in range(3):
        bridge.send(f"/queue/{name}", persistent="true", **{"message-id": "1", "sluice-path": "far"})
    [incoming] = [each for each in stats_of(pair[1]).incoming if each.broker == f"far-{name}"]
    assert (incoming.received, incoming.duplicates) == (3, 2)


def test_messages_that_came_too_far_are_counted_where_they_do_not_cross(store, connect, name):
    with running(store) as c, running(store, to(c.port)) as b, running(store, to(b.port)) as a:
        wait_until(lambda: bridged(a) and bridged(b), "the bridges")
        middle, end = connect(port=b.port), connect(port=c.port)
        for client in (middle, end):
            client.subscribe(f"/topic/{name}")
        wait_for_demand(a, f"topic://{name}")
        wait_for_demand(b, f"topic://{name}")
        connect(port=a.port).send(f"/topic/{name}", "from a")
        assert middle.bodies() == ["from a"]
        assert connector_of(b).ways[0].bridges[0].dropped_by_ttl == 1
        assert end.has_no_more()


def test_listeners_are_told_of_bridges_at_both_ends(pair, connect):
    a, b = pair
    for node, other, by_duplex in ((a, b, "false"), (b, a, "true")):
        listener = connect(port=node.port)
        listener.subscribe("/topic/ActiveMQ.Advisory.NetworkBridge", **{"transformation": "jms-advisory-json"})
        [told] = listener.take()
        assert (told.headers["started"], told.headers["createdByDuplex"]) == ("true", by_duplex)
        assert f'"brokerName":"{other.name}"' in told.body


@pytest.mark.scenario("NB-65")
def test_a_connector_is_made_changed_stopped_and_removed_while_the_broker_runs(store, connect, name):
    with running(store) as b, running(store) as a:
        definition = {"name": "new", "uri": f"static:(tcp://127.0.0.1:{b.port}){QUICK}", "excluded": ["queue://no.>"]}
        a.ask(lambda admin: admin.networks.put_connector(definition))
        wait_until(lambda: bridged(a), "the bridge")
        consumer, sender = connect(port=b.port), connect(port=a.port)
        consumer.subscribe(f"/queue/no.{name}")
        changed = {**definition, "excluded": [], "options": {"userName": "u", "password": "secret"}}
        a.ask(lambda admin: admin.networks.put_connector(changed))
        sender.send(f"/queue/no.{name}", "crosses now", persistent="true")
        assert consumer.bodies() == ["crosses now"]
        told = connector_of(a)
        assert told.definition["options"] == {"userName": "u", "password": None}
        a.ask(lambda admin: admin.networks.put_connector(told.definition))  # as a form gives it back
        assert a.look(lambda: next(iter(a.node.network)).options.password) == "secret"
        a.ask(lambda admin: admin.networks.stop("new"))
        assert [(each.state, each.bridges[0].demand) for each in connector_of(a).ways] == [
            (BridgeConnectionState.STOPPED, 0)
        ]
        sender.send(f"/queue/no.{name}", "waits", persistent="true")
        assert consumer.has_no_more()
        a.ask(lambda admin: admin.networks.start("new"))
        assert consumer.bodies() == ["waits"]
        a.ask(lambda admin: admin.networks.remove_connector("new"))
        assert stats_of(a).connectors == []


def test_a_connector_of_an_operator_is_there_after_a_restart_and_one_that_is_wrong_never(store):
    with running(store) as b, running(store, to(b.port, name="of the file")) as a:
        for wrong, why in (
            ({"name": "x", "uri": "static:(nonsense)"}, "nonsense"),
            ({"name": "x", "uri": f"tcp://127.0.0.1:{b.port}", "options": {"prefetchSize": "0"}}, "from 1 to"),
            ({"name": "x", "uri": f"tcp://127.0.0.1:{b.port}", "options": {"networkTtl": "2"}}, "networkTtl"),
            ({"name": "x", "url": "u"}, "unknown fields of a network connector: url"),
            ({"name": "", "uri": "u"}, "name of a network connector is missing"),
        ):
            with pytest.raises(DefinitionRefused, match=why):
                a.ask(lambda admin, wrong=wrong: admin.networks.put_connector(wrong))
        with pytest.raises(RequestRefused, match="network connector 'y' not found"):
            a.ask(lambda admin: admin.networks.start("y"))
        a.ask(lambda admin: admin.networks.put_connector({"name": "new", "uri": f"tcp://127.0.0.1:{b.port}"}))
        a.ask(lambda admin: admin.networks.remove_connector("of the file"))
        a.restart()
        assert [each.name for each in stats_of(a).connectors] == ["new"]


def test_a_stored_connector_that_this_version_refuses_is_left_out_and_stays_in_the_store(store, caplog):
    with running(store) as b, running(store, to(b.port, name="fine"), to(b.port, name="odd")) as a:

        async def spoil() -> None:
            kept = await a.node._store.connectors.read()
            odd = kept.replace('"name": "odd"', '"name": "odd", "colour": "blue"')
            assert await a.node._store.connectors.replace(kept, odd)

        a.do(spoil)
        a.restart()
        assert [each.name for each in stats_of(a).connectors] == ["fine"]
        assert (
            "the stored network connector odd is invalid and ignored: unknown fields of a network connector: colour"
            in caplog.text
        )
        a.ask(lambda admin: admin.networks.stop("fine"))
        assert '"colour": "blue"' in a.do(a.node._store.connectors.read)
        a.ask(lambda admin: admin.networks.put_connector(to(b.port, name="odd").to_json()))
        assert {each.name for each in stats_of(a).connectors} == {"fine", "odd"}
        assert "colour" not in a.do(a.node._store.connectors.read)


def test_why_there_is_no_bridge_and_when_it_is_tried_again_is_told(store):
    with running(store, to(1)) as a:

        def failed() -> bool:
            [way] = connector_of(a).ways
            return (
                way.state is BridgeConnectionState.WAITING
                and way.attempts > 1
                and way.next_attempt_ms > way.last_error_ms > 0
            )

        wait_until(failed, "a second failure")
        assert "refused" in connector_of(a).ways[0].last_error.lower()


@pytest.fixture(scope="module")
def guarded(store) -> Iterator[RunningNode]:
    """A broker with rights: `ann` may do everything, `bob` only uses destinations."""
    groups = frozenset({"admins"}), frozenset({"users"})
    users = (User("ann", "a", groups[0]), User("bob", "b", groups[1]))
    everybody = groups[0] | groups[1]
    grants = (
        ConfiguredGrant(Destination.queue(">"), everybody, everybody, everybody),
        ConfiguredGrant(Destination.topic(">"), groups[0], groups[0], groups[0]),
        ConfiguredGrant(Destination.topic("ActiveMQ.Advisory.>"), everybody, everybody, everybody),
    )
    with running(store, authentication=Authentication(users), authorization=grants) as node:
        yield node


def test_who_may_not_be_a_bridge_is_refused_and_who_may_is_let_in(store, guarded, connect, name):
    def connector(user: str, password: str):
        return to(guarded.port, userName=user, password=password)

    with running(store, connector("bob", "b")) as a:
        wait_until(lambda: "may not be a bridge" in connector_of(a).ways[0].last_error, "the refusal")
    with running(store, connector("ann", "a")) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer = connect(port=guarded.port, login="bob", passcode="b")
        consumer.subscribe(f"/queue/{name}")
        connect(port=a.port).send(f"/queue/{name}", "crosses", persistent="true")
        assert consumer.bodies() == ["crosses"]


def test_what_the_other_broker_refuses_stays_and_is_tried_again_while_all_else_crosses(
    store, connect, name, monkeypatch
):
    all_, none = frozenset({"all"}), frozenset({"none"})
    grants = (
        ConfiguredGrant(Destination.queue("open.>"), all_, all_, all_),
        ConfiguredGrant(Destination.queue("closed.>"), all_, none, all_),
        ConfiguredGrant(Destination.topic(">"), all_, all_, all_),
    )
    monkeypatch.setattr("brokerapp.network.bridge.refused_messages.PAUSE_SECONDS", 0.1)
    monkeypatch.setattr("brokerapp.network.bridge.refused_messages.RETRY_SECONDS", 0.3)
    tries, not_taken = [], Bridge._on_message_refused
    monkeypatch.setattr(Bridge, "_on_message_refused", lambda *refused: tries.append(refused) or not_taken(*refused))
    closed, open_ = f"closed.{name}", f"open.{name}"
    account = {"userName": "ann", "password": "a", "advisoryForFailedForward": "true"}
    login = Authentication((User("ann", "a", all_),))
    with (
        running(store, authentication=login, authorization=grants) as b,
        running(store, to(b.port, **account)) as a,
    ):
        wait_until(lambda: bridged(a), "the bridge")
        told = connect(port=a.port)
        told.subscribe("/topic/ActiveMQ.Advisory.NetworkBridge.ForwardFailure")
        consumer = connect(port=b.port, login="ann", passcode="a")
        for id, queue in enumerate((closed, open_)):
            consumer.subscribe(f"/queue/{queue}", id=str(id))
        sender = connect(port=a.port)
        for number in range(3):
            for queue in (closed, open_):
                sender.send(f"/queue/{queue}", str(number), persistent="true")
        assert consumer.bodies(3) == ["0", "1", "2"]
        wait_until(lambda: a.depth(open_) == 0, "the acknowledgements")
        assert a.bodies(closed) == ["0", "1", "2"]
        wait_until(lambda: closed in connector_of(a).ways[0].last_error, "what is refused alone, too")
        [way] = connector_of(a).ways
        assert (way.state, way.connections) == (BridgeConnectionState.CONNECTED, 1)
        assert "write" in way.last_error
        first = told.take()[0]
        assert f'"string":"{closed}"' in first.body
        assert "write" in first.headers["cause"]
        [why] = a.ask(lambda admin: admin.networks.diagnose(Destination.queue(closed)))
        assert "temporarily rejected by the other broker" in why["reason"]
        [demand] = a.ask(lambda admin: admin.networks.demand("bridge")).values()
        assert {each.destination for each in demand if each.aside} == {f"queue://{closed}"}
        before = len(tries)
        wait_until(lambda: len(tries) > before, "another try")
        assert connector_of(a).ways[0].bridges[0].refused == 3, "each counts once"
        assert consumer.has_no_more()


@pytest.mark.parametrize("option", ["wireFormat.maxDataLength", "wireFormat.maxFrameSize"])
def test_a_message_longer_than_the_other_broker_takes_is_a_dead_letter_while_all_others_cross(
    store, connect, name, option
):
    """That broker ends the connection at it, as often as it comes."""
    listening = TransportConnector("stomp", "stomp", "127.0.0.1", 0, ((option, "5000"),))
    with running(store, connectors=(listening,)) as b, running(store, to(b.port)) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer, sender = connect(port=b.port), connect(port=a.port)
        consumer.subscribe(f"/queue/{name}")
        for body in ("before", "x" * 5_000 + "x", "after"):
            sender.send(f"/queue/{name}", body, persistent="true")
        assert consumer.bodies(2) == ["before", "after"]
        wait_until(lambda: a.depth("ActiveMQ.DLQ") == 1, "the dead letter")
        [way] = connector_of(a).ways
        assert (way.connections, way.bridges[0].refused) == (1, 1)
        assert f"of /queue/{name}, which is dead-lettered here: its " in way.last_error
        assert option.removeprefix("wireFormat.") in way.last_error


def test_what_is_too_long_dies_at_once_saying_why_and_is_not_lost_where_dead_letters_lie(store, connect, name):
    """Whatever the redelivery policy says: it would be as long the next time. Dead letters that fail are dropped."""
    for_ever = Definitions(redelivery=RedeliverySettings((RedeliveryPolicy(Destination.parse("queue://>"), -1),)))
    short = TransportConnector("stomp", "stomp", "127.0.0.1", 0, (("wireFormat.maxDataLength", "5000"),))
    with running(store, connectors=(short,)) as b, running(store, to(b.port), definitions=for_ever) as a:
        wait_until(lambda: bridged(a), "the bridge")
        consumer, sender, long = connect(port=b.port), connect(port=a.port), "x" * 5_001
        for id, queue in enumerate((name, "ActiveMQ.DLQ")):
            consumer.subscribe(f"/queue/{queue}", id=str(id))
        wait_for_demand(a, f"queue://{name}", "queue://ActiveMQ.DLQ")
        sender.send("/queue/ActiveMQ.DLQ", long, persistent="true")
        wait_until(lambda: "ActiveMQ.DLQ stays there" in connector_of(a).ways[0].last_error, "what became of it")
        sender.send(f"/queue/{name}", long, persistent="true")

        def aside() -> list[str]:
            [demand] = a.ask(lambda admin: admin.networks.demand("bridge")).values()
            return [each.aside for each in demand if each.aside and each.destination == "queue://ActiveMQ.DLQ"]

        wait_until(aside, "the dead letter to be given to the bridge")
        sender.send("/queue/ActiveMQ.DLQ", "a short one", persistent="true")
        assert consumer.bodies() == ["a short one"], "it keeps nothing else"
        why = "its body has 5,001 bytes, more than 5,000 (maxDataLength)"
        assert why in aside()[0]
        wait_until(lambda: a.depth("ActiveMQ.DLQ") == 2, "both")
        reader = connect(port=a.port)
        reader.subscribe("/queue/ActiveMQ.DLQ", browser="true")
        _, dead = reader.take(2)
        assert dead.headers["dlqDeliveryFailureCause"].endswith(
            f"(permanently rejected by {b.name}: {why}), delivery 1"
        )


def test_why_a_message_does_not_cross_is_told(store, connect, name):
    with running(store) as b, running(store, to(b.port)) as a:
        wait_until(lambda: bridged(a), "the bridge")

        def why(seq: int | None = None) -> str:
            [told] = a.ask(lambda admin: admin.networks.diagnose(Destination.queue(name), seq))
            assert (told["connector"], told["remote"], told["crosses"]) == ("bridge", b.name, not told["reason"])
            return told["reason"]

        connect(port=a.port).send(f"/queue/{name}", "stays", persistent="true")
        assert "no consumers within" in why()
        [stays] = a.browse(name)
        far = connect(port=a.port, **{"sluice-broker": "far"})
        far.send(f"/queue/{name}", "far", persistent="true", **{"message-id": "x", "sluice-path": "far"})
        consumer = connect(port=b.port)
        consumer.subscribe(f"/queue/{name}")
        assert consumer.bodies() == ["stays"]
        wait_until(lambda: len(a.browse(name)) == 1, "the acknowledgement")
        assert why() == ""
        [came] = a.browse(name)
        assert "messageTTL" in why(came.seq)
        with pytest.raises(RequestRefused, match=f"message {stays.seq}"):
            why(stays.seq)
        a.ask(lambda admin: admin.networks.stop("bridge"))
        assert why() == "the connector is stopped"
