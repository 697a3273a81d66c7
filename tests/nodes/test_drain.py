"""Test that draining a node under load moves its clients without a loss, a repetition or a change of order.

Nodes are processes of `runbroker`; clients keep a ledger, and connect to the first node that takes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import logging
import time
from collections import deque

import pytest
from django.core.management import CommandError, call_command

from brokerapp.config import TransportConnector
from brokerapp.errors import RequestRefused
from brokerapp.openwire.commands import ConnectionControl
from brokerapp.stomp.frames import encode
from tests.faults.load import Connection
from tests.faults.processes import CONFIG
from tests.nodes.conftest import SeveralNodes, several_nodes
from tests.ports import free_port
from tests.protocol.openwire_client import OpenWireClient
from tests.runbroker import Run
from tests.waiting import wait_until

logger = logging.getLogger(__name__)

QUEUES, WINDOW = 4, 20
#: Seconds without a receipt, or a delivery, that clients may see while their node is drained. The handover itself takes
#: some tens of milliseconds; the rest is for a busy machine.
LONGEST_GAP = 1.5


class NodeProcess:
    """One node with its ports for clients and for health."""

    def __init__(self, folder, broker, name, redis_url):
        self.port, self.health = free_port(), free_port()
        config = folder / f"{name}.xml"
        config.write_text(CONFIG.format(port=self.port, more="", name=broker))
        self._arguments = (
            "--config", config, "--data", folder / name, "--redis", redis_url, "--node", name,
            "--health", f"127.0.0.1:{self.health}",
        )  # fmt: skip
        self.log = folder / f"{name}.log"
        self.start()

    def start(self):
        """Again, after it ended."""
        self.run = Run(*self._arguments, log=self.log)

    def readyz(self):
        """The status and the checks of its readiness; None: it does not answer."""
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", self.health, timeout=5)
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        return None


class Client:
    """Connects to the first node of a list that takes it, again whenever its connection ends."""

    def __init__(self, ports):
        self.ports, self.over, self.times, self.port = ports, False, [], None

    async def run(self):
        while not self.over:
            for port in self.ports:
                with contextlib.suppress(OSError, StopAsyncIteration):
                    connection, self.port = await Connection.open(port), port
                    try:
                        await self.serve(connection)
                    finally:
                        connection.close()
                    break
            await asyncio.sleep(0.01)

    def gap(self, since, until):
        """The longest time in which nothing came."""
        times = [since, *(each for each in self.times if since < each < until), until]
        return max(after - before for before, after in itertools.pairwise(times))


class Producer(Client):
    """Sends numbers in order, some at a time, and again what was not confirmed."""

    def __init__(self, ports, queue):
        super().__init__(ports)
        self.queue, self.next, self.unconfirmed, self.is_done = queue, 0, deque(), False
        self.is_finishing = False

    async def serve(self, connection):
        for number in list(self.unconfirmed):
            await self._send(connection, number)
        room = asyncio.create_task(self._fill(connection))
        try:
            async for frame in connection.frames():
                assert int(frame.headers["receipt-id"]) == self.unconfirmed.popleft()
                self.times.append(time.monotonic())
                if self.is_finishing and not self.unconfirmed:
                    self.is_done = self.over = True
                    return
        finally:
            room.cancel()

    async def _fill(self, connection):
        with contextlib.suppress(OSError):
            while not self.is_finishing or not self.next:
                if len(self.unconfirmed) < WINDOW:
                    self.unconfirmed.append(self.next)
                    self.next += 1
                    await self._send(connection, self.next - 1)
                await asyncio.sleep(0.004)
            if not self.unconfirmed:
                self.is_done = self.over = True
                connection.close()

    async def _send(self, connection, number):
        headers = {"destination": f"/queue/{self.queue}", "persistent": "true", "receipt": str(number)}
        await connection.tell(encode("SEND", headers, str(number).encode()))


class Consumer(Client):
    """Acknowledges each message after a moment of work."""

    def __init__(self, ports, queue):
        super().__init__(ports)
        self.queue, self.got = queue, []

    async def serve(self, connection):
        headers = {"destination": f"/queue/{self.queue}", "id": "1", "ack": "client-individual"}
        await connection.tell(encode("SUBSCRIBE", {**headers, "activemq.prefetchSize": "50"}))
        async for frame in connection.frames():
            self.times.append(time.monotonic())
            self.got.append((int(frame.body), frame.headers.get("redelivered") == "true"))
            await connection.tell(encode("ACK", {"id": frame.headers["ack"]}))
            if self.over:
                return


class Load:
    """Producers and consumers of some queues, and their ledger."""

    def __init__(self, nodes, queues):
        ports = [each.port for each in nodes]
        self.producers = [Producer(ports, each) for each in queues]
        self.consumers = [Consumer(ports, each) for each in queues]
        self._tasks = [asyncio.create_task(each.run()) for each in (*self.producers, *self.consumers)]

    @property
    def clients(self):
        return [*self.producers, *self.consumers]

    async def finish(self):
        """Let all that was begun be sent, and consumed."""
        for each in self.producers:
            each.is_finishing = True
        await until(lambda: all(each.is_done for each in self.producers), "all is confirmed")
        pairs = list(zip(self.producers, self.consumers, strict=True))
        await until(lambda: all(len({n for n, _ in c.got}) == p.next for p, c in pairs), "all is consumed")
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self):
        """Nothing was lost, came again, or in another order."""
        for producer, consumer in zip(self.producers, self.consumers, strict=True):
            first = list(dict.fromkeys(number for number, _ in consumer.got))
            assert set(first) == set(range(producer.next)), "something is lost"
            assert len(consumer.got) == len(first), "something came twice, though all was acknowledged in time"
            assert not any(again for _, again in consumer.got)
            assert first == sorted(first), "the order changed"


async def until(condition, what, seconds=60.0):
    """Wait for this while clients go on."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


