"""Test kill -9 during a series of changes: confirmed changes are in effect after the restart.

Four series run at once, each waiting for the answer to one change before the next: clients bind queues to topics by
their fully qualified names, others let their selectors be remembered, operators declare queues and change definitions.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import BrokerError
from brokerapp.model.definitions import CompositeDestination, ForwardTarget
from brokerapp.model.destination import Destination
from brokerapp.stomp.frames import encode
from brokerapp.system.data_directory import DataDirectory
from tests.faults.load import Connection
from tests.faults.processes import BrokerProcess
from tests.protocol.clients import StompClient

pytestmark = pytest.mark.slow

ENOUGH = 60.0  # seconds after which something hangs
SERIES = 8  # changes of each kind that are answered before the kill

CONFIG = """\
<plugins><virtualSelectorCacheBrokerPlugin persistFile="selectors.data"/></plugins>
<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
  <virtualTopic name="VirtualTopic.&gt;" selectorAware="true"/>
</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    process = BrokerProcess(tmp_path_factory.mktemp("changes"), CONFIG)
    try:
        process.start()
        yield process
    finally:
        process.end()


@dataclass
class Answered:
    """How many changes of each kind were answered."""

    bindings: int = 0
    selectors: int = 0
    declarations: int = 0
    definitions: int = 0

    def least(self) -> int:
        return min(self.bindings, self.selectors, self.declarations, self.definitions)


@dataclass
class Changes:
    """The four series on one broker, until it dies."""

    broker: BrokerProcess
    answered: Answered = field(default_factory=Answered)

    async def until_killed(self) -> None:
        admin = BrokerAdmin(*DataDirectory(self.broker.data).locate_store())
        series = [
            asyncio.create_task(each)
            for each in (
                self.subscribe("bindings", "/topic/T{0}::Q{0}", "colour = 'red'"),
                self.subscribe("selectors", "/queue/Consumer.{0}.VirtualTopic.x", "n = {0}"),
                self.change("declarations", lambda number: admin.create(Destination.queue(f"declared.{number}"))),
                self.change("definitions", lambda number: self.define(admin, number)),
            )
        ]
        try:
            async with asyncio.timeout(ENOUGH):
                while self.answered.least() < SERIES:
                    assert not any(each.done() for each in series), series
                    await asyncio.sleep(0.001)
            self.broker.kill()
        finally:
            await asyncio.sleep(0)
            for each in series:
                each.cancel()
            await asyncio.gather(*series, return_exceptions=True)
            await admin.close()

    async def subscribe(self, kind: str, destination: str, selector: str) -> None:
        connection = await Connection.open(self.broker.port)
        frames = connection.frames()
        for number in itertools.count():
            headers = {"destination": destination.format(number), "selector": selector.format(number)}
            await connection.tell(encode("SUBSCRIBE", {"id": str(number), "receipt": str(number), **headers}))
            frame = await anext(frames)
            assert frame.headers["receipt-id"] == str(number)
            setattr(self.answered, kind, number + 1)

    async def change(self, kind: str, change: Callable[[int], Awaitable[object]]) -> None:
        with suppress(BrokerError):
            for number in itertools.count():
                await change(number)
                setattr(self.answered, kind, number + 1)

    async def define(self, admin: BrokerAdmin, number: int) -> None:
        current = await admin.definitions()
        one_more = CompositeDestination(
            Destination.queue(f"in.{number}"), (ForwardTarget(Destination.queue(f"out.{number}")),)
        )
        found = (*current.virtual_destinations, one_more)
        await admin.define(replace(current, virtual_destinations=found), "test")


@pytest.mark.scenario("VT-12", "F08")
def test_bindings_selectors_declarations_and_definitions_that_were_answered_outlive_kill_9(broker):
    changes = Changes(broker)
    asyncio.run(changes.until_killed())
    answered = changes.answered
    broker.start()
    assert {f"declared.{number}" for number in range(answered.declarations)} <= set(broker.depths("declared."))

    client = StompClient(broker.port)
    for colour in ("blue", "red"):
        for number in range(answered.bindings):
            client.send(f"/topic/T{number}", colour, wait=False, colour=colour, persistent="true")
    for number in range(answered.selectors):
        client.send("/topic/VirtualTopic.x", wait=False, n=str(number), persistent="true")
    for number in range(answered.definitions):
        client.send(f"/queue/in.{number}", wait=False, persistent="true")
    client.round_trip()
    client.send("/queue/last", persistent="true")
    client.leave()

    def in_each(prefix: str, suffix: str = "") -> set[int]:
        """The numbers of the queues of a series that hold one message."""
        found = {name.removeprefix(prefix).removesuffix(suffix): depth for name, depth in broker.depths(prefix).items()}
        assert set(found.values()) <= {0, 1}
        return {int(number) for number, depth in found.items() if depth}

    assert in_each("Q") == set(range(answered.bindings)), "the red one, and the blue one not"
    assert set(range(answered.selectors)) == in_each("Consumer.", ".VirtualTopic.x"), "the one that was selected"
    assert set(range(answered.definitions)) == in_each("out."), "where the definitions say"
    assert in_each("in.") == set()
