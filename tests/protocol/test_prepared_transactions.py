"""Branches of distributed transactions: prepared, recovered and ended by any client, also after a restart."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from brokerapp.model.destination import Destination
from brokerapp.openwire.commands import (
    ConnectionId,
    DataArrayResponse,
    ExceptionResponse,
    IntegerResponse,
    RemoveInfo,
    Response,
    TransactionInfo,
    XATransactionId,
)
from brokerapp.openwire.session.transactions import TransactionOperation, transaction_name
from tests.protocol.openwire_client import OpenWireClient, queue, text_of, topic
from tests.protocol.running_node import RunningNode, node_of
from tests.waiting import wait_until

XML = """
<broker brokerName="prepared-transactions" schedulerSupport="true">
  <systemUsage><systemUsage><storeUsage><storeUsage limit="1 mb"/></storeUsage></systemUsage></systemUsage>
  <transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:0"/></transportConnectors>
</broker>"""
OK, READ_ONLY = 0, 3


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    with node_of(XML, store) as running:
        yield running


@pytest.fixture
def client(node) -> Iterator[OpenWireClient]:
    with OpenWireClient(node.port) as connected:
        yield connected


def xid(name: str, branch: str = "1") -> XATransactionId:
    return XATransactionId(4711, name.encode()[-64:], branch.encode())


def ask(client: OpenWireClient, operation: str, id: XATransactionId | None):
    info = TransactionInfo(
        connection_id=ConnectionId(client.connection_id), transaction_id=id, type=TransactionOperation[operation]
    )
    return client.ask(info)


def begin(client: OpenWireClient, name: str, branch: str = "1") -> XATransactionId:
    assert type(ask(client, "BEGIN", xid(name, branch))) is Response
    return xid(name, branch)


def send(client: OpenWireClient, id: XATransactionId, where, *texts: str) -> None:
    for text in texts:
        assert type(client.ask(client.message(where, text, transaction_id=id))) is Response


def vote(client: OpenWireClient, id: XATransactionId) -> int:
    answer = ask(client, "PREPARE", id)
    assert isinstance(answer, IntegerResponse), answer
    return answer.result


def code(answer: Response) -> str:
    assert isinstance(answer, ExceptionResponse), answer
    assert answer.exception.class_name == "javax.transaction.xa.XAException"
    return answer.exception.message.rpartition(":")[2]


def recovered(client: OpenWireClient, name: str) -> list[str]:
    answer = ask(client, "RECOVER", None)
    assert isinstance(answer, DataArrayResponse)
    ours = [each for each in answer.data or () if each.global_transaction_id == xid(name).global_transaction_id]
    return [each.branch_qualifier.decode() for each in ours]


def redeliveries(client: OpenWireClient, count: int) -> list[tuple[str | None, int]]:
    return [(text_of(each), each.redelivery_counter) for each in client.dispatches(count)]


@pytest.fixture
def prepared(node, name) -> XATransactionId:
    """A branch that took `in-1` of two messages and sent two to a queue; its client is gone."""
    with OpenWireClient(node.port) as client:
        client.send(queue(name), "in-1", "in-2")
        client.consumer(1, queue(name), prefetch=1)
        id = begin(client, name)
        [first] = client.dispatches(1)
        client.acknowledge(first, transaction_id=id)
        send(client, id, queue(f"{name}.out"), "out-1", "out-2")
        assert vote(client, id) == OK
    return id


@pytest.mark.parametrize("restarts", [False, True])
def test_any_client_commits_what_another_one_prepared(node, name, prepared, restarts):
    if restarts:
        node.restart()
    with OpenWireClient(node.port) as client:
        assert recovered(client, name) == ["1"]
        assert (node.bodies(name), node.bodies(f"{name}.out")) == (["in-2"], [])
        assert type(ask(client, "COMMIT_TWO_PHASE", prepared)) is Response
        assert recovered(client, name) == []
        client.consumer(1, queue(name))
        client.consumer(2, queue(f"{name}.out"))
        assert sorted(client.texts(3)) == ["in-2", "out-1", "out-2"]
        assert code(ask(client, "COMMIT_TWO_PHASE", prepared)) == "-4"


@pytest.mark.parametrize("operation", ["ROLLBACK", "FORGET"])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_a_branch_took_comes_back_when_any_client_rolls_it_back(node, name, prepared, restarts, operation):
    if restarts:
        node.restart()
    with OpenWireClient(node.port) as client:
        assert type(ask(client, operation, prepared)) is Response
        assert (recovered(client, name), node.bodies(f"{name}.out")) == ([], [])
        client.consumer(1, queue(name))
        found = dict(redeliveries(client, 2))
        assert (found.keys(), found["in-1"]) == ({"in-1", "in-2"}, 1)
        assert code(ask(client, "ROLLBACK", prepared)) == "-4"


def test_a_consumer_keeps_what_was_rolled_back_as_its_application_gets_it_again(node, client, name):
    client.send(queue(name), "a", "b")
    consumer = client.consumer(1, queue(name))
    id = begin(client, name)
    a, _ = client.dispatches(2)
    client.acknowledge(a, transaction_id=id)
    assert vote(client, id) == OK
    assert type(ask(client, "ROLLBACK", id)) is Response
    with OpenWireClient(node.port) as other:
        other.consumer(1, queue(name))
        assert other.texts(0) == []
    again = begin(client, name, "2")
    assert type(client.acknowledge(a, transaction_id=again)) is Response
    assert type(ask(client, "COMMIT_ONE_PHASE", again)) is Response
    assert node.bodies(name) == ["b"]
    client.ask(RemoveInfo(object_id=consumer, last_delivered_sequence_id=-2))
    wait_until(lambda: node.numbers(Destination.queue(name)).InFlightCount == 0, "nothing is in flight")
    assert node.depth(name) == 1


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_consumer_keeps_what_another_client_rolled_back(node, client, name, is_prepared):
    client.send(queue(name), "a", "b")
    client.consumer(1, queue(name))
    id = begin(client, name)
    a, _ = client.dispatches(2)
    client.acknowledge(a, transaction_id=id)
    with OpenWireClient(node.port) as other:
        if is_prepared:
            assert vote(client, id) == OK
        else:
            begin(other, name)
        assert type(ask(other, "ROLLBACK", id)) is Response
    assert type(client.acknowledge(a)) is Response
    wait_until(lambda: node.bodies(name) == ["b"], "it is acknowledged")


@pytest.mark.parametrize("ends", ["COMMIT_ONE_PHASE", "COMMIT_TWO_PHASE", "ROLLBACK"])
def test_nothing_is_kept_of_a_branch_that_another_client_ended(node, client, name, ends):
    client.send(queue(name), "a")
    client.consumer(1, queue(name))
    id = begin(client, name)
    [a] = client.dispatches(1)
    client.acknowledge(a, transaction_id=id)
    with OpenWireClient(node.port) as other:
        begin(other, name)
        if ends == "COMMIT_TWO_PHASE":
            assert vote(other, id) == OK
        assert type(ask(other, ends, id)) is Response
    [connection] = node.look(
        lambda: [each.sink for each in node.node.broker.clients.values() if each.connection_id == client.connection_id]
    )
    assert not connection._session.transactions._settled


def test_a_branch_may_begin_and_end_with_what_it_acknowledges_in_one_write(node, client, name):
    client.send(queue(name), "a")
    client.consumer(1, queue(name))
    [a] = client.dispatches(1)
    begins, ends = [
        TransactionInfo(connection_id=ConnectionId(client.connection_id), transaction_id=xid(name), type=each)
        for each in (TransactionOperation.BEGIN, TransactionOperation.COMMIT_ONE_PHASE)
    ]
    client.tell_together(begins, client.ack_of(a, transaction_id=xid(name)), ends)
    wait_until(lambda: not node.depth(name), "it is acknowledged")


def test_several_clients_take_part_in_a_branch(node, client, name):
    with OpenWireClient(node.port) as other:
        id = begin(client, name)
        begin(other, name)
        send(client, id, queue(name), "a")
        send(other, id, queue(name), "b")
        send(client, id, queue(name), "c")
        assert vote(other, id) == OK
    assert node.bodies(name) == []
    assert type(ask(client, "COMMIT_TWO_PHASE", id)) is Response
    assert node.bodies(name) == ["a", "b", "c"]


def test_what_is_not_prepared_is_rolled_back_when_a_client_that_takes_part_goes(node, client, name):
    with OpenWireClient(node.port) as other:
        id = begin(other, name)
        send(other, id, queue(name), "lost")
        begin(client, name)
    transactions, opened = node.node.broker.transactions, transaction_name(id)
    wait_until(lambda: node.look(lambda: transactions.branch(opened)) is None, "it is over")
    assert code(ask(client, "COMMIT_ONE_PHASE", id)) == "-4"
    assert node.bodies(name) == []


def test_a_branch_in_which_nothing_was_done_is_over_when_it_is_prepared(client, name):
    id = begin(client, name)
    assert vote(client, id) == READ_ONLY
    assert recovered(client, name) == []
    assert code(ask(client, "COMMIT_TWO_PHASE", id)) == "-4"


def test_a_branch_is_committed_in_one_phase_or_prepared_before(node, client, name):
    id = begin(client, name)
    send(client, id, queue(name), "a")
    assert code(ask(client, "COMMIT_TWO_PHASE", id)) == "-6"
    assert type(ask(client, "COMMIT_ONE_PHASE", id)) is Response
    assert node.bodies(name) == ["a"]


def test_a_transport_that_reconnects_repeats_a_prepared_branch_in_vain(node, name):
    with OpenWireClient(node.port) as client:
        id = begin(client, name)
        send(client, id, queue(name), "a")
        assert vote(client, id) == OK
    with OpenWireClient(node.port, connection_id=client.connection_id) as again:
        begin(again, name)
        send(again, id, queue(name), "a")
        assert vote(again, id) == OK
        assert type(ask(again, "COMMIT_TWO_PHASE", id)) is Response
    assert node.bodies(name) == ["a"]


def test_those_who_listen_to_a_topic_when_a_branch_is_committed_get_what_it_sent(client, name):
    id = begin(client, name)
    send(client, id, topic(name), "a", "b")
    assert vote(client, id) == OK
    client.consumer(1, topic(name))
    assert client.texts(0) == []
    ask(client, "COMMIT_TWO_PHASE", id)
    assert client.texts(2) == ["a", "b"]


def test_a_branch_sends_to_the_queues_of_a_virtual_topic_that_were_there_then(node, client, name):
    client.consumer(1, queue(f"Consumer.A.VirtualTopic.{name}"))
    id = begin(client, name)
    send(client, id, topic(f"VirtualTopic.{name}"), "a")
    assert vote(client, id) == OK
    client.consumer(2, queue(f"Consumer.B.VirtualTopic.{name}"))
    ask(client, "COMMIT_TWO_PHASE", id)
    [copy] = client.dispatches(1)
    assert (copy.consumer_id.value, text_of(copy)) == (1, "a")


def test_what_a_durable_subscription_gave_a_branch_comes_back_to_it(node, name):
    with OpenWireClient(node.port, client_id=name) as client:
        client.consumer(1, topic(name), subscription_name="d")
        client.send(topic(name), "a", "b")
        id = begin(client, name)
        a, _ = client.dispatches(2)
        client.acknowledge(a, transaction_id=id)
        assert vote(client, id) == OK
    with OpenWireClient(node.port, client_id=name) as again:
        again.consumer(1, topic(name), subscription_name="d")
        assert again.texts(1) == ["b"]
        ask(again, "ROLLBACK", id)
        assert redeliveries(again, 1) == [("a", 1)]


def test_what_a_listener_of_a_topic_acknowledged_is_with_it_again_after_a_rollback(client, name):
    client.consumer(1, topic(name))
    client.send(topic(name), "a")
    id = begin(client, name)
    [a] = client.dispatches(1)
    client.acknowledge(a, transaction_id=id)
    assert vote(client, id) == OK
    ask(client, "ROLLBACK", id)
    assert type(client.acknowledge(a)) is Response


def test_a_branch_that_the_store_has_no_room_for_is_rolled_back(node, client, name):
    client.send(queue(name), "in")
    client.consumer(1, queue(name))
    id = begin(client, name)
    [first] = client.dispatches(1)
    client.acknowledge(first, transaction_id=id)
    for _ in range(12):
        send(client, id, queue(f"{name}.out"), "x" * 100_000)
    assert code(ask(client, "PREPARE", id)) == "100"
    assert recovered(client, name) == []
    assert type(client.acknowledge(first)) is Response
    assert node.look(lambda: node.node.broker.quotas.transaction_bytes) == 0


@pytest.mark.parametrize(
    ("verb", "bodies"),
    [("commit-transaction", (["in-2"], ["out-1", "out-2"])), ("rollback-transaction", (["in-2", "in-1"], []))],
)
def test_an_operator_sees_a_prepared_transaction_and_ends_it(node, name, prepared, verb, bodies):
    id = transaction_name(prepared)
    [found] = [each for each in brokerctl(node, "transactions") if each["id"] == id]
    assert (found["sends"], found["acks"], found["client_id"][:5]) == (2, 1, "test-")
    assert brokerctl(node, verb, id)["transaction"] == id
    assert (node.bodies(name), node.bodies(f"{name}.out")) == bodies
    with pytest.raises(CommandError, match="neither open nor prepared"):
        brokerctl(node, verb, id)


def brokerctl(node: RunningNode, *arguments: str):
    out = StringIO()
    call_command("brokerctl", *arguments, "--json", redis=node.redis_url, name=node.name, stdout=out)
    return json.loads(out.getvalue())
