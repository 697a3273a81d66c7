"""JMS clients of a run: a Java program with ActiveMQ's own client, whose events are recorded in the ledger."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.chaos.ledger import ConsumerConnection, Delivery, Ledger, Sent
from tests.jms.java_programs import compile_programs, java

SOURCE = Path(__file__).resolve().parent / "JmsClients.java"
#: Options of the client's connections. What a client acknowledged while its connection broke comes again, flagged: by
#: default the client takes it for a duplicate and makes it a dead letter.
_OPTIONS = (
    "initialReconnectDelay=50&maxReconnectDelay=200&useExponentialBackOff=false&timeout=-1"
    "&jms.sendAcksAsync=false&jms.checkForDuplicates=false"
    "&jms.redeliveryPolicy.maximumRedeliveries=-1&jms.redeliveryPolicy.initialRedeliveryDelay=20"
)
#: Of each address: silence after which the client tries another one, in milliseconds.
_ADDRESS_OPTIONS = "wireFormat.maxInactivityDuration=2500&wireFormat.maxInactivityDurationInitalDelay=2500&soTimeout=0"


def failover_url(ports: Sequence[int]) -> str:
    """Return the URL of a client that goes from one of these ports to the next when its connection breaks."""
    addresses = ",".join(f"tcp://127.0.0.1:{port}?{_ADDRESS_OPTIONS}" for port in ports)
    return f"failover:({addresses})?{_OPTIONS}"


class JmsConsumers:
    """The Java program with all JMS clients of a run; its consumers work until it is cancelled."""

    name = "jms"

    def __init__(self, clients: Sequence[str], brokers: dict[str, str], ledger: Ledger) -> None:
        """Take the clients as the program wants them, the broker of each consumer, and the ledger."""
        self._clients, self._brokers, self._ledger = clients, brokers, ledger
        self._deliveries: dict[str, Delivery] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._finished = asyncio.Event()
        self.end_reasons: list[str] = []  #: what its clients were told when something failed

    async def run(self, clock: Callable[[], float]) -> None:
        """Run the program, and record what it says."""
        folder = await asyncio.to_thread(compile_programs, SOURCE)
        self._process = await asyncio.create_subprocess_exec(
            *java("JmsClients", folder, *self._clients),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async for line in self._process.stdout:
                word, *rest = line.decode().split()
                self._record(word, rest, clock())
            raise AssertionError("the JMS clients have ended")
        finally:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def tell(self, order: str) -> None:
        """Let the producers `begin`, or `finish`."""
        self._process.stdin.write(f"{order}\n".encode())

    async def wait_until_finished(self) -> None:
        """Wait until all producers have ended."""
        await self._finished.wait()

    def _record(self, word: str, rest: list[str], now: float) -> None:
        match word, rest:
            case "send", [id, name, number, place, unit, source]:
                known = {key: text for key, text in (("unit", unit), ("source", source)) if text != "-"}
                self._ledger.send(Sent(id, name, int(number), tuple(place.split(",")), **known))
            case "confirm", ids:
                self._ledger.confirm(ids, now)
            case "got", [number, name, place, connection, id, redelivered]:
                stay = ConsumerConnection(name, place, self._brokers[name], int(connection))
                self._deliveries[number] = self._ledger.deliver(id, stay, now, flagged=redelivered == "true")
            case "settle", numbers:
                for each in numbers:
                    self._ledger.settle(self._deliveries[each])
            case "settled", numbers:
                for each in numbers:
                    self._deliveries[each].confirmed_at = now
            case "failed", [name, *why]:
                self.end_reasons.append(f"{name}: {' '.join(why)}")
            case "finished", []:
                self._finished.set()
            case _:
                raise ValueError(f"the JMS clients say {word} {rest}")


class JmsProducers:
    """The producers of the Java program: they begin with `run`, and end when `is_finished`."""

    name = "jms producers"
    broker = ""

    def __init__(self, program: JmsConsumers) -> None:
        self._program = program
        self._may_end = asyncio.Event()
        self.end_reasons: list[str] = []

    @property
    def is_finished(self) -> bool:
        """Whether they were told to end."""
        return self._may_end.is_set()

    @is_finished.setter
    def is_finished(self, value: bool) -> None:
        if value:
            self._may_end.set()

    async def run(self, clock: Callable[[], float]) -> None:
        """Let them work until `is_finished`; return when each has its last confirmation."""
        self._program.tell("begin")
        await self._may_end.wait()
        self._program.tell("finish")
        await self._program.wait_until_finished()
