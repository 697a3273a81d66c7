"""Test that the real Java client goes on at another node, of which it was told, when its node is killed."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter, defaultdict

import pytest

from tests.jms.java_programs import compile_program, needs_java_client
from tests.nodes.conftest import SeveralNodes
from tests.ports import free_port
from tests.runbroker import Run
from tests.waiting import wait_until

pytestmark = [needs_java_client, pytest.mark.slow]

CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{broker}">
  <transportConnectors>
    <transportConnector name="openwire" uri="tcp://127.0.0.1:{port}" updateClusterClients="{told}"/>
  </transportConnectors>
</broker>
"""
COUNT, BATCH, PATIENCE = 1000, 10, 120


@pytest.mark.parametrize(("ending", "told"), [("kill", "true"), pytest.param("stop", "false", marks=pytest.mark.long)])
def test_a_transacted_producer_and_consumer_go_on_at_a_node_they_were_told_of(tmp_path, redis_url, ending, told):
    """A node that is stopped tells its clients of others as it lets them go, whatever its connector says."""
    broker = SeveralNodes(redis_url)
    ports = {name: free_port() for name in "ab"}
    runs: dict[str, Run] = {}

    def start(name: str) -> None:
        config = tmp_path / f"{name}.xml"
        config.write_text(CONFIG.format(broker=broker.name, port=ports[name], told=told))
        runs[name] = Run(
            "--config", config, "--data", tmp_path / name, "--redis", redis_url, "--node", name,
            "--node-timeout", "3", log=tmp_path / f"{name}.log",
        )  # fmt: skip
        runs[name].ready()

    for name in ports:
        start(name)
    url = f"failover:(tcp://127.0.0.1:{ports['a']})?maxReconnectDelay=500"
    program = [*compile_program("TransactionsOverNodes"), url, "over.nodes", str(COUNT)]
    client = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    said: dict[str, list[int]] = defaultdict(list)

    def listen() -> None:
        for line in client.stdout or ():
            what, number = line.rsplit(maxsplit=1)
            said[what].append(int(number) if number.isdigit() else -1)

    threading.Thread(target=listen, daemon=True).start()
    try:
        for victim, after in (("a", COUNT // 4), ("b", 3 * COUNT // 5)):
            wait_until(lambda least=after: said["sent"] and said["sent"][-1] >= least, "it sends", PATIENCE)
            getattr(runs[victim], ending)()
            if victim == "a":
                start("a")
        wait_until(lambda: said["sent"] and said["sent"][-1] == COUNT, "all is sent", PATIENCE)
        everything = set(range(COUNT))
        wait_until(lambda: {*said["got"], *said["doubt"]} >= everything, "all has come", PATIENCE)
        repeated = {number for first in said["again"] for number in range(first, first + BATCH)}
        assert {number for number, times in Counter(said["got"]).items() if times > 1} <= repeated
        assert {*said["got"]} | {*said["doubt"]} == everything
    finally:
        client.kill()
        client.wait()
        for each in runs.values():
            each.kill()
