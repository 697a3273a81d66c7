"""Test kill -9 while topics are published to: durable subscriptions keep what was confirmed, once."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.load import Account
from tests.faults.processes import BrokerProcess
from tests.protocol.clients import PATIENCE, StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ENOUGH = 60.0  # seconds after which something hangs
TOPIC = "kill.durable"
ONLINE, OFFLINE, DELETED, REPLACED = (f"kill-{each}" for each in ("online", "offline", "deleted", "replaced"))


def durable(port: int, client_id: str, **headers: str) -> StompClient:
    client = StompClient(port, **{"client-id": client_id})
    client.subscribe(f"/topic/{TOPIC}", **{"activemq.subscriptionName": "sub", **headers})
    return client


def leave(client: StompClient) -> None:
    client.connection.disconnect()
    assert client.disconnected.wait(PATIENCE)


def kept(broker: BrokerProcess) -> dict[str, int]:
    """Messages in each subscription."""
    return broker.depths("kill-", "subscription")


async def load_and_kill(account: Account, broker: BrokerProcess) -> None:
    """Producers that never end, one subscription consumed, and then the kill."""
    consuming = asyncio.create_task(account.consume_durable(broker.port, TOPIC, ONLINE))
    producing = [
        asyncio.create_task(account.produce(broker.port, f"/topic/{TOPIC}", f"p{number}", 100_000))
        for number in range(2)
    ]
    async with asyncio.timeout(ENOUGH):
        while len(account.confirmed[f"/topic/{TOPIC}"]) < 2000 or not account.acked[ONLINE]:
            await asyncio.sleep(0.001)
    broker.kill()
    await asyncio.gather(*producing, consuming, return_exceptions=True)


async def drained(broker: BrokerProcess) -> Account:
    """What the two that are left deliver, until they hold nothing."""
    account = Account()
    consumers = [
        asyncio.create_task(account.consume_durable(broker.port, TOPIC, each, 1000)) for each in (ONLINE, OFFLINE)
    ]
    try:
        await asyncio.to_thread(wait_until, lambda: not any(kept(broker).values()), "all is consumed", ENOUGH)
    finally:
        for each in consumers:
            each.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)
    return account


@pytest.mark.scenario("DU-01", "DU-02")
def test_after_kill_9_durable_subscriptions_hold_what_was_confirmed_once_and_deleted_ones_stay_deleted(broker):
    for client_id in (ONLINE, OFFLINE, DELETED, REPLACED):
        leave(durable(broker.port, client_id))
    before = Account()
    client = StompClient(broker.port, **{"client-id": DELETED})
    client.unsubscribe(id="s", **{"activemq.subscriptionName": "sub"})
    leave(client)
    leave(durable(broker.port, REPLACED, selector="never = 1"))
    asyncio.run(load_and_kill(before, broker))

    broker.start()
    depths = kept(broker)
    assert {name.partition(":")[0] for name in depths} == {ONLINE, OFFLINE, REPLACED}
    assert sum(depth for name, depth in depths.items() if name.startswith(REPLACED)) == 0
    after = asyncio.run(drained(broker))

    promised = before.confirmed[f"/topic/{TOPIC}"]
    everything = set(after.delivered[OFFLINE])
    assert promised <= everything <= before.sent
    assert not after.flagged[OFFLINE], "nobody had it before, and it is flagged"
    first, again = set(before.delivered[ONLINE]), set(after.delivered[ONLINE])
    assert before.acked[ONLINE], "nothing was acked: this tests nothing"
    assert promised <= first | again
    assert not again & before.acked[ONLINE], "acked, and back"
    assert first & again <= after.flagged[ONLINE], "delivered before, and not flagged"
    for place in (ONLINE, OFFLINE):
        assert [body for body, times in after.delivered[place].items() if times > 1] == [], f"twice in {place}"
