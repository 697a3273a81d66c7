"""Test nodes as processes linked over TLS that are restarted, frozen and killed."""

import signal
import threading
from collections import Counter

import pytest

from tests.certificates import PASSWORD, Authority
from tests.nodes.conftest import SeveralNodes
from tests.nodes.test_failover import Consumer, Producer
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run
from tests.waiting import wait_until

#: Seconds without a beat after which a node is dead.
TIMEOUT = 3.0
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{broker}">
  <sslContext>
    <sslContext keyStore="file:{keys}" keyStorePassword="{password}" trustStore="file:{trusted}"/>
  </sslContext>
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""


class NodeProcess:
    """One node that runs from construction on."""

    def __init__(self, authority, broker, name, redis_url):
        folder, self.port = authority.folder, free_port()
        config, keys = folder / f"{name}.xml", authority.issue(name).p12
        config.write_text(
            CONFIG.format(broker=broker, port=self.port, keys=keys, password=PASSWORD, trusted=authority.pem)
        )
        self._arguments = (
            "--config", config, "--data", folder / name, "--redis", redis_url, "--node", name,
            "--node-timeout", str(TIMEOUT), "--link", "ssl://127.0.0.1",
        )  # fmt: skip
        self._log = folder / f"{name}.log"
        self.start()

    def start(self):
        """Again, after it ended."""
        self.run = Run(*self._arguments, log=self._log)

    def stop(self):
        """Let it end cleanly."""
        assert self.run.stop() == 0


@pytest.fixture(scope="module")
def processes(tmp_path_factory, redis_url):
    broker, authority = SeveralNodes(redis_url), Authority(tmp_path_factory.mktemp("nodes"))
    nodes = {name: NodeProcess(authority, broker.name, name, redis_url) for name in "ab"}
    try:
        for each in nodes.values():
            each.run.ready()
        yield broker, nodes
    finally:
        for each in nodes.values():
            each.run.kill()


def test_restarting_node_after_node_under_load_loses_nothing_of_a_client_with_a_list_of_addresses(processes, name):
    broker, nodes = processes
    ports = [node.port for node in nodes.values()]  # whether somebody listens there or not
    sent, over = [], threading.Event()
    producer, consumer = Producer(lambda: ports), Consumer(lambda: ports, name)

    def produce():
        while not over.is_set():
            producer.send(name, len(sent))
            sent.append(len(sent))

    work = [threading.Thread(target=each) for each in (produce, consumer.keep_connected)]
    for each in work:
        each.start()
    try:
        for node in nodes.values():
            node.stop()
            so_far = len(sent)
            wait_until(lambda so_far=so_far: len(sent) > so_far + 20, "the other node goes on", 60)
            node.start()
            node.run.ready()
        over.set()
        work[0].join(60)
        wait_until(lambda: {number for number, _ in consumer.got} >= set(sent), "all is consumed", 60)
        wait_until(lambda: broker.depth(name) == 0, "all is acknowledged", 60)
    finally:
        over.set()
        producer.over = True
        consumer.end()
        for each in work:
            each.join()
        producer.end()
    given = Counter(number for number, _ in consumer.got)
    flagged = Counter(number for number, again in consumer.got if again)
    assert all(count - flagged[number] <= 1 for number, count in given.items())


def test_a_node_that_stands_still_is_replaced_joins_again_and_may_be_killed(processes, name):
    broker, nodes = processes
    queue = broker.queue_at("a", name)
    holder = StompClient(nodes["a"].port)
    holder.subscribe(f"/queue/{queue}", ack="client-individual")
    holder.send(f"/queue/{queue}", "held", persistent="true")
    holder.take()

    nodes["a"].run.signal(signal.SIGSTOP)
    taker = StompClient(nodes["b"].port)
    wait_until(lambda: broker.members() == {"b"}, "a is taken for dead", 60)
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    [message] = taker.take()
    assert (message.body, message.headers.get("redelivered")) == ("held", "true")
    taker.ack(message)

    nodes["a"].run.signal(signal.SIGCONT)
    assert holder.disconnected.wait(60)
    nodes["a"].run.ready()
    assert broker.members() == {"a", "b"}

    queue = broker.queue_at("a", f"{name}.more")
    taker.subscribe(f"/queue/{queue}", id="more", ack="client-individual")
    taker.send(f"/queue/{queue}", "1", persistent="true")
    [first] = taker.take()
    nodes["a"].run.kill()
    taker.ack(first)
    taker.send(f"/queue/{queue}", "2", persistent="true")
    [second] = taker.take()
    assert (second.body, second.headers.get("redelivered")) == ("2", None)
    taker.ack(second)
    assert broker.depth(queue) == 0
