"""Test kills of two bridged brokers and their link: confirmed messages arrive once, or flagged."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from brokerapp.admin import BrokerAdmin
from brokerapp.system.data_directory import DataDirectory
from tests.faults.load import Account
from tests.faults.processes import BrokerProcess
from tests.interop.proxy import Proxy
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

#: Messages of one producer; there are two.
COUNT = 1_000
#: Seconds in which nothing more is confirmed or delivered, after which something hangs: how long all of it takes
#: depends on what else the machine does.
#: Seconds in which a bridge sends what it may send unconfirmed.
LOST_SECONDS = 5.0
STILL = 60.0
CONNECTOR = (
    '<networkConnectors><networkConnector name="ab" uri="static:(tcp://127.0.0.1:{port})?initialReconnectDelay=100'
    '&amp;useExponentialBackOff=false"/></networkConnectors>'
)


@dataclass
class Pair:
    """A has a bridge to B, through a link that can be cut."""

    a: BrokerProcess
    b: BrokerProcess
    link: Proxy


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Iterator[Pair]:
    folders = [tmp_path_factory.mktemp(each) for each in "ab"]
    b = BrokerProcess(folders[1], name="b")
    link = Proxy(b.port)
    a = BrokerProcess(folders[0], CONNECTOR.format(port=link.port), name="a")
    try:
        b.start()
        a.start()
        yield Pair(a, b, link)
    finally:
        a.end()
        b.end()
        link.close()


async def wait_while_moving(account: Account, queue: str, condition: Callable[[], bool]) -> None:
    """Wait until the condition is true; fail when the queue's messages stand still before."""
    loop = asyncio.get_running_loop()
    seen, deadline = (-1, -1), loop.time() + STILL
    while not condition():
        now = len(account.confirmed[f"/queue/{queue}"]), sum(account.delivered[queue].values())
        if now != seen:
            seen, deadline = now, loop.time() + STILL
        assert loop.time() < deadline, f"{now[0]} messages confirmed and {now[1]} delivered, and no more in {STILL:g} s"
        await asyncio.sleep(0.02)


async def load(pair: Pair, queue: str, disturb, times: int = 2) -> Account:
    """Two producers at A, a consumer at B; `disturb` is called in the middle so many times; then all is delivered.

    Who loses the connection goes on with what is not confirmed, as clients do.
    """
    account = Account()
    confirmed, delivered = account.confirmed[f"/queue/{queue}"], account.delivered[queue]

    async def consume() -> None:
        while True:
            with suppress(OSError, AssertionError, StopAsyncIteration):
                await account.consume(pair.b.port, queue, 100)
            await asyncio.sleep(0.05)

    async def produce(name: str) -> None:
        with suppress(OSError, StopAsyncIteration):  # what is not confirmed then was promised to nobody
            await account.produce(pair.a.port, f"/queue/{queue}", name, COUNT, 0.0005)

    consuming = asyncio.create_task(consume())
    producing = [asyncio.create_task(produce(f"{queue}-{number}")) for number in range(2)]
    try:
        for time in range(1, times + 1):
            enough = time * COUNT // 4
            await wait_while_moving(account, queue, lambda enough=enough: delivered.total() > enough)
            await asyncio.to_thread(disturb)
        await wait_while_moving(
            account, queue, lambda: all(each.done() for each in producing) and confirmed <= set(delivered)
        )
        await asyncio.gather(*producing)
    finally:
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)
    return account


def check(account: Account, queue: str, *, may_repeat: bool) -> None:
    """All that was confirmed came, once; what came twice says so, if it may."""
    confirmed, came = account.confirmed[f"/queue/{queue}"], account.delivered[queue]
    assert len(confirmed) > COUNT // 4
    assert confirmed <= set(came)
    twice = {body for body, times in came.items() if times > 1}
    assert twice <= account.flagged[queue]
    if not may_repeat:
        assert not twice


@pytest.mark.scenario("NB-49")
def test_a_link_that_is_cut_loses_nothing_and_repeats_nothing(pair):
    account = asyncio.run(load(pair, "cut", pair.link.cut))
    check(account, "cut", may_repeat=False)
    assert len(account.confirmed["/queue/cut"]) == 2 * COUNT


def stopped_at(broker: BrokerProcess) -> int:
    """Copies that a bridge brought again, and that its target had already."""

    async def ask() -> int:
        admin = BrokerAdmin(*DataDirectory(broker.data).locate_store())
        try:
            return sum(each.duplicates for each in (await admin.networks.stats()).incoming)
        finally:
            await admin.close()

    return asyncio.run(ask())


@pytest.mark.scenario("NB-59")
def test_a_link_that_loses_the_receipts_repeats_nothing(pair):
    def lose() -> None:
        pair.link.answers_are_lost = True
        depths = pair.b.depths("lost")
        with contextlib.suppress(AssertionError):  # all that the bridge sends unconfirmed may be there before
            wait_until(
                lambda: pair.b.depths("lost") != depths or not pair.a.depths("lost").get("lost"), "more", LOST_SECONDS
            )
        pair.link.cut()

    check(asyncio.run(load(pair, "lost", lose)), "lost", may_repeat=False)
    assert stopped_at(pair.b) > 0  # else none was lost


def restart(broker: BrokerProcess) -> None:
    broker.kill()
    broker.start()


def test_the_broker_that_has_the_messages_is_killed(pair):
    check(asyncio.run(load(pair, "source", lambda: restart(pair.a), times=1)), "source", may_repeat=False)


def test_the_broker_that_gets_the_messages_is_killed(pair):
    account = asyncio.run(load(pair, "target", lambda: restart(pair.b)))
    check(account, "target", may_repeat=True)
    assert len(account.confirmed["/queue/target"]) == 2 * COUNT


@pytest.mark.scenario("NB-14", "NB-45")
def test_a_durable_subscription_gets_what_was_sent_elsewhere_while_it_was_away_and_the_link_dead(pair):
    def subscriber() -> StompClient:
        client = StompClient(pair.b.port, **{"client-id": "c"})
        client.subscribe("/topic/news", **{"activemq.subscriptionName": "s"})
        return client

    client, sender = subscriber(), StompClient(pair.a.port)
    wait_until(lambda: pair.a.depths("", "subscription"), "the bridge's subscription")
    sender.send("/topic/news", "first", persistent="true")
    assert client.bodies() == ["first"]
    client.leave()
    pair.link.cut()
    pair.b.kill()
    for body in ("second", "third"):
        sender.send("/topic/news", body, persistent="true")
    sender.leave()
    restart(pair.a)  # with dynamicOnly=false it goes on for a subscription that nobody consumes
    pair.b.start()
    wait_until(lambda: sum(pair.b.depths("", "subscription").values()) == 2, "the messages at B, for nobody yet")
    client = subscriber()
    assert client.bodies(2) == ["second", "third"]
    client.leave()
