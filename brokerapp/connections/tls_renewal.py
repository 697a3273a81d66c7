"""Renew TLS contexts when their files change, as when certbot has renewed a certificate. Open connections stay.

A file that cannot be used changes nothing: what was loaded before stays in use, and the log says so once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from brokerapp.connections.tls import client_context, server_context
from brokerapp.errors import ConfigurationRefused
from brokerapp.model.transport_connector import PLAIN_TLS, TlsOptions, TlsStores

logger = logging.getLogger(__name__)

#: Seconds between two looks at the files, which take some microseconds.
CHECK_SECONDS = 2.0

#: What distinguishes two states of a file, after symbolic links, which is what certbot and Kubernetes change: also the
#: time of the last change of its permissions. None: it cannot be looked at.
_FileState = tuple[int, int, int, int] | None

_Made = TypeVar("_Made")


class RenewedFromFiles(Generic[_Made]):
    """Hold what was made of key stores and trust stores when they could last be used. `use` says what for, for the log.

    It may be used by several threads. The constructor raises ConfigurationRefused.
    """

    def __init__(self, stores: TlsStores, make: Callable[[TlsStores], _Made], use: str) -> None:
        self._stores, self._make, self._use = stores, make, use
        self._files = [each.path for each in (stores.key_store, stores.key, stores.trust_store) if each is not None]
        self._lock = threading.Lock()
        self._states = self._file_states()  # before they are read: what changes meanwhile is seen the next time
        self._latest = make(stores)
        self.valid_until = self._read_end()  #: end of the own certificate in use; None: there is none
        self.problem = ""  #: why the files as they are now cannot be used; "": they are in use

    def latest(self) -> _Made:
        """Return what was made last."""
        return self._latest

    def renew(self) -> None:
        """Read the files again if they have changed since they were read, or could not be used. It takes long."""
        with self._lock:
            states = self._file_states()
            if states == self._states and not self.problem:
                return
            self._states = states
            try:
                self._latest = self._make(self._stores)
            except Exception as wrong:  # whatever is wrong with a file or its reader, the previous one stays in use
                why = str(wrong) if isinstance(wrong, ConfigurationRefused) else f"{type(wrong).__name__}: {wrong}"
                if why != self.problem:
                    logger.error("%s: changed files cannot be used, the previous ones stay in use: %s", self._use, why)
                self.problem = why
            else:
                self.problem = ""
                logger.info("%s: new connections use the changed %s", self._use, ", ".join(self._files))
                self.valid_until = self._read_end()
                self._warn_of_expired()

    def _read_end(self) -> datetime | None:
        """Return when the own certificate ends; None where there is none."""
        if self._stores.key_store is None:
            return None
        from brokerapp.connections import key_stores  # takes ten megabytes, which nodes without TLS do without

        with contextlib.suppress(ConfigurationRefused, OSError):  # changed again since
            return key_stores.read_certificate(self._stores.key_store).valid_until
        return None

    def _warn_of_expired(self) -> None:
        """Report a certificate that came expired: it is used as it is asked for, and clients refuse it."""
        if self._stores.key_store is not None and self.valid_until is not None and self.valid_until < datetime.now(UTC):
            logger.warning(
                "%s: the certificate in %s expired on %s: clients refuse it",
                self._use, self._stores.key_store.path, f"{self.valid_until:%Y-%m-%d}",
            )  # fmt: skip

    def _file_states(self) -> list[_FileState]:
        return [_file_state(each) for each in self._files]


def _file_state(path: str) -> _FileState:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


async def keep_renewed(held: Iterable[RenewedFromFiles[Any]]) -> None:
    """Renew these whenever their files change, until cancelled. The files are read in a thread."""
    each_once = list(dict.fromkeys(held))
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        for each in each_once:
            await asyncio.to_thread(each.renew)


class ServerContext(ssl.SSLContext):
    """TLS of listeners: each new connection is of the newest context, those that are open stay as they are.

    To load a certificate into a context that is in use would keep the former one where its key is of another kind (RSA,
    ECDSA), and leave a key without its certificate where the second file is broken. So each time a context is made
    anew. asyncio and uvloop make connections by one method of the context that a listener was opened with: this one.
    """

    held: RenewedFromFiles[ssl.SSLContext]

    def __new__(cls, *_: object, **__: object) -> ServerContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, stores: TlsStores, options: TlsOptions = PLAIN_TLS, use: str = "TLS") -> None:
        """Read the stores. Raises ConfigurationRefused."""
        self.held = RenewedFromFiles(stores, lambda found: server_context(found, options), use)

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Return a connection of the newest context."""
        return self.held.latest().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Return a connection of the newest context."""
        return self.held.latest().wrap_socket(*arguments, **options)


class ClientContexts:
    """Makes client contexts of these stores: anew only when their files have changed, as they are slow to read.

    It is called in threads of their own. Raises ConfigurationRefused where they could never be used.
    """

    def __init__(self, stores: TlsStores) -> None:
        self._stores = stores
        self._lock = threading.Lock()
        self._held: RenewedFromFiles[ssl.SSLContext] | None = None

    def __call__(self) -> ssl.SSLContext:
        """Return the TLS context for the files as they are now, or as they could last be used."""
        with self._lock:
            if self._held is None:
                self._held = RenewedFromFiles(self._stores, client_context, "connections to other brokers")
        self._held.renew()
        return self._held.latest()
