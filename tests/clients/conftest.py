"""Fixtures: a node that listens on all transports, and the clients of other projects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokerapp.config import BrokerConfig, TransportConnector
from brokerapp.model.transport_connector import KeyStore, TlsStores
from tests.certificates import PASSWORD, Authority
from tests.protocol.running_node import RunningNode

HERE = Path(__file__).resolve().parent
#: Where `make test` puts the older stomp.py.
STOMP_PY_8 = Path(sys.prefix) / "stomp.py-8"
STOMPJS = HERE / "stompjs"
SCHEMES = ("stomp", "stomp+ssl", "ws", "wss")
#: Seconds a client's script may take.
PATIENCE = 60


@pytest.fixture(scope="session")
def authority(tmp_path_factory) -> Authority:
    """Who signed the node's certificate."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def ports(store_url, authority) -> Iterator[dict[str, int]]:
    """Where the node listens, by scheme."""
    connectors = tuple(TransportConnector(scheme, scheme, "127.0.0.1", 0) for scheme in SCHEMES)
    stores = TlsStores(KeyStore(str(authority.issue("broker").p12), PASSWORD))
    node = RunningNode(BrokerConfig("clients", connectors=connectors, tls=stores), store_url)
    yield {
        scheme: int(address.rpartition(":")[2]) for scheme, address in zip(SCHEMES, node.node.addresses, strict=True)
    }
    node.stop()


Run = Callable[..., dict]


@pytest.fixture
def run_script(ports, authority, tmp_path) -> Run:
    """Runs a client's script: it is told what to do in JSON, and tells in JSON what it saw."""

    def run(command: list[str], scheme: str, version: str, name: str, more: dict[str, str] | None = None) -> dict:
        task = {"scheme": scheme, "port": ports[scheme], "version": version, "name": name, "ca": str(authority.pem)}
        variables = {**os.environ, "NODE_EXTRA_CA_CERTS": str(authority.pem), **(more or {})}
        done = subprocess.run(
            [*command, json.dumps(task)], env=variables, cwd=HERE, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    return run


def missing(what: str) -> None:
    """Skip a test whose client is not installed; fail where all tests must run."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{what}: `make test` installs it")


@pytest.fixture(scope="session")
def node_js() -> str:
    """The program that runs JavaScript, with the packages it needs."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        missing("there is no node")
    if not (STOMPJS / "node_modules").exists():
        missing("there is no @stomp/stompjs")
    return program


@pytest.fixture(scope="session")
def stomp_py_8() -> dict[str, str]:
    """The environment in which `import stomp` means version 8."""
    if not STOMP_PY_8.exists():
        missing("there is no stomp.py 8")
    return {"PYTHONPATH": str(STOMP_PY_8)}
