"""Test distributed transactions whose clients are at several nodes of a broker."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.openwire.commands import Response
from tests.nodes.conftest import SeveralNodes, several_nodes
from tests.protocol.openwire_client import OpenWireClient, queue
from tests.protocol.test_prepared_transactions import OK, READ_ONLY, ask, begin, code, recovered, send, vote
from tests.waiting import wait_until

CONNECTORS = (TransportConnector("openwire", "tcp", "127.0.0.1", 0),)
COMMIT, ROLL_BACK = "COMMIT_TWO_PHASE", "ROLLBACK"
NOT_FOUND = "-4"
_numbers = itertools.count(100)


@pytest.fixture(scope="module")
def broker(redis_url) -> Iterator[SeveralNodes]:
    with several_nodes(redis_url, "a", "b", connectors=CONNECTORS) as several:
        yield several


@pytest.fixture
def clients(broker) -> Iterator[tuple[OpenWireClient, OpenWireClient]]:
    with OpenWireClient(broker["a"].port) as here, OpenWireClient(broker["b"].port) as there:
        yield here, there


def taken(client: OpenWireClient, name: str, id) -> None:
    """Take the first message of a queue in a branch; the consumer, of one message, goes on."""
    client.consumer(1, queue(name), prefetch=1)
    [first] = client.dispatches(1)
    assert type(client.acknowledge(first, transaction_id=id)) is Response


def drained(client: OpenWireClient, name: str, count: int) -> Counter[str | None]:
    client.consumer(next(_numbers), queue(name))
    return Counter(client.texts(count))


@pytest.mark.parametrize("owner", "ab")
@pytest.mark.parametrize("end", [COMMIT, ROLL_BACK])
def test_a_branch_prepared_at_one_node_is_ended_at_another_when_its_client_is_gone(broker, clients, name, owner, end):
    here, there = clients
    where, out = broker.queue_at(owner, name), broker.queue_at(owner, f"{name}.out")
    here.send(queue(where), "1", "2")
    id = begin(here, name)
    taken(here, where, id)
    send(here, id, queue(out), "out")
    assert vote(here, id) == OK
    here.close()
    assert recovered(there, name) == ["1"]
    status = broker["a"].look(broker["a"].node.broker.branches.status)
    assert status["prepared"] >= 1  # those that another node ended are counted for a moment
    assert 0 <= time.time() * 1000 - status["oldest_ms"] < 60_000
    assert type(ask(there, end, id)) is Response
    assert recovered(there, name) == []
    assert code(ask(there, end, id)) == NOT_FOUND
    left = drained(there, where, 2 if end == ROLL_BACK else 1)
    assert left == (Counter("12") if end == ROLL_BACK else Counter("2"))
    assert drained(there, out, 0 if end == ROLL_BACK else 1) == (Counter() if end == ROLL_BACK else Counter(["out"]))


def test_what_is_rolled_back_at_another_node_stays_with_the_consumer_that_has_it_until_that_is_gone(
    broker, clients, name
):
    here, there = clients
    where = broker.queue_at("a", name)
    here.send(queue(where), "1")
    id = begin(here, name)
    taken(here, where, id)
    assert vote(here, id) == OK
    assert type(ask(there, ROLL_BACK, id)) is Response
    there.consumer(1, queue(where))
    assert there.texts(0) == []
    here.close()
    assert there.texts(1) == ["1"]


@pytest.mark.parametrize("end", [COMMIT, ROLL_BACK])
@pytest.mark.parametrize("prepares", [0, 1])
def test_clients_of_two_nodes_take_part_in_one_branch_which_ends_whole(broker, clients, name, prepares, end):
    where = [broker.queue_at(node, name) for node in "ab"]
    for client, name_there in zip(clients, where, strict=True):
        client.send(queue(name_there), "in")
        id = begin(client, name)
        taken(client, name_there, id)
        send(client, id, queue(f"{name}.out"), "out")
        ask(client, "END", id)
    assert vote(clients[prepares], id) == OK
    assert vote(clients[1 - prepares], id) == OK
    assert recovered(clients[0], name) == ["1"]
    assert [each.sends for each in broker.admin(lambda admin: admin.transactions.prepared())] == [2]
    assert type(ask(clients[1 - prepares], end, id)) is Response
    assert recovered(clients[0], name) == []
    assert drained(clients[0], f"{name}.out", 2 * (end == COMMIT)) == Counter({"out": 2} if end == COMMIT else {})
    for client in clients:
        client.close()
    with OpenWireClient(broker["a"].port) as client:
        for each in where:
            client.consumer(int(each == where[0]) + 1, queue(each))
        assert client.texts(0 if end == COMMIT else 2) == ([] if end == COMMIT else ["in", "in"])


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize("operation", ["COMMIT_ONE_PHASE", "PREPARE", ROLL_BACK])
def test_a_branch_is_ended_at_a_node_where_it_was_not_begun(clients, name, operation, joins):
    here, there = clients
    id = begin(here, name)
    send(here, id, queue(name), "a")
    if joins:
        begin(there, name)
        send(there, id, queue(name), "b")
    assert type(ask(there, operation, id)).__name__ == ("IntegerResponse" if operation == "PREPARE" else "Response")
    if operation == "PREPARE":
        assert type(ask(there, COMMIT, id)) is Response
    expected = Counter() if operation == ROLL_BACK else Counter("ab" if joins else "a")
    assert drained(there, name, expected.total()) == expected
    assert code(ask(here, "COMMIT_ONE_PHASE", id)) == NOT_FOUND


def test_a_branch_in_which_nothing_was_done_is_read_only_at_all_nodes(clients, name):
    for client in clients:
        id = begin(client, name)
    assert vote(clients[1], id) == READ_ONLY
    assert recovered(clients[0], name) == []


def test_a_branch_of_which_one_part_is_lost_cannot_be_prepared(broker, clients, name):
    here, there = clients
    id = begin(here, name)
    send(here, id, queue(name), "a")
    begin(there, name)
    send(there, id, queue(name), "b")
    there.close()
    wait_until(lambda: not open_branches(broker, "a"), "the other node is told")
    assert code(ask(here, "PREPARE", id)) == NOT_FOUND
    assert recovered(here, name) == []
    assert drained(here, name, 0) == Counter()


def open_branches(broker, node: str) -> list[str]:
    transactions = broker[node].node.broker.transactions
    return broker[node].look(lambda: [name for name, _ in transactions.branches()])


def test_what_a_node_prepared_that_died_is_recovered_and_ended_at_another(redis_url, name):
    with several_nodes(redis_url, "a", "b", connectors=CONNECTORS) as broker, OpenWireClient(broker["b"].port) as there:
        here = OpenWireClient(broker["a"].port)
        for number in range(2):
            here.send(queue(f"{name}.{number}"), "in")
        ids = []
        for number in range(2):
            ids.append(begin(here, f"{name}.{number}"))
            here.consumer(number, queue(f"{name}.{number}"), prefetch=1)
            [first] = here.dispatches(1)
            here.acknowledge(first, transaction_id=ids[-1])
            begin(there, f"{name}.{number}")
            send(there, ids[-1], queue(f"{name}.out.{number}"), "out")
            assert vote(there, ids[-1]) == OK
        open_id = begin(there, f"{name}.open")
        send(there, open_id, queue(name), "never")
        begin(here, f"{name}.open")
        broker.crash("a")
        assert recovered(there, f"{name}.0") == ["1"]
        for id, end in zip(ids, (COMMIT, ROLL_BACK), strict=True):
            wait_until(lambda i=id, e=end: type(ask(there, e, i)) is Response, "it is ended")
        assert drained(there, f"{name}.out.0", 1) == Counter(["out"])
        there.consumer(2, queue(f"{name}.0"))
        there.consumer(3, queue(f"{name}.1"))
        assert there.texts(1) == ["in"]
        wait_until(lambda: not broker["b"].look(lambda: list(broker["b"].node.broker.transactions.branches())), "gone")
        assert code(ask(there, "PREPARE", open_id)) == NOT_FOUND
