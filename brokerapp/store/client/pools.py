"""The driver's own clients and pools for the store, for those who need none of the functions: the archiver, runs of
analyses, Celery, the channel layer.

Where the store has replicas, each of their connections leads to what is the primary when it is made.
"""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio

from brokerapp.store.client.primary import primary_finder
from brokerapp.system.store_address import StoreAddress


def blocking_client(url: str, key: str, **options: Any) -> redis.Redis:
    """Return a client that blocks for the store of this URL, with options of the driver's connections.

    `key` is one of those that it is for; all of them have the same hash tag.
    """
    address = StoreAddress.parse(url)
    pool = redis.ConnectionPool.from_url(address.server_url, **options)
    if not address.has_one_server:
        pool.connection_class = primary_finder(address, key).connection_class(pool.connection_class)
    return redis.Redis.from_pool(pool)


def channel_layer_host(url: str, prefix: str) -> dict[str, Any]:
    """Return the store of this URL as a host in the settings of channels_redis, whose keys begin so."""
    address = StoreAddress.parse(url)
    if address.has_one_server:
        return {"address": url}
    base = redis.asyncio.SSLConnection if address.is_encrypted else redis.asyncio.Connection
    return {"address": address.server_url, "connection_class": primary_finder(address, prefix).connection_class(base)}


def celery_prefix(url: str) -> str:
    """Return how Celery's keys in the store of this URL begin: in a cluster all are to be at one server."""
    return "{sluice:celery}:" if StoreAddress.parse(url).cluster else "sluice:celery:"
