"""Test that parts of a cluster and replicas are refused as stores."""

import pytest

from brokerapp.errors import ConfigurationRefused, StoreUnavailable
from brokerapp.store.redis import RedisStore
from tests.faults.servers import Server


@pytest.fixture
def server(tmp_path):
    started = []

    def start(**options):
        started.append(Server(tmp_path / str(len(started)), **options))
        return started[-1]

    yield start
    for each in started:
        each.end()


async def opened(server):
    store = RedisStore(f"redis://127.0.0.1:{server.port}", "b")
    try:
        await store.open()
        await store.nodes.join("me")
    finally:
        await store.close()


async def test_a_server_of_a_cluster_that_has_not_all_keys_is_refused_with_a_sentence(server):
    member = server(**{"cluster-enabled": "yes", "cluster-port": "0"})
    with pytest.raises(ConfigurationRefused, match=r"the server runs in cluster mode; .* cluster://HOST:PORT"):
        await opened(member)


async def test_a_replica_is_refused_until_it_is_the_primary(server):
    primary, replica = server(), server()
    replica.replicate(primary.port)
    with pytest.raises(StoreUnavailable, match="leads to a read-only replica"):
        await opened(replica)
    replica.promote()
    await opened(replica)


async def test_a_server_that_takes_no_writes_now_can_be_read_by_tools(server):
    lonely = server()
    await opened(lonely)
    lonely.ask("CONFIG", "SET", "min-replicas-to-write", "1")
    tool = RedisStore(f"redis://127.0.0.1:{lonely.port}", "b")
    try:
        assert set((await tool.nodes.members())[1]) == {"main"}
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            await tool.nodes.join("other")
    finally:
        await tool.close()


async def test_a_user_who_may_not_ask_what_server_it_is_is_served(server):
    guarded = server()
    guarded.ask("ACL", "SETUSER", "guest", "on", ">secret", "~*", "&*", "+@all", "-info")
    store = RedisStore(f"redis://guest:secret@127.0.0.1:{guarded.port}", "b")
    try:
        await store.open()
        assert await store.nodes.join("me") == 0
        assert store.client.continuity.latest.life == ""
    finally:
        await store.close()
