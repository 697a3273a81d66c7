"""Nodes as processes, `manage.py runbroker`: one stands still, joins again, and is killed."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.faults.processes import PROJECT, free_port
from tests.nodes.conftest import SeveralNodes
from tests.protocol.clients import StompClient
from tests.protocol.running_node import until

#: Seconds without a beat after which a node is dead.
TIMEOUT = 3.0
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{broker}">
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""


class NodeProcess:
    """One node that runs from construction on."""

    def __init__(self, folder, broker, name, redis_url):
        self.port = free_port()
        config = folder / f"{name}.xml"
        config.write_text(CONFIG.format(broker=broker, port=self.port))
        command = [
            sys.executable, "manage.py", "runbroker", "--config", config, "--data", folder / name, "--redis", redis_url,
            "--node", name, "--node-timeout", str(TIMEOUT),
        ]  # fmt: skip
        self.process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
        self.readiness = threading.Semaphore(0)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                self.readiness.release()

    def wait(self):
        """Until it takes clients, again if it did before."""
        assert self.readiness.acquire(timeout=60)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def processes(tmp_path, redis_url):
    broker = SeveralNodes(redis_url)
    nodes = {name: NodeProcess(tmp_path, broker.name, name, redis_url) for name in "ab"}
    try:
        for each in nodes.values():
            each.wait()
        yield broker, nodes
    finally:
        for each in nodes.values():
            each.end()


def test_a_node_that_stands_still_is_replaced_joins_again_and_may_be_killed(processes, name):
    broker, nodes = processes
    queue = broker.queue_at("a", name)
    holder = StompClient(nodes["a"].port)
    holder.subscribe(f"/queue/{queue}", ack="client-individual")
    holder.send(f"/queue/{queue}", "held", persistent="true")
    holder.take()

    os.kill(nodes["a"].process.pid, signal.SIGSTOP)
    taker = StompClient(nodes["b"].port)
    until(lambda: broker.members() == {"b"}, "a is taken for dead", 60)
    taker.subscribe(f"/queue/{queue}", ack="client-individual")
    [message] = taker.take()
    assert (message.body, message.headers.get("redelivered")) == ("held", "true")
    taker.ack(message)

    os.kill(nodes["a"].process.pid, signal.SIGCONT)
    assert holder.disconnected.wait(60)
    nodes["a"].wait()
    assert broker.members() == {"a", "b"}

    queue = broker.queue_at("a", f"{name}.more")
    taker.subscribe(f"/queue/{queue}", id="more", ack="client-individual")
    taker.send(f"/queue/{queue}", "1", persistent="true")
    [first] = taker.take()
    nodes["a"].process.kill()
    taker.ack(first)
    taker.send(f"/queue/{queue}", "2", persistent="true")
    [second] = taker.take()
    assert (second.body, second.headers.get("redelivered")) == ("2", None)
    taker.ack(second)
    assert broker.depth(queue) == 0
