"""Say what a restored broker is: it replaces the original, or is a copy beside it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import redis

from brokerapp.backup.data_folder import check_restored, read_mark, write_mark
from brokerapp.errors import BackupRefused
from brokerapp.store.client.failures import store_failure
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.pools import blocking_client
from brokerapp.store.restored_mark import RestoredMark, RestoredRole
from brokerapp.store.server.embedded import EmbeddedStore, is_answering

ANSWER_SECONDS = 10.0


def decide(broker: str, role: RestoredRole | None, *, data: Path | None = None, url: str = "") -> RestoredMark:
    """Give a restored broker its role, None to act as the original, and return the mark that it had.

    Its store is in the data folder, or behind the URL. Raises BackupRefused, StoreUnavailable.
    """
    keys = StoreKeys(broker)
    if data is not None:
        check_restored(data)
    with ExitStack() as opened:
        if not url:
            assert data is not None, "a store in no folder has a URL"
            url = _embedded_url(data / "store", opened)
        client = blocking_client(url, keys.restored, protocol=2, socket_timeout=ANSWER_SECONDS)
        opened.callback(client.close)
        try:
            found = client.get(keys.restored)
            mark = RestoredMark.from_json(found) if found else read_mark(data) if data is not None else None
            if mark is None:
                raise BackupRefused(
                    f"nothing to decide: broker {broker} was not restored, or replaced the original already"
                )
            if mark.role is RestoredRole.INCOMPLETE:
                raise BackupRefused(mark.refusal)
            if role is None:
                client.delete(keys.restored)
            else:
                client.set(keys.restored, replace(mark, role=role).to_json())
        except (redis.RedisError, OSError) as error:
            raise store_failure(error, url) from error
    if data is not None and data.is_dir():
        write_mark(data, None if role is None else replace(mark, role=role))
    return mark


def _embedded_url(folder: Path, opened: ExitStack) -> str:
    """Return the URL of an embedded store; one that is not running is started meanwhile."""
    if is_answering(folder):
        return (folder / "store.url").read_text()
    if not folder.is_dir():
        raise BackupRefused(f"no broker was restored to {folder.parent}: name the backup to restore")
    return opened.enter_context(EmbeddedStore(folder)).url
