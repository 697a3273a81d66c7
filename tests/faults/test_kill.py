"""Test kill -9 of node and store under load: what a RECEIPT promised is kept, and counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from tests.faults.load import Account
from tests.faults.processes import BrokerProcess
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ENOUGH = 60.0  # seconds after which something hangs


class Places:
    """Where a load goes, under names of its own."""

    def __init__(self, name: str) -> None:
        topic = f"VirtualTopic.{name}"
        self.name, self.plain = name, f"{name}.plain"
        self.fed = [f"Consumer.{name}-{each}.{topic}" for each in ("fast", "slow", "away")]
        self.fast, self.slow, self.away = self.fed
        #: Destination a producer sends to -> queues where it must come out.
        self.reached = {f"/queue/{self.plain}": [self.plain], f"/topic/{topic}": self.fed}

    def create(self, port: int) -> None:
        """Let the queues exist."""
        client = StompClient(port)
        for queue in (self.plain, *self.fed):
            client.subscribe(f"/queue/{queue}", id=queue)
        client.leave()

    def depths(self, broker: BrokerProcess) -> dict[str, int]:
        """What is left in each."""
        return broker.depths(self.name) | broker.depths(f"Consumer.{self.name}")

    async def load(self, account: Account, port: int, count: int, pause: float = 0.0) -> None:
        """Four producers of `count` messages each, and consumers, one of them slow, until the producers end."""
        consumers = [
            asyncio.create_task(account.consume(port, queue, prefetch))
            for queue, prefetch in ((self.plain, 100), (self.plain, 100), (self.fast, 1000), (self.slow, 1))
        ]
        producers = [
            account.produce(port, destination, f"{destination}-{number}", count, pause)
            for destination in self.reached
            for number in range(2)
        ]
        try:
            async with asyncio.timeout(ENOUGH):
                await asyncio.gather(*producers)
        finally:
            for each in consumers:
                each.cancel()
            await asyncio.gather(*consumers, return_exceptions=True)

    def drain(self, broker: BrokerProcess) -> Account:
        """Everything that is left, consumed, until the queues are empty.

        Not a number of messages: acks of consumers that are gone may still be on their way when it is counted.
        """
        account = Account()

        async def all_queues() -> None:
            queues = (self.plain, *self.fed)
            consumers = [asyncio.create_task(account.consume(broker.port, queue, 1000)) for queue in queues]
            try:
                await asyncio.to_thread(
                    wait_until, lambda: not any(self.depths(broker).values()), "all is consumed", ENOUGH
                )
            finally:
                for each in consumers:
                    each.cancel()
                await asyncio.gather(*consumers, return_exceptions=True)

        asyncio.run(all_queues())
        return account


async def confirmed(account: Account, count: int, loading: asyncio.Task) -> None:
    """Wait for so many receipts of a load that goes on."""
    async with asyncio.timeout(ENOUGH):
        while sum(map(len, account.confirmed.values())) < count:
            assert not loading.done(), loading.result()
            await asyncio.sleep(0.001)


def test_after_kill_9_of_the_node_nothing_confirmed_is_lost_and_nothing_acked_comes_back(broker):
    places, before = Places("node"), Account()
    places.create(broker.port)

    async def killed_in_the_middle() -> None:
        loading = asyncio.create_task(places.load(before, broker.port, 100_000))
        await confirmed(before, 2000, loading)
        broker.kill()
        await loading

    asyncio.run(killed_in_the_middle())
    broker.start()
    after = places.drain(broker)

    assert before.acked[places.plain], "nothing was acked: this tests nothing"
    for destination, queues in places.reached.items():
        promised = before.confirmed[destination]
        assert len(promised) > 100
        for queue in queues:
            delivered_before, delivered_after = before.delivered[queue], after.delivered[queue]
            assert promised - set(delivered_before) - set(delivered_after) == set(), f"lost from {queue}"
            assert set(delivered_after) & before.acked[queue] == set(), f"acked, and back in {queue}"
            again = set(delivered_before) & set(delivered_after)
            assert again <= after.flagged[queue], f"delivered before from {queue}, and not flagged"
            assert [body for body, times in delivered_after.items() if times > 1] == [], f"twice in {queue}"
            assert set(delivered_after) <= before.sent
    assert set(places.depths(broker).values()) == {0}


def test_after_kill_9_of_the_store_the_load_goes_on_and_every_message_is_there_once(broker):
    places, account = Places("store"), Account()
    places.create(broker.port)
    per_producer = 1000

    async def interrupted() -> None:
        loading = asyncio.create_task(places.load(account, broker.port, per_producer, pause=0.0003))
        for share in (1, 2):
            await confirmed(account, share * per_producer, loading)
            await asyncio.to_thread(broker.kill_store)
        await loading

    asyncio.run(interrupted())
    assert sum("the store terminated and was restarted" in line for line in broker.said) == 2
    rest = places.drain(broker)
    for destination, queues in places.reached.items():
        promised = account.confirmed[destination]
        assert len(promised) == 2 * per_producer
        for queue in queues:
            remaining, delivered = rest.delivered[queue], account.delivered[queue]
            assert promised - set(delivered) - set(remaining) == set(), f"lost from {queue}"
            assert account.acked[queue] & set(remaining) == set(), f"acked, and back in {queue}"
            assert set(remaining.values()) | set(delivered.values()) == {1}, f"twice in {queue}"


@pytest.mark.scenario("VT-28")
def test_a_transaction_is_all_or_nothing_across_kill_9(broker):
    size, commits = 40, []
    client = StompClient(broker.port)
    for number in range(20):
        name = f"t{number}"
        client.frame("BEGIN", wait=False, transaction=name)
        for each in range(size):
            client.send(f"/queue/tx.{each % 2}", name, wait=False, transaction=name, persistent="true")
        client.frame("COMMIT", wait=number < 19, transaction=name)
        commits.append(name)
    broker.kill()  # the last COMMIT may have been heard or not
    broker.start()
    left = sum(broker.depths("tx.").values())
    client = StompClient(broker.port)
    client.subscribe("/queue/tx.*")
    found = Counter(client.bodies(left))
    client.leave()
    assert set(found.values()) == {size}
    assert set(commits[:-1]) <= set(found) <= set(commits)


def test_acks_and_sends_of_a_transaction_happen_together_or_not_at_all_across_kill_9(broker):
    client = StompClient(broker.port)
    for number in range(40):
        client.send("/queue/move.in", str(number), persistent="true", wait=number == 39)
    client.subscribe("/queue/move.in", ack="client-individual")
    messages = client.take(40)
    for name, part in (("done", messages[:10]), ("open", messages[10:20])):
        client.frame("BEGIN", transaction=name)
        for message in part:
            client.ack(message, transaction=name)
            client.send("/queue/move.out", message.body, transaction=name, persistent="true")
    client.frame("COMMIT", transaction="done")
    broker.kill()
    broker.start()
    assert broker.depths("move.") == {"move.in": 30, "move.out": 10}
    client = StompClient(broker.port)
    client.subscribe("/queue/move.in", ack="client-individual")
    again = client.take(30)
    with suppress(AssertionError):
        client.leave()
    assert [each.body for each in again] == [str(number) for number in range(10, 40)]
    assert {each.headers["redelivered"] for each in again} == {"true"}
