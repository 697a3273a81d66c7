"""Test which of several servers is taken for the primary, and that changes wait for its replicas."""

from __future__ import annotations

import asyncio

import pytest
import redis

from brokerapp.errors import StoreUnavailable
from brokerapp.store.client import connection
from brokerapp.store.client.pools import blocking_client
from brokerapp.store.client.primary import NoPrimary, PrimaryClaim, PrimaryFinder, choose_primary
from brokerapp.store.redis import RedisStore
from brokerapp.system.store_address import StoreAddress
from tests.faults.servers import Server
from tests.waiting import wait_until

ONE, TWO = ("one", 1), ("two", 2)


def test_the_claim_with_the_most_weight_counts_however_many_repeat_another():
    claims = [PrimaryClaim(ONE, 3), PrimaryClaim(ONE, 3), PrimaryClaim(TWO, 4)]
    assert choose_primary(claims) == TWO


def test_there_is_no_primary_when_nobody_says_so():
    with pytest.raises(NoPrimary, match="none of the store's servers is a primary; one:1: is a replica"):
        choose_primary([], ["one:1: is a replica"])


def test_two_servers_with_equal_claims_are_both_refused():
    with pytest.raises(NoPrimary, match="one:1, two:2"):
        choose_primary([PrimaryClaim(ONE, 1), PrimaryClaim(TWO, 1)])


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    primary, replica = Server(folder / "one"), Server(folder / "two")
    replica.replicate(primary.port)
    yield primary, replica
    for each in (primary, replica):
        each.end()


def url_of(*servers):
    return f"redis://{','.join(f'127.0.0.1:{each.port}' for each in servers)}/0"


def test_the_primary_among_servers_is_found_in_whatever_order_they_are_named(pair):
    primary, replica = pair
    for url in (url_of(primary, replica), url_of(replica, primary)):
        assert PrimaryFinder(StoreAddress.parse(url)).find() == ("127.0.0.1", primary.port)


def test_a_blocking_client_writes_to_the_new_primary_after_an_exchange_of_roles(tmp_path):
    one, two = Server(tmp_path / "one"), Server(tmp_path / "two")
    try:
        two.replicate(one.port)
        client = blocking_client(url_of(one, two), "a")
        client.set("a", 1)
        one.ask("FAILOVER")
        wait_until(lambda: one.info("replication", "role") == "slave", "the roles are exchanged")
        with pytest.raises(redis.ConnectionError):
            client.set("a", 2)
        client.set("a", 3)
        assert two.ask("GET", "a") == b"3"
    finally:
        for each in (one, two):
            each.end()


def test_a_change_counts_when_the_wanted_number_of_replicas_has_it(pair, monkeypatch):
    monkeypatch.setattr(connection, "CONFIRM_MS", 100)

    async def change(replicas):
        store = RedisStore(url_of(*pair), "confirmed", replicas)
        try:
            return await store.connectors.replace("", "[]")
        finally:
            await store.close()

    assert asyncio.run(change(1))
    assert pair[1].ask("GET", "{confirmed}:connectors") == b"[]"
    with pytest.raises(StoreUnavailable, match="the store has the change, but 1 of 2 replicas confirmed it"):
        asyncio.run(change(2))


def test_what_replicas_have_not_confirmed_is_not_relied_upon(pair):
    async def known():
        store = RedisStore(url_of(*pair), "relied", 1)
        try:
            last = await store.nodes.join("session")
            await store.nodes.send_heartbeat("session", {})
            return last, store.client.continuity.latest
        finally:
            await store.close()

    last, latest = asyncio.run(known())
    assert (latest.changes, latest.seq) == (0, last)