@pytest.fixture
def queues(nodes, name):
    """Names of queues of which each node owns half."""
    broker, *_ = nodes
    return [broker.queue_at("ab"[number % 2], f"{name}.{number}") for number in range(QUEUES)]


@pytest.fixture
def nodes(tmp_path, redis_url):
    broker = SeveralNodes(redis_url)
    found = {name: NodeProcess(tmp_path, broker.name, name, redis_url) for name in "ab"}
    try:
        for each in found.values():
            each.run.ready()
        yield broker, found["a"], found["b"]
    finally:
        for each in found.values():
            each.run.kill()


async def loaded(a, b, queues):
    load = Load((a, b), queues)
    await until(lambda: all(len(each.times) > 50 for each in load.clients), "there is load")
    assert {each.port for each in load.clients} == {a.port}
    return load


async def has_moved(load, b):
    """Wait until all clients left a node and work at the other."""
    counts = {each: len(each.times) for each in load.clients}
    await until(lambda: all(each.port == b.port for each in load.clients), "clients are at the other node")
    await until(lambda: all(len(each.times) > counts[each] + 20 for each in load.clients), "they work there")


def test_draining_a_node_under_load_moves_its_clients_and_its_end_lets_it_serve_again(nodes, queues):
    broker, a, b = nodes

    async def scenario():
        load = await loaded(a, b, queues)
        began = time.monotonic()
        draining = asyncio.create_task(asyncio.to_thread(broker.admin, lambda admin: admin.membership.drain("a")))
        await has_moved(load, b)
        outcome, ended = await draining, time.monotonic()
        gaps = [max(each.gap(began, ended) for each in clients) for clients in (load.producers, load.consumers)]
        status, checks = await asyncio.to_thread(a.readyz)
        assert (status, checks["node"], checks["ready"]) == (503, "draining", False)
        assert (await asyncio.to_thread(b.readyz))[0] == 200
        assert (outcome.owned_count, outcome.released_count) == (QUEUES // 2, 2 * QUEUES)
        assert await asyncio.to_thread(broker.admin, lambda admin: admin.membership.owned_counts()) == {
            "a": 0, "b": QUEUES,
        }  # fmt: skip
        with pytest.raises(RequestRefused, match="node b cannot be drained: it is the only node that serves"):
            await asyncio.to_thread(broker.admin, lambda admin: admin.membership.drain("b"))

        assert await asyncio.to_thread(broker.admin, lambda admin: admin.membership.end_drain("a"))
        await until(lambda: a.readyz()[0] == 200, "the node is ready again")
        again = await Connection.open(a.port)
        again.close()
        after = await asyncio.to_thread(broker.admin, lambda admin: admin.membership.rebalance())
        assert after == {"a": QUEUES // 2, "b": QUEUES // 2}
        await load.finish()
        load.check()
        return gaps

    gaps = asyncio.run(scenario())
    logger.info("longest gap: producers %.3f s, consumers %.3f s", *gaps)
    assert max(gaps) < LONGEST_GAP


def test_a_terminated_node_is_not_ready_moves_its_clients_and_exits_with_zero(nodes, queues):
    broker, a, b = nodes

    async def scenario():
        load = await loaded(a, b, queues)
        began, seen = time.monotonic(), []
        stopping = asyncio.create_task(asyncio.to_thread(a.run.stop))
        while not stopping.done():
            seen.append(await asyncio.to_thread(a.readyz))
            await asyncio.sleep(0.01)
        ended = time.monotonic()
        await has_moved(load, b)
        gaps = [max(each.gap(began, ended) for each in clients) for clients in (load.producers, load.consumers)]
        assert await stopping == 0
        assert "draining" in {found[1]["node"] for found in seen if found is not None and found[0] == 503}
        assert await asyncio.to_thread(broker.members) == {"b"}
        await load.finish()
        load.check()
        return gaps, ended - began

    gaps, seconds = asyncio.run(scenario())
    logger.info("stopped in %.2f s; longest gap: producers %.3f s, consumers %.3f s", seconds, *gaps)
    assert max(gaps) < LONGEST_GAP
    assert "the node is drained" in a.log.read_text()
    wait_until(lambda: b.readyz()[0] == 200, "the other node is ready")


def test_a_consumer_that_holds_a_message_too_long_gets_it_flagged_at_the_other_node(broker, client, name):
    queue = f"/queue/{broker.queue_at('a', name)}"
    holder = client("a")
    holder.subscribe(queue, ack="client-individual")
    for body in ("held", "next"):
        holder.send(queue, body, persistent="true")
    assert [each.body for each in holder.take(2)] == ["held", "next"]
    try:
        assert broker.admin(lambda admin: admin.membership.drain("a")).released_count >= 1
        assert holder.disconnected.wait(5)
        taker = client("b")
        taker.subscribe(queue, ack="client-individual")
        found = taker.take(2)
        assert [(each.body, each.headers.get("redelivered")) for each in found] == [("held", "true"), ("next", "true")]
    finally:
        broker.admin(lambda admin: admin.membership.end_drain("a"))
    wait_until(lambda: broker["a"].look(lambda: broker["a"].node.health().state.listens), "it listens again")
    client("a").send(queue, "more", persistent="true")


def test_a_node_is_drained_by_brokerctl_which_refuses_the_last_one_and_unknown_ones(broker, capsys):
    options = ["--redis", broker.redis_url, "--name", broker.name]
    call_command("brokerctl", *options, "--json", "drain", "b")
    done = json.loads(capsys.readouterr().out)
    assert (done["node"], set(done)) == ("b", {"node", "handedOver", "clientsReleased"})
    with pytest.raises(CommandError, match="node a cannot be drained: it is the only node that serves clients"):
        call_command("brokerctl", *options, "drain", "a")
    with pytest.raises(CommandError, match="node c is not running; running nodes: a, b"):
        call_command("brokerctl", *options, "drain", "c")
    call_command("brokerctl", *options, "stats")
    assert ", drained, owns 0 queues" in capsys.readouterr().out
    call_command("brokerctl", *options, "drain", "b", "--end")
    assert capsys.readouterr().out == "node b serves again\n"
    call_command("brokerctl", *options, "--json", "rebalance")
    after = json.loads(capsys.readouterr().out)["after"]
    assert abs(after["a"] - after["b"]) <= 1


def test_an_openwire_client_is_told_of_the_other_node_before_its_connection_ends(redis_url):
    connector = TransportConnector("openwire", "tcp", "127.0.0.1", 0)
    with (
        several_nodes(redis_url, "a", "b", connectors=(connector,)) as several,
        OpenWireClient(several["a"].port) as openwire,
    ):
        there = f"tcp://127.0.0.1:{several['b'].port}"
        several.admin(lambda admin: admin.membership.drain("a"))
        while not (control := openwire.next(ConnectionControl)).connected_brokers:
            pass
        assert (control.connected_brokers, control.rebalance_connection) == (there, True)
        assert openwire.is_closed()
