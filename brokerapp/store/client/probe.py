"""Read what a server of the store says of itself, for checks: it writes nothing, and needs none of the functions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from brokerapp.errors import BrokerError
from brokerapp.store.client.failures import failure_reason
from brokerapp.store.client.pools import blocking_client
from brokerapp.system.store_address import without_password

#: Seconds that a server has to accept a connection, and for each answer.
ANSWER_SECONDS = 4.0
#: Commands that are timed.
PINGS = 20
#: Settings that are read, as patterns.
_SETTINGS = ("maxmemory*", "append*")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One server; `problem` says why it could not be asked, and then there is nothing else.

    `settings` is None where the server refuses to show them, as hosted ones do. `clock_ms` is how far its clock is
    ahead of this machine's.
    """

    url: str  #: without the password
    problem: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] | None = None
    latency_ms: tuple[float, ...] = ()
    clock_ms: float = 0.0
    answers: tuple[Any, ...] = ()  #: to the commands that were asked besides


def probe_server(url: str, key: str, commands: Sequence[Sequence[str]] = ()) -> ServerFacts:
    """Ask the primary of the store that has this key; `commands` must not write."""
    shown = without_password(url)
    try:
        client = blocking_client(
            url, key, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS, retry_on_timeout=False
        )
        try:
            return _facts(client, shown, commands)
        finally:
            client.close()
    except (redis.RedisError, OSError, BrokerError) as error:
        return ServerFacts(shown, failure_reason(error))


def _facts(client: Any, shown: str, commands: Sequence[Sequence[str]]) -> ServerFacts:
    info = client.info()
    latencies = []
    clock_ms, narrowest = 0.0, float("inf")
    for _ in range(PINGS):
        began, wall = time.perf_counter(), time.time()
        seconds, microseconds = client.time()
        took = 1000 * (time.perf_counter() - began)
        latencies.append(took)
        if took < narrowest:  # the shorter the answer takes, the better known is when its clock was read
            narrowest = took
            clock_ms = 1000 * (seconds - wall) + microseconds / 1000 - took / 2
    return ServerFacts(
        shown, "", info, _settings(client), tuple(latencies), clock_ms,
        tuple(client.execute_command(*command) for command in commands),
    )  # fmt: skip


def _settings(client: Any) -> dict[str, str] | None:
    found: dict[str, str] = {}
    try:
        for pattern in _SETTINGS:
            found |= client.config_get(pattern)
    except redis.ResponseError:  # unknown or not permitted
        return None
    return found
