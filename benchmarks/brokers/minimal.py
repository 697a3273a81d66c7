"""The least that a broker in Python with a store of its own can do for a message: the floor of what Sluice may cost.

`python -m benchmarks.brokers.minimal PORT FOLDER` reads the frames that the load generator writes (and no others: the
first header is the destination, the last one content-length), stores each batch of one read with one call, answers
the receipts, hands the messages to consumers in turn and deletes what is acknowledged. The store syncs to disk before
it answers. Nothing else is done: no limits, prefetch, redelivery, selectors, priorities, statistics or trace.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import uvloop

from benchmarks.brokers.process import BrokerProcess, free_port
from benchmarks.protocol.dialect import ActiveMQDialect
from benchmarks.scenarios.rows import Scenario
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.process_tuning import tune_process

_HEADER = re.compile(rb"([^:\n]+):([^\n]*)")
_RECEIPT = re.compile(rb"\nreceipt:([^\n]*)")
_ACKS, _ACK_ID = re.compile(rb"(?:ACK\nid:[0-9]+\n\n\0)+"), re.compile(rb"id:([0-9]+)")
#: Appends messages to one stream or, where there are several, one copy of them and a reference in each.
_APPEND = b"""local first = ARGV[1]
for i = 2, #ARGV do
  local id = string.format('%d-1', first + i)
  if #KEYS == 1 then
    redis.call('XADD', KEYS[1], id, 'm', ARGV[i])
  else
    redis.call('XADD', 'bodies', id, 'm', ARGV[i])
    for k = 1, #KEYS do redis.call('XADD', KEYS[k], id, 'r', '') end
  end
