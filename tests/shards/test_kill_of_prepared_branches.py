"""Test kill -9 amid the phases of distributed transactions whose queues are in shards other than the branches."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from brokerapp.openwire.commands import MessageDispatch, XATransactionId
from brokerapp.openwire.session.transactions import TransactionOperation
from tests.faults.test_kill_of_prepared_transactions import drained, info, prepared
from tests.protocol.openwire_client import OpenWireClient, queue, text_of
from tests.shards.sharded_broker import queue_in, sharded_broker

pytestmark = pytest.mark.slow


def begin_to_prepare(client: OpenWireClient, number: int, out: str) -> str:
    """Ask for a branch to be prepared that takes the next message and sends one with its text, which is returned."""
    id = XATransactionId(1, str(number).encode(), b"b")
    client.ask(info(client, TransactionOperation.BEGIN, id))
    taken = client.next(MessageDispatch)
    text = text_of(taken)
    assert text is not None
    client.acknowledge(taken, transaction_id=id)
    client.ask(client.message(queue(out), text, transaction_id=id))
    client.tell(info(client, TransactionOperation.PREPARE, id))
    return text


@pytest.mark.parametrize(
    ("seed", "branches"), [(1, 4), *(pytest.param(seed, 60, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_each_branch_over_shards_is_prepared_and_ended_whole_or_not_at_all(tmp_path, name, seed, branches):
    chance, rounds = random.Random(seed), 0
    source, out = queue_in(1, f"{name}.in"), queue_in(2, f"{name}.out")
    with sharded_broker(tmp_path, "--node-timeout", "30") as broker:
        node, taken = broker["a"], dict[int, str]()
        with OpenWireClient(node.port) as client:
            client.send(queue(source), *map(str, range(branches)))
        while len(taken) < branches:
            rounds += 1
            with OpenWireClient(node.port) as client:
                client.consumer(1, queue(source), prefetch=1)
                asked = {}
                for number in range(1000 * rounds, 1000 * rounds + min(branches - len(taken), chance.randint(4, 12))):
                    asked[number] = begin_to_prepare(client, number, out)
                if chance.random() < 0.5:
                    prepared(client)  # all of them are done then
                node.kill()
            node.start()
            assert broker.intents() == []
            with OpenWireClient(node.port) as client:
                known = {int(id.global_transaction_id) for id in prepared(client)}
            taken |= {number: text for number, text in asked.items() if number in known}
        committed = {number for number in taken if chance.random() < 0.5}
        while True:
            with OpenWireClient(node.port) as client:
                left = prepared(client)
                if not left:
                    break
                for id in left[: chance.randint(1, 12)]:
                    is_committed = int(id.global_transaction_id) in committed
                    operation = TransactionOperation.COMMIT_TWO_PHASE if is_committed else TransactionOperation.ROLLBACK
                    client.tell(info(client, operation, id))
                if chance.random() < 0.5:
                    prepared(client)  # all of them are done then
                node.kill()
            node.start()
            assert broker.intents() == []
        expected = Counter(taken[number] for number in committed)
        assert drained(node.port, out, len(committed)) == expected
        assert drained(node.port, source, branches - len(committed)) == Counter(map(str, range(branches))) - expected
        broker.wait_until_quiet()
