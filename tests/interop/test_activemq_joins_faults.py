"""Test kills of an ActiveMQ that joined, of Sluice, and of their link: each confirmed message arrives once.

    ROUNDS=20 .venv/bin/python -m pytest tests/interop/test_activemq_joins_faults.py -q

runs the long form: each fault as many times.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from tests.faults.load import Account
from tests.faults.processes import BrokerProcess
from tests.interop.activemq_server import needs_activemq
from tests.interop.joined import JoinedActiveMQ
from tests.interop.proxy import Proxy
from tests.protocol.clients import StompClient
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, needs_activemq]
ROUNDS = int(os.environ.get("ROUNDS", "1"))
#: Messages of each producer of a round, and how many are confirmed when something is killed.
COUNT, BEFORE = 600, 150
PAUSE = 0.002  # seconds between two of them: they are still sent when it is killed
ENOUGH = 60.0  # seconds after which something hangs
HERE, THERE = "/queue/to.here", "/queue/to.there"
LISTS = f"""<staticallyIncludedDestinations>
  <queue physicalName="{HERE[7:]}"/><queue physicalName="{THERE[7:]}"/>
</staticallyIncludedDestinations>"""
CONNECTOR = '<transportConnector name="all" uri="tcp://127.0.0.1:{port}"/>'


class Ours(BrokerProcess):
    """A Sluice with a connector for all protocols."""

    def __init__(self, folder) -> None:
        super().__init__(folder, name="ours")
        connector = f"<transportConnectors>{CONNECTOR.format(port=self.port)}</transportConnectors>"
        self.config.write_text(f'<broker brokerName="ours">{connector}</broker>')


@dataclass
class Joined:
    """Both brokers, the link between them, and what was sent."""

    ours: Ours
    theirs: JoinedActiveMQ
    link: Proxy
    is_duplex: bool
    account: Account = field(default_factory=Account)
    names: Iterator[int] = field(default_factory=itertools.count)

    @property
    def ways(self) -> list[tuple[str, int, int]]:
        """Return what crosses: the destination, and the ports where it is sent and where it arrives."""
        ways = [(HERE, self.theirs.port, self.ours.port), (THERE, self.ours.port, self.theirs.port)]
        return ways if self.is_duplex else ways[:1]

    async def load(self, fault: Callable[[], None]) -> None:
        """Send at both brokers what is wanted at the other, and let the fault happen in the midst."""
        before = sum(map(len, self.account.confirmed.values()))
        senders = [
            asyncio.create_task(self.account.produce(port, destination, f"{next(self.names)}", COUNT, PAUSE))
            for destination, port, _ in self.ways
        ]
        async with asyncio.timeout(ENOUGH):
            while sum(map(len, self.account.confirmed.values())) < before + BEFORE:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(fault)
            for each in senders:
                with suppress(OSError, StopAsyncIteration):
                    await each

    def arrived(self, port: int, destination: str) -> Counter[str]:
        """Take what arrived at a broker, when all that was confirmed there did, and return how often each did."""
        wanted, found, client = self.account.confirmed[destination], Counter[str](), StompClient(port)
        client.subscribe(destination)

        def take() -> bool:
            while not client.messages.empty():
                found.update(client.bodies())
            return wanted <= found.keys()

        wait_until(take, f"{len(wanted)} messages in {destination}", seconds=ENOUGH)
        wait_until(lambda: client.has_no_more() or take() is None, "the end")
        client.leave()
        return found


@pytest.fixture(scope="module", params=["true", "false"], ids=["duplex", "one way"])
def pair(request, tmp_path_factory) -> Iterator[Joined]:
    folder = tmp_path_factory.mktemp("ours")
    ours = Ours(folder)
    link = Proxy(ours.port)
    theirs = JoinedActiveMQ(tmp_path_factory.mktemp("theirs"), "theirs", link.port, listed=LISTS, duplex=request.param)
    try:
        ours.start()
        theirs.start()
        yield Joined(ours, theirs, link, request.param == "true")
    finally:
        theirs.stop()
        ours.end()
        link.close()


def test_each_confirmed_message_arrives_once_whatever_is_killed(pair):
    def kill_ours() -> None:
        pair.ours.kill()
        pair.ours.start()

    def kill_theirs() -> None:
        pair.theirs.kill()
        pair.theirs.start()

    for _ in range(ROUNDS):
        for fault in (kill_ours, pair.link.cut, kill_theirs, kill_ours):
            asyncio.run(pair.load(fault))
    for destination, _, port in pair.ways:
        found = pair.arrived(port, destination)
        assert {body: times for body, times in found.items() if times > 1} == {}
        assert pair.account.confirmed[destination] <= found.keys() <= pair.account.sent
