"""Test what a node records: depths, bridges, sampling by policy, and a full store."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace

import pytest
import redis

from analytics.model.measures import ARRIVALS, REMOVALS, UNDONE
from brokerapp.config import TransportConnector, default_config
from brokerapp.model.definitions import PolicyEntry
from brokerapp.model.destination import Destination
from brokerapp.openwire.commands import ConnectionId, TransactionInfo, XATransactionId
from brokerapp.openwire.session.transactions import TransactionOperation
from brokerapp.store.client.keys import trace_key
from brokerapp.tracing.decoding import decode
from brokerapp.tracing.schema import ORDER
from console.topology.node_facts import NodeSummary
from tests.protocol.clients import StompClient
from tests.protocol.networking import bridged, running, to, wait_for_demand
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.protocol.running_node import RunningNode
from tests.waiting import wait_until

BROKER = "recording-depths"


def recorded(store, broker: str = BROKER) -> list[dict]:
    with redis.Redis.from_url(store.url) as client:
        batches = [fields[b"b"] for _, fields in client.xrange(trace_key(broker))]
    return [row for batch in batches for row in decode(batch).to_pylist()]


@contextmanager
def without_memory(store):
    """The server takes nothing that needs memory."""
    with redis.Redis.from_url(store.url) as client:
        client.config_set("maxmemory", 1)
        try:
            yield
        finally:
            client.config_set("maxmemory", 0)


def test_events_that_the_store_has_no_room_for_are_counted_and_shown_to_operators(store, monkeypatch):
    monkeypatch.setattr("brokerapp.runtime.reporting.node_reports.TICK_SECONDS", 0.1)
    node = RunningNode(default_config("recording-full", 0), store.url)
    client = StompClient(node.port, "1.2")

    def trace():
        [status] = node.ask(lambda admin: admin.nodes())
        return status.trace

    client.send("/queue/orders", "a")
    wait_until(lambda: (told := trace())["recorded"] and not told["pending"], "it is recorded")
    assert trace()["dropped"] == 0
    with without_memory(store):
        client.subscribe("/topic/anything", id="1")  # needs no memory of the store
        client.send("/topic/anything", "b")
        wait_until(lambda: trace()["dropped"] > 0, "what happened meanwhile is given up")
    told = trace()
    assert told["dropped"] < told["recorded"]
    facts = dict(NodeSummary(node.ask(lambda admin: admin.nodes())[0]).details)
    assert f"{told['dropped']} dropped" in facts["Trace events since start"]
    client.leave()
    node.stop()


def test_a_full_batch_of_events_is_written_before_the_tick_that_writes_the_others(store, monkeypatch):
    async def never(_reports):
        await asyncio.Future()

    monkeypatch.setattr("brokerapp.runtime.reporting.node_reports.NodeReports.run", never)
    monkeypatch.setattr("brokerapp.runtime.reporting.trace_writer.BATCH_EVENTS", 20)
    node = RunningNode(default_config("recording-full-batches", 0), store.url)
    client = StompClient(node.port, "1.2")
    for number in range(30):
        client.send("/queue/orders", str(number))
    wait_until(lambda: len(recorded(store, "recording-full-batches")) >= 20, "what fills a batch")
    client.leave()
    node.stop()


def test_a_node_records_the_depths_that_it_finds_and_leaves_and_that_no_other_ran_when_it_began(store):
    before = RunningNode(default_config(BROKER, 0), store.url)
    client = StompClient(before.port, "1.2")
    for body in ("a", "b", "c"):
        client.send("/queue/orders", body, persistent="true")
    client.connection.disconnect()
    before.stop()
    assert {row["kind"] for row in recorded(store)} >= {"enqueue", "forward"}

    RunningNode(default_config(BROKER, 0), store.url).stop()
    depths = [row for row in recorded(store) if row["kind"] == "depth"]
    assert {(row["destination"], row["size"]) for row in depths} == {("queue://orders", 3)}
    reasons = [row["reason"] for row in depths]
    assert (reasons[0], reasons[-1], reasons.count("start")) == ("changed", "changed", 1)


def test_a_policy_says_what_is_recorded_of_a_destination_and_may_change_while_the_node_runs(store):
    node = RunningNode(default_config(f"{BROKER}-chosen", 0), store.url)
    try:
        node.ask(lambda admin: _record(admin, PolicyEntry(Destination.queue("quiet.>"), record_one_in=0)))
        wait_until(lambda: node.look(lambda: node.node.broker.routing.table.samples_traces), "the new policy")
        client = StompClient(node.port, "1.2")
        client.send("/queue/quiet.one", "a")
        client.send("/queue/told", "b")
        client.connection.disconnect()
        quiet = node.numbers(Destination.queue("quiet.one"))
    finally:
        node.stop()
    assert (quiet.EnqueueCount, quiet.QueueSize) == (1, 1)  # what is counted does not depend on what is recorded
    events = [row for row in recorded(store, f"{BROKER}-chosen") if row["msg_id"]]
    assert {row["destination"] for row in events} == {"queue://told"}


def test_what_a_bridge_passes_on_is_recorded_at_both_ends_under_one_id(store):
    with running(store) as there, running(store, to(there.port)) as here:
        wait_until(lambda: bridged(here), "the bridge")
        consumer, sender = StompClient(there.port, "1.2"), StompClient(here.port, "1.2")
        consumer.subscribe("/queue/far")
        wait_for_demand(here, "queue://far")
        sender.send("/queue/far", "a", persistent="true")
        consumer.take()

        def told(node):
            rows = journey(store, node.name, "queue://far")
            return rows, [row["kind"] for row in rows]

        passed_on = ["enqueue", "forward", "dispatch", "bridge_forward", "ack"]
        wait_until(lambda: told(here)[1] == passed_on, "what happened here")
        wait_until(lambda: told(there)[1] == ["bridge_receive", "enqueue", "forward", "dispatch", "ack"], "and there")
        assert len({row["msg_id"] for node in (here, there) for row in told(node)[0] if row["msg_id"]}) == 1
        assert len({row["consumer"] for row in told(here)[0] if row["kind"] in passed_on[2:]}) == 1
        for client in (consumer, sender):
            client.connection.disconnect()


def test_what_another_broker_does_not_take_is_recorded_with_what_becomes_of_it(store):
    with running(store) as node:
        bridge, sender = StompClient(node.port, "1.2", **{"sluice-broker": "far"}), StompClient(node.port, "1.2")
        bridge.subscribe("/queue/far", ack="client-individual")
        sender.send("/queue/far", "a", persistent="true")
        [message] = bridge.take()
        bridge.nack(message)

        def told():
            return journey(store, node.name, "queue://far")

        wait_until(lambda: len(told()) >= 5, "what happened")
        assert [row["kind"] for row in told()] == ["enqueue", "forward", "dispatch", "bridge_refuse", "dead_letter"]
        refused, dead = told()[3:]
        assert refused["consumer"] == dead["consumer"] != ""
        assert (refused["reason"], "NACK" in dead["reason"]) == (None, True)
        for client in (bridge, sender):
            client.connection.disconnect()


@pytest.mark.parametrize("stays", [True, False], ids=["its consumer stays", "its consumer left"])
def test_what_a_prepared_transaction_acknowledged_is_recorded_as_back_when_it_is_rolled_back(store, name, stays):
    with running(store, connectors=(TransportConnector("openwire", "tcp", "127.0.0.1", 0),)) as node:
        client, id = OpenWireClient(node.port), XATransactionId(1, name.encode()[-64:], b"1")

        def perform(by: OpenWireClient, operation: TransactionOperation) -> None:
            about = ConnectionId(by.connection_id)
            by.ask(TransactionInfo(connection_id=about, transaction_id=id, type=operation))

        client.send(queue(name), "a")
        client.consumer(1, queue(name))
        perform(client, TransactionOperation.BEGIN)
        client.acknowledge(client.dispatches(1)[0], transaction_id=id)
        client.ask(client.message(queue(f"{name}.out"), "b", transaction_id=id))
        perform(client, TransactionOperation.PREPARE)
        if not stays:
            client.close()
            client = OpenWireClient(node.port)
        perform(client, TransactionOperation.ROLLBACK)
        wait_until(lambda: node.depth(name) == 1, "it is in its queue again")
        client.close()
        broker = node.name
    rows = journey(store, broker, f"queue://{name}")
    came, went = (sum(row["kind"] in kinds for row in rows) for kinds in (ARRIVALS, REMOVALS))
    assert (came, went) == (2, 1)
    assert [row["kind"] for row in rows][:5] == ["enqueue", "forward", "dispatch", "ack", "return"]
    assert rows[4]["reason"] == UNDONE
    [never_sent] = journey(store, broker, f"queue://{name}.out")
    assert (never_sent["kind"], never_sent["reason"]) == ("rollback", "a prepared transaction was rolled back")


def journey(store, broker: str, destination: str) -> list[dict]:
    """What happened to messages there, in order."""
    rows = [row for row in recorded(store, broker) if row["destination"] == destination and row["msg_id"]]
    return sorted(rows, key=lambda row: (row["ts"], ORDER.index(row["kind"])))


async def _record(admin, policy):
    current = await admin.definitions()
    await admin.define(replace(current, policies=(policy,)), "test")
