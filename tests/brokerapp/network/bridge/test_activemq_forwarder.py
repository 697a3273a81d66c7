"""Test the records of a bridge to ActiveMQ: after a reconnect only refused messages are sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from brokerapp.network.bridge.activemq_forwarder import TransactionalForwarder
from brokerapp.network.bridge.forwarder import ForwardedMessage
from brokerapp.network.links.broker_link import OutgoingMessage
from brokerapp.stomp.frames import Frame

QUEUE = "/queue/Sluice.Bridge.here.bridge"


class Target:
    """A link to an ActiveMQ that refuses some destinations, and keeps what is committed."""

    name = "bridge"

    def __init__(self, *refusing: str) -> None:
        self.refusing = set(refusing)
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.kept: list[tuple[str, bytes]] = []
        self.open: list[tuple[str, bytes]] = []
        self.outbox: TransactionalForwarder
        self.refused_acks: list[str | None] = []
        self.on_error: Callable[[Frame], object]

    def subscribe(self, id: str, destination: str, given: Callable[[Frame], None], headers: dict[str, str]) -> None:
        records = [body for where, body in self.kept if where == destination]
        for number, body in enumerate(records):
            given(Frame("MESSAGE", {"message-id": f"m{number}", "ack": f"a{number}"}, body))
        if headers.get("browser") == "true":
            given(Frame("MESSAGE", {"browser": "end"}, b""))

    def unsubscribe(self, id: str) -> None:
        """Nothing more comes anyway."""

    def send(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        receipt = headers.get("receipt", "").removeprefix("out:")
        if command == "SEND":
            if headers["destination"] in self.refusing:
                self._answer(lambda: self.refused_acks.append(self.outbox.on_refused(receipt)))
                return
            self.open.append((headers["destination"], body))
        elif command == "COMMIT":
            self.kept += self.open
            self.open.clear()
        if receipt:
            self._answer(lambda: self.outbox.on_receipt(receipt))

    @staticmethod
    def _answer(answer: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(answer)


class Bridged:
    """An outbox at a target, with what the source was told it may forget."""

    def __init__(self, target: Target) -> None:
        self.target, self.forgotten = target, []
        self.outbox = target.outbox = TransactionalForwarder(target, "out:", "here", "bridge")
        self.outbox.on_done = lambda acks, _receipt: self.forgotten.extend(acks)

    async def passes(self, **to: str) -> None:
        """Pass on a message for each: its id, and where it goes."""
        for id, destination in to.items():
            self.outbox.send(
                ForwardedMessage(
                    f"ack-{id}", id, OutgoingMessage({"destination": destination}, id.encode()), needs_receipt=True
                )
            )
        for _ in range(20):
            await asyncio.sleep(0)

    def taken(self) -> list[str]:
        """The bodies that the target has, but for records."""
        return [body.decode() for where, body in self.target.kept if where != QUEUE]


@pytest.mark.parametrize("order", [("yes", "no", "yes"), ("no", "yes", "yes"), ("yes", "yes", "no")])
def test_the_record_names_nothing_that_was_refused_so_that_the_next_bridge_passes_it_on(order):
    async def scenario() -> None:
        target = Target("/queue/no")
        messages = {f"m{number}": f"/queue/{where}" for number, where in enumerate(order)}
        refused = next(id for id, where in messages.items() if where == "/queue/no")
        crossed = [id for id in messages if id != refused]

        first = Bridged(target)
        await first.outbox.open()
        await first.passes(**messages)
        assert target.refused_acks == [f"ack-{refused}"]
        assert first.taken() == crossed
        assert first.forgotten == [f"ack-{id}" for id in crossed]

        target.refusing.clear()  # rights are others now; and the source heard of nothing before its link broke
        second = Bridged(target)
        await second.outbox.open()
        await second.passes(**messages)
        assert second.taken() == [*crossed, refused]
        assert sorted(second.forgotten) == [f"ack-{id}" for id in messages]

    asyncio.run(scenario())


def test_of_a_batch_that_was_refused_altogether_there_is_no_record():
    async def scenario() -> None:
        bridged = Bridged(Target("/queue/no"))
        await bridged.outbox.open()
        await bridged.passes(m1="/queue/no", m2="/queue/no")
        assert bridged.target.kept == []
        await bridged.passes(m3="/queue/yes")
        assert (bridged.taken(), bridged.forgotten) == (["m3"], ["ack-m3"])

    asyncio.run(scenario())
