"""Fixtures of the protocol tests: one store a run, one node a module, any number of clients."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from brokerapp.config import default_config
from brokerapp.store.server.embedded import EmbeddedStore
from tests.protocol.clients import RawClient, StompClient
from tests.protocol.running_node import RunningNode

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Iterator[EmbeddedStore]:
    """A store of its own, for all nodes of the run; each has a broker name of its own in it."""
    with EmbeddedStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@contextmanager
def paused_store(store: EmbeddedStore) -> Iterator[None]:
    """Pause the process of the store: it neither answers nor ends."""
    os.kill(store.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(store.pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def node(store) -> Iterator[RunningNode]:
    """Start a node with the default configuration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("brokerapp.runtime.reporting.node_reports.TICK_SECONDS", 0.1)  # numbers are awaited, not admired
        running = RunningNode(default_config(f"protocol-{next(_numbers)}", 0), store.url)
        yield running
        running.stop()


@pytest.fixture
def name(request) -> str:
    """A name for destinations of this test alone."""
    return f"{request.node.originalname}.{next(_numbers)}".removeprefix("test_")


@pytest.fixture
def connect(node) -> Iterator[Callable[..., StompClient]]:
    """Makes stomp.py clients of the node; they leave at the end."""
    clients: list[StompClient] = []

    def make(version: str = "1.2", port: int | None = None, **options) -> StompClient:
        clients.append(StompClient(port or node.port, version, **options))
        return clients[-1]

    yield make
    for client in clients:
        if client.connection.is_connected():
            client.connection.disconnect()


@pytest.fixture
def raw(node) -> Iterator[Callable[..., RawClient]]:
    """Makes bare sockets to the node; they are closed at the end."""
    clients: list[RawClient] = []

    def make(version: str | None = "1.2", **options) -> RawClient:
        clients.append(RawClient(node.port, version, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
