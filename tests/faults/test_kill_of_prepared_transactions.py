"""Test kill -9 between the phases of distributed transactions, and within them: nothing is lost or happens twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from brokerapp.openwire.commands import ConnectionId, IntegerResponse, MessageDispatch, TransactionInfo, XATransactionId
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.faults.processes import BrokerProcess
from tests.protocol.openwire_client import OpenWireClient, queue, text_of

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path) -> Iterator[BrokerProcess]:
    """A process that serves OpenWire."""
    process = BrokerProcess(tmp_path)
    process.config.write_text(process.config.read_text().replace("stomp://127.0.0.1", "tcp://127.0.0.1"))
    try:
        process.start()
        yield process
    finally:
        process.end()


def info(client: OpenWireClient, operation: TransactionOperation, id: XATransactionId | None) -> TransactionInfo:
    return TransactionInfo(connection_id=ConnectionId(client.connection_id), transaction_id=id, type=operation)


def prepare(client: OpenWireClient, number: int) -> str:
    """Prepare a branch that takes the next message and sends one with the same text; return that text."""
    id = XATransactionId(1, str(number).encode(), b"b")
    client.ask(info(client, TransactionOperation.BEGIN, id))
    taken = client.next(MessageDispatch)
    text = text_of(taken)
    assert text is not None
    client.acknowledge(taken, transaction_id=id)
    client.ask(client.message(queue("out"), text, transaction_id=id))
    assert isinstance(client.ask(info(client, TransactionOperation.PREPARE, id)), IntegerResponse)
    return text


def prepared(client: OpenWireClient) -> list[XATransactionId]:
    return list(client.ask(info(client, TransactionOperation.RECOVER, None)).data or ())


def drained(port: int, name: str, count: int) -> Counter[str | None]:
    with OpenWireClient(port) as client:
        client.consumer(1, queue(name))
        return Counter(client.texts(count))


@pytest.mark.parametrize(
    ("seed", "branches"), [(1, 6), *(pytest.param(seed, 24, marks=pytest.mark.long) for seed in (1, 2))]
)
def test_each_branch_is_committed_or_rolled_back_whole_however_often_the_node_is_killed(broker, seed, branches):
    chance = random.Random(seed)
    with OpenWireClient(broker.port) as client:
        client.send(queue("in"), *map(str, range(branches)))
    taken: dict[int, str] = {}
    while len(taken) < branches:
        with OpenWireClient(broker.port) as client:
            client.consumer(1, queue("in"), prefetch=1)
            for number in range(len(taken), min(branches, len(taken) + chance.randint(4, 12))):
                taken[number] = prepare(client, number)
            broker.kill()
        broker.start()
    committed = {number for number in taken if chance.random() < 0.5}
    while True:
        with OpenWireClient(broker.port) as client:
            left = prepared(client)
            if not left:
                break
            for id in left[: chance.randint(1, 12)]:
                is_committed = int(id.global_transaction_id) in committed
                operation = TransactionOperation.COMMIT_TWO_PHASE if is_committed else TransactionOperation.ROLLBACK
                client.tell(info(client, operation, id))
            if chance.random() < 0.5:
                prepared(client)  # all of them are done then
            broker.kill()
        broker.start()
    out = Counter(taken[number] for number in committed)
    assert drained(broker.port, "out", len(committed)) == out
    assert drained(broker.port, "in", branches - len(committed)) == Counter(map(str, range(branches))) - out
