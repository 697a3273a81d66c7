"""The progress of a run: a key in the store that its worker writes and web processes read. Only states go by Celery.

{B}:run-progress:ID    string  JSON: stage (text), progress (0 to 1), rows (recorded events, where known) and at
                               (seconds since the epoch); expires
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from typing import Any

import redis

from brokerapp.store.client.keys import run_progress_key
from brokerapp.store.client.pools import blocking_client

#: Seconds after which a key expires: longer than any run takes.
EXPIRY_SECONDS = 24 * 3600
_TIMEOUT_SECONDS = 2.0

log = logging.getLogger(__name__)


class RunProgress:
    """Writes and reads the progress of runs. A store that does not respond has none, and fails no run."""

    def __init__(self, redis_url: str, broker: str) -> None:
        self._broker = broker
        self._redis = blocking_client(
            redis_url,
            run_progress_key(broker, ""),
            socket_connect_timeout=_TIMEOUT_SECONDS,
            socket_timeout=_TIMEOUT_SECONDS,
        )

    def write(self, run_id: str, info: dict[str, Any]) -> None:
        """Replace the progress of a run: `stage`, `progress` and, where known, `rows`."""
        value = json.dumps({**info, "at": time.time()})
        try:
            self._redis.set(run_progress_key(self._broker, run_id), value, ex=EXPIRY_SECONDS)
        except redis.RedisError as error:
            log.warning("progress of run %s was not written: %s", run_id, error)

    def clear(self, run_id: str) -> None:
        """Delete the progress of a run that starts again."""
        try:
            self._redis.delete(run_progress_key(self._broker, run_id))
        except redis.RedisError as error:
            log.warning("progress of run %s was not deleted: %s", run_id, error)

    def read(self, run_ids: Iterable[str]) -> dict[str, dict[str, Any]] | None:
        """Return the progress of these runs by id, for those that have any; None: the store did not answer."""
        ids = list(run_ids)
        if not ids:
            return {}
        try:
            found = self._redis.mget([run_progress_key(self._broker, each) for each in ids])
        except redis.RedisError as error:
            log.warning("progress of runs was not read: %s", error)
            return None
        return {id: json.loads(text) for id, text in zip(ids, found, strict=True) if text}
