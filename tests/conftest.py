"""Fixtures that several kinds of tests share: a real store, and a real node on it with a port of its own.

Properties are tried with some dozens of examples, others in each run: what few of one run miss, those of the next
find. `make test-long` tries each with a hundred.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import sys
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import stomp
from django.conf import settings

from brokerapp.config import default_config
from brokerapp.config.parsing.broker_config import TransportConnector
from brokerapp.engine.policy.authorization import Principal
from brokerapp.runtime.bootstrap import node_config
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.process_tuning import COLLECT_AFTER
from tests.migrated import in_memory, make_template
from tests.waiting import wait_until
from tests.xdist_scheduler import Spread, urgency

#: Examples of a property that does not say how many it needs.
EXAMPLES = 25


def pytest_configure() -> None:
    """Do not do again what is done already: tests start hundreds of processes, and what one compiled is for all.

    Nor look for garbage among the millions of objects that collecting makes, and keeps.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["SLUICE_WARM_UP"] = "0"  # most installations of tests are asked nothing
    hypothesis.settings.register_profile("thorough", deadline=None)  # an example takes longer beside other tests
    hypothesis.settings.register_profile("quick", deadline=None, max_examples=EXAMPLES)
    hypothesis.settings.load_profile("quick")  # unless --hypothesis-profile names the other one
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on there is garbage again, but not of what is there now, until libraries count what is left of them.

    Looked for as seldom as by a node: as often as Python does by itself takes a fortieth of the work of most tests.
    """
    gc.enable()
    gc.set_threshold(*COLLECT_AFTER)
    gc.freeze()
    atexit.register(gc.unfreeze)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first. Within a group the order stays."""
    items.sort(key=lambda item: urgency(item.nodeid))


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Called before the processes that share the tests start."""
    from tests.prepared import prepare  # which loads what a run by one process may not need

    prepare(config)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread:
    """Who runs what when `-n` asks for several processes."""
    return Spread(config, log)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory) -> Path:
    """A file with a database that has all tables and nothing else, to be copied."""
    ours = tmp_path_factory.getbasetemp()
    return make_template(ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings, migrated) -> Iterator[None]:
    """Django finds nothing left to migrate; who reads waits for no thread that writes, as in a file with its log."""
    settings.DATABASES["default"]["OPTIONS"]["init_command"] += "PRAGMA read_uncommitted=1;"
    with in_memory(migrated):
        yield


@pytest.fixture(scope="session")
def store_url(tmp_path_factory) -> Iterator[str]:
    """The URL of a store that lives as long as the tests run."""
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as store:
        yield store.url


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A classic session of Spark in this process."""
    from analytics.spark import session
    from analytics.spark.jvm import java_home

    # The gateway to the JVM says good-bye after the test run has closed the streams it would say it to.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "JAVA_HOME": str(java_home())}
    made = session.local(tmp_path_factory.mktemp("spark"))
    yield made
    made.stop()


@dataclass
class RunningBroker:
    """A broker node on a loop in a thread, with users `ada` (password `lovelace`) and nobody else."""

    name: str
    redis_url: str
    loop: asyncio.AbstractEventLoop
    node: Any = None
    clients: list[stomp.Connection12] = field(default_factory=list)

    def run(self, call: Coroutine) -> Any:
        """The result of a coroutine on the node's loop."""
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(timeout=20)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.node.addresses[0].rpartition(":")[2])

    @property
    def openwire_port(self) -> int:
        """Where it serves JMS clients."""
        return int(self.node.addresses[1].rpartition(":")[2])

    def follows(self, version: int) -> None:
        """Wait until the node routes by this version of the definitions: it hears of it a moment after it is saved."""
        wait_until(
            lambda: self.node.broker.routing.table.definitions.version == version, f"the node at version {version}"
        )

    def client(self) -> stomp.Connection12:
        """A STOMP client that is logged in; it ends with the test."""
        client = stomp.Connection12([("127.0.0.1", self.port)])
        client.connect("ada", "lovelace", wait=True)
        self.clients.append(client)
        return client

    def send(self, destination: str, *bodies: str, **headers: str) -> None:
        """Send messages; they are stored when this returns."""
        client = self.client()
        receipts = stomp.listener.WaitingListener("all")
        client.set_listener("receipts", receipts)
        for body in bodies:
            client.send(destination, body, headers={"persistent": "true", **headers})
        client.send("/topic/test.barrier", "", receipt="all")
        receipts.wait_on_receipt()


async def _let_ada_in(login: str, passcode: str, address: str) -> Principal | None:
    return Principal("ada", frozenset({"admin"})) if (login, passcode) == ("ada", "lovelace") else None


@pytest.fixture(scope="module")
def running_broker(store_url, request) -> Iterator[RunningBroker]:
    """A node of a broker of its own for the module: nothing other modules did is in it."""
    from brokerapp.runtime.node import Node

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    broker = RunningBroker(request.module.__name__.rpartition(".")[2], store_url, loop)
    config = default_config(broker.name, 0)
    config = replace(config, connectors=(*config.connectors, TransportConnector("openwire", "tcp", "127.0.0.1", 0)))

    async def start() -> Node:
        node = Node(node_config(config, store_url, alone=True), _let_ada_in)
        await node.start()
        return node

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("brokerapp.runtime.reporting.node_reports.TICK_SECONDS", 0.1)  # numbers are awaited, not admired
        broker.node = broker.run(start())
        yield broker
        broker.run(broker.node.stop())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=5)


@pytest.fixture
def broker(running_broker) -> Iterator[RunningBroker]:
    """The module's broker; clients the test made are gone after it."""
    yield running_broker
    for client in running_broker.clients:
        client.disconnect()
    running_broker.clients.clear()
