"""Give every broker whose nodes run in this process a second shard: `pytest -p tests.shards.every_node PATHS`.

So tests that were written for brokers with one store test brokers with two. Those that look into the store itself, or
whose figures are those of one store, fail with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokerapp.runtime.node import Node
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.store.shards.broker_store import BrokerStore


@pytest.fixture(scope="session", autouse=True)
def _second_shard() -> Iterator[None]:
    start = Node.start
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(Path(folder)) as other:

        async def start_on_shards(node: Node) -> None:
            store = BrokerStore(node._store.url, node.config.broker)
            await store.open()
            if not (await store.shard_record.read()).shards:
                await store.shard_record.add(other.url, "serving")
            await store.close()
            await start(node)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Node, "start", start_on_shards)
            yield