end
return 0"""


class Minimal:
    """A minimal broker as a peer of the comparison."""

    name = "floor"
    pace = "sluice"
    title = "minimal broker"
    dialect = ActiveMQDialect()
    process: BrokerProcess | None = None

    def start(self, scenario: Scenario, folder: Path) -> tuple[str, int]:
        """Start it, its files in `folder`; answers host and port. Raises StartFailed."""
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.brokers.minimal", str(port), str(folder / "data")]
        self.process = BrokerProcess(command, folder / "minimal.log")
        self.process.wait_until_listening(port)
        return "127.0.0.1", port

    def stop(self) -> None:
        """End it, its store with it."""
        if self.process:
            self.process.stop()


class _Store(asyncio.Protocol):
    """A connection to the store: calls are collected while one is under way, and then sent together."""

    def __init__(self) -> None:
        self._calls: list[bytes] = []
        self._then: list[Callable[[], None]] = []
        self._under_way: deque[Callable[[], None]] = deque()
        self._is_busy = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]

    def call(self, arguments: Sequence[bytes], then: Callable[[], None]) -> None:
        """Send a command; `then` is called when it has been answered, which is after the disk has it."""
        self._calls.append(resp(arguments))
        self._then.append(then)
        if not self._is_busy:
            self._send()

    def _send(self) -> None:
        self._is_busy = len(self._calls)
        self._transport.writelines(self._calls)
        self._under_way.extend(self._then)
        self._calls, self._then = [], []

    def data_received(self, data: bytes) -> None:
        if b"-" in data:
            sys.exit(f"the store answered {data!r}")
        for _ in range(data.count(b"\n")):
            self._is_busy -= 1
            self._under_way.popleft()()
        if not self._is_busy and self._calls:
            self._send()


def resp(arguments: Sequence[bytes]) -> bytes:
    """A command as the store reads it."""
    return b"*%d\r\n" % len(arguments) + b"".join([b"$%d\r\n%b\r\n" % (len(each), each) for each in arguments])


def append_call(queues: Sequence[bytes], first: int, messages: Iterable[bytes]) -> list[bytes]:
    """The arguments of the command that appends these messages to these queues; the first has the number `first`."""
    return [b"EVAL", _APPEND, b"%d" % len(queues), *queues, b"%d" % (first - 2), *messages]


def delete_call(queue: bytes, ids: Iterable[bytes]) -> list[bytes]:
    """The arguments of the command that deletes messages of a queue."""
    return [b"XDEL", queue, *[each + b"-1" for each in ids]]


class _Broker:
    """Who consumes what, and the number of the last message."""

    def __init__(self, store: _Store) -> None:
        self.store = store
        self.consumers: dict[bytes, list[_Client]] = {}
        self.turns: dict[bytes, cycle[_Client]] = {}
        self.last = 0

    def queues(self, destination: bytes) -> list[bytes]:
        """The queues and subscriptions that get what is sent here."""
        topic = destination.removeprefix(b"/topic/")
        if topic == destination:
            return [destination]
        prefix = b"/topic/" + topic[: topic.rfind(b".")] + b".>"
        return [each for each in self.consumers if each.endswith(b"." + topic) or each.startswith(prefix)]

    def deliver(self, queue: bytes, first: int, messages: Sequence[bytes]) -> None:
        """Hand messages to the consumers of a queue in turn."""
        if not (consumers := self.consumers.get(queue)):
            return
        texts = [b"MESSAGE\nack:%d\nsubscription:1\n%b\0\n" % each for each in enumerate(messages, first)]
        if len(consumers) == 1 or not queue.startswith(b"/queue/"):
            for each in consumers:
                each.write(b"".join(texts))
            return
        shares: dict[_Client, list[bytes]] = defaultdict(list)
        for text, client in zip(texts, islice(self.turns[queue], len(texts)), strict=True):
            shares[client].append(text)
        for client, share in shares.items():
            client.write(b"".join(share))


class _Client(asyncio.Protocol):
    """A connection of the load generator."""

    def __init__(self, broker: _Broker) -> None:
        self._broker = broker
        self._held = b""
        self._queue = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.write = transport.write  # type: ignore[attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        for queue, consumers in self._broker.consumers.items():
            if self in consumers:
                consumers.remove(self)
                self._broker.turns[queue] = cycle(consumers)

    def data_received(self, data: bytes) -> None:
        data = self._held + data
        position, size = 0, len(data)
        sent: dict[bytes, list[bytes]] = defaultdict(list)
        receipts: list[bytes] = []
        while position < size:
            if data.startswith(b"SEND", position):
                start = data.find(b"\n\n", position)
                colon = data.rfind(b":", position, start)
                end = start + 2 + int(data[colon + 1 : start]) if start > 0 else size
                if end >= size:
                    break
                line = data.find(b"\n", position + 5)
                sent[data[position + 17 : line]].append(data[position + 5 : end])
                if receipt := _RECEIPT.search(data, position, start):
                    receipts.append(receipt[1])
            elif data.startswith(b"ACK", position):
                acks = _ACKS.match(data, position)
                if not acks:
                    break
                end = acks.end() - 1
                self._broker.store.call(delete_call(self._queue, _ACK_ID.findall(data, position, end)), _nothing)
            else:
                end = data.find(b"\0", position)
                if end < 0:
                    break
                self._other(data[position:end], sent, receipts)
            position = end + 1
        self._held = data[position:]
        if sent or receipts:
            self._take(sent, receipts)

    def _other(self, text: bytes, sent: dict[bytes, list[bytes]], receipts: list[bytes]) -> None:
        headers = dict(_HEADER.findall(text))
        if text.startswith(b"CONNECT"):
            self.write(b"CONNECTED\nversion:1.2\n\n\0\n")
        elif text.startswith(b"SUBSCRIBE"):
            self._queue = headers[b"destination"]
            if self._queue.startswith(b"/topic/"):  # every subscriber has its own
                self._queue += b" %d" % id(self)
            self._broker.consumers.setdefault(self._queue, []).append(self)
            self._broker.turns[self._queue] = cycle(self._broker.consumers[self._queue])
            self.write(b"RECEIPT\nreceipt-id:subscribed\n\n\0\n")
        elif text.startswith(b"DISCONNECT"):
            self._broker.store.call([b"PING"], partial(self._answer, [headers[b"receipt"]]))
        elif b"receipt" in headers:  # COMMIT
            receipts.append(headers[b"receipt"])

    def _take(self, sent: dict[bytes, list[bytes]], receipts: list[bytes]) -> None:
        """Store what one read brought, then answer it and deliver it."""
        broker = self._broker
        for destination, messages in sent.items():
            first = broker.last + 1
            broker.last += len(messages)
            queues = broker.queues(destination)
            deliver = partial(self._deliver, queues, first, messages)
            if b"\npersistent:true" in messages[0]:
                broker.store.call(append_call(queues, first, messages), deliver)
            else:
                deliver()
        if receipts:
            broker.store.call([b"PING"], partial(self._answer, receipts))

    def _deliver(self, queues: Iterable[bytes], first: int, messages: Sequence[bytes]) -> None:
        for queue in queues:
            self._broker.deliver(queue, first, messages)

    def _answer(self, receipts: Iterable[bytes]) -> None:
        self.write(b"".join([b"RECEIPT\nreceipt-id:%b\n\n\0\n" % each for each in receipts]))


def _nothing() -> None:
    """Nobody waits for the answer."""


async def serve(port: int, socket: str) -> None:
    """Serve clients until the process ends."""
    loop = asyncio.get_running_loop()
    _, store = await loop.create_unix_connection(_Store, socket)
    broker = _Broker(store)
    server = await loop.create_server(lambda: _Client(broker), "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Run the broker with a store in the folder."""
    port, folder = sys.argv[1:]
    tune_process()
    with EmbeddedStore(Path(folder)) as store:
        uvloop.run(serve(int(port), store.url.removeprefix("unix://").partition("?")[0]))


if __name__ == "__main__":
    main()
