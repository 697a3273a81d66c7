"""Celery's transport and result backend for a store with replicas: each connection leads to the present primary.

Celery supports Sentinel, but no list of servers, so both use the same search as all of Sluice. Named by
console/celery.py where the store has replicas, never imported otherwise.
"""

from __future__ import annotations

from typing import Any

import redis
from celery.backends.redis import RedisBackend
from kombu.transport.redis import Channel, Transport

from brokerapp.store.client.pools import celery_prefix
from brokerapp.store.client.primary import primary_finder
from brokerapp.system.environment import Environment
from brokerapp.system.store_address import StoreAddress

#: Seconds that a server has to answer Celery, more than it waits for a task; and seconds between health checks.
#: Nothing else notices a frozen server.
ANSWER_SECONDS = 10
HEALTH_CHECK_SECONDS = 5

_url = Environment.read().redis_url
_finder = primary_finder(StoreAddress.parse(_url), celery_prefix(_url))
_plain, _encrypted = (_finder.connection_class(each) for each in (redis.Connection, redis.SSLConnection))


class PrimaryChannel(Channel):
    """Channel of Celery's transport whose connections lead to the primary."""

    connection_class = _plain
    connection_class_ssl = _encrypted
    socket_timeout = ANSWER_SECONDS
    health_check_interval = HEALTH_CHECK_SECONDS


class PrimaryTransport(Transport):
    """Celery's transport over a store with replicas."""

    Channel = PrimaryChannel


class PrimaryBackend(RedisBackend):
    """Celery's result backend in a store with replicas."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        chosen = self.connparams.get("connection_class", redis.Connection)
        self.connparams["connection_class"] = _encrypted if issubclass(chosen, redis.SSLConnection) else _plain
