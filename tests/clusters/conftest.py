"""Fixtures of the tests of clusters: three brokers a run, all running and linked when a test begins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.clusters.members import RunningCluster
from tests.protocol.clients import StompClient

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory) -> Iterator[RunningCluster]:
    """Three brokers, each with a store of its own."""
    cluster = RunningCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def cluster(running_cluster) -> RunningCluster:
    """They are all there."""
    running_cluster.revive()
    return running_cluster


@pytest.fixture
def name(request) -> str:
    """A name for destinations of this test alone."""
    return f"{request.node.originalname}.{next(_numbers)}".removeprefix("test_")


@pytest.fixture
def client_at(cluster) -> Iterator[Callable[..., StompClient]]:
    """Makes clients of one of the brokers; they leave at the end."""
    clients: list[StompClient] = []

    def make(broker: str, **connect: str) -> StompClient:
        clients.append(cluster.client(broker, **connect))
        return clients[-1]

    yield make
    for client in clients:
        if client.connection.is_connected():
            client.connection.disconnect()
