"""A store of the operator's that a shard is restored into: claim it, fill it, and say what it is.

From the claim until all is in place a mark says that it is incomplete, so that nothing starts on it. A lease says which
restore fills it; it expires soon after that restore was killed, and the next one begins again.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import redis

from brokerapp.backup.data_folder import RestoreOwner
from brokerapp.backup.key_copy import copy_keys, pattern
from brokerapp.backup.staged_store import KEYS_AT_ONCE, batches, prefix_of
from brokerapp.errors import BackupRefused, ConfigurationRefused, StoreUnavailable
from brokerapp.store.client.failures import store_failure
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.pools import blocking_client
from brokerapp.store.memory_limits import check_eviction
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.store.server.server_status import evicts_messages
from brokerapp.system.store_address import without_password

#: Seconds for a target store to answer.
ANSWER_SECONDS = 60.0
#: Seconds after which the lease of a killed restore expires, and between two renewals of one that runs.
LEASE_SECONDS, RENEW_SECONDS = 30, 10.0


class TargetStore:
    """The store of one shard. `former`: a restore that was killed in the same data folder.

    Raises BackupRefused, StoreUnavailable.
    """

    def __init__(self, url: str, keys: StoreKeys, owner: RestoreOwner, former: RestoreOwner | None) -> None:
        self._name, self._keys, self._mark, self._former = without_password(url), keys, owner.mark, former
        options = {"protocol": 2, "socket_timeout": ANSWER_SECONDS, "socket_connect_timeout": ANSWER_SECONDS}
        self._client: Any = blocking_client(url, keys.state, **options)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"owner": owner.id, "process": os.getpid(), "host": socket.gethostname(), "since": since}
        self._lease = json.dumps(about).encode()
        self._ended, self._is_lost, self._is_ours = threading.Event(), False, False
        self._renewing = threading.Thread(target=self._renew, name="restore lease", daemon=True)

    def claim(self) -> None:
        """Take an empty store, or one that a killed restore left incomplete; nothing else starts on it."""
        with self._failures():
            self._check_eviction()
            self._take_lease()
            self._renewing.start()
            found = self._client.get(self._keys.restored)
            if found and self._is_left(RestoredMark.from_json(found)):
                self._remove_keys()
            self._check_empty()
            self._set_mark(RestoredRole.INCOMPLETE)
            self._is_ours = True

    def fill(self, source: Any) -> None:
        """Copy the keys of the shard from a client of another server."""
        with self._failures():
            try:
                self._check_empty()  # a broker was started there since: its keys stay
            except BackupRefused:
                self._is_ours = False
                self._client.unlink(self._keys.restored)
                raise
        copy_keys(source, self._client, prefix_of(self._keys.broker, self._keys.shard), self.check_lease)

    def complete(self) -> None:
        """Say that all keys are there; nothing starts before the operator has said what the broker is."""
        with self._failures():
            self.check_lease()
            self._set_mark(RestoredRole.UNDECIDED)

    def release(self) -> None:
        """End the claim of a store that was restored. Only shard 0 keeps a mark, which is that of the broker."""
        with suppress(redis.RedisError, OSError):  # the lease expires, and nobody reads the mark of another shard
            if self._keys.shard:
                self._client.unlink(self._keys.restored)
            self._client.unlink(self._keys.restoring)

    def give_back(self) -> None:
        """End the claim of a store that is not restored: remove what was copied to it."""
        with suppress(redis.RedisError, OSError):  # the mark says that it is incomplete
            if self._renewing.ident is not None and not self._is_lost:
                if self._is_ours:
                    self._remove_keys()
                self._client.unlink(self._keys.restoring)

    def close(self) -> None:
        """End the renewal of the lease, and all connections."""
        self._ended.set()
        if self._renewing.ident is not None:
            self._renewing.join()
        self._client.close()

    def check_lease(self) -> None:
        """Raise StoreUnavailable where another restore took the store over."""
        if self._is_lost:
            raise StoreUnavailable(
                f"another restore took over the store {self._name}, as this one could not reach it, or was stopped, "
                f"for {LEASE_SECONDS} s"
            )

    def _check_eviction(self) -> None:
        """Raise BackupRefused for a server that would delete messages when its memory is full."""
        facts = self._client.info("memory")
        try:
            check_eviction(int(facts.get("maxmemory", 0)), evicts_messages(facts))
        except ConfigurationRefused as error:
            raise BackupRefused(f"{self._name}: {error}") from error

    def _check_empty(self) -> None:
        own = {self._keys.restored.encode(), self._keys.restoring.encode()}
        found = self._client.scan_iter(match=self._pattern, count=KEYS_AT_ONCE)
        key = next((each for each in found if each not in own), None)
        if key is not None:
            raise BackupRefused(
                f"the store {self._name} holds broker {self._keys.broker} already (key "
                f"{key.decode(errors='replace')}): name an empty one, or choose another name for the broker with --name"
            )

    def _is_left(self, found: RestoredMark) -> bool:
        """Return whether a killed restore left the store so.

        It may be complete there, but not in the data folder of that restore, into which this one restores, too.
        """
        return found.role is RestoredRole.INCOMPLETE or (self._former is not None and found == self._former.mark)

    def _set_mark(self, role: RestoredRole) -> None:
        self._client.set(self._keys.restored, replace(self._mark, role=role).to_json())

    def _remove_keys(self) -> None:
        """Remove all keys of the shard but the lease; the mark goes last."""
        kept = {self._keys.restored.encode(), self._keys.restoring.encode()}
        for keys in batches(self._client.scan_iter(match=self._pattern, count=KEYS_AT_ONCE), KEYS_AT_ONCE):
            if others := [key for key in keys if key not in kept]:
                self._client.unlink(*others)
        self._client.unlink(self._keys.restored)

    @property
    def _pattern(self) -> bytes:
        return pattern(prefix_of(self._keys.broker, self._keys.shard))

    # -- the lease

    def _take_lease(self) -> None:
        if self._set_lease(nx=True):
            return
        found = json.loads(self._client.get(self._keys.restoring) or b"{}")
        if self._former is not None and found.get("owner") == self._former.id:
            self._set_lease()
            return
        raise BackupRefused(
            f"another restore writes to the store {self._name} (process {found.get('process')} on "
            f"{found.get('host')}, since {found.get('since')}): wait for its end; if it was killed, try again in "
            f"{LEASE_SECONDS} seconds"
        )

    def _set_lease(self, *, nx: bool = False) -> bool:
        return bool(self._client.set(self._keys.restoring, self._lease, nx=nx, px=int(1000 * LEASE_SECONDS)))

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            with suppress(redis.RedisError, OSError):
                is_held = self._client.get(self._keys.restoring) == self._lease
                if not self._set_lease(nx=not is_held):
                    self._is_lost = True
                    return

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            raise store_failure(error, self._name) from error


@contextmanager
def claimed(
    urls: Mapping[int, str], broker: str, owner: RestoreOwner, former: RestoreOwner | None
) -> Iterator[dict[int, TargetStore]]:
    """Claim the stores behind these URLs, by shard; remove what is copied to them if the context fails.

    Raises BackupRefused, StoreUnavailable.
    """
    with ExitStack() as opened:
        stores: dict[int, TargetStore] = {}
        try:
            for number, url in sorted(urls.items()):
                stores[number] = store = TargetStore(url, StoreKeys(broker, number), owner, former)
                opened.callback(store.close)
                store.claim()
            yield stores
        except BaseException:
            for each in stores.values():
                each.give_back()
            raise
        for each in stores.values():
            each.release()
