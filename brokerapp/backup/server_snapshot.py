"""Take a snapshot of a store's server over the network, as a replica does.

The server forks, and its child writes all it holds, as of that moment, in the format of its own files (RDB). Nothing on
the server's disk is needed. The answer `+FULLRESYNC ID OFFSET` comes when it has forked, with the position of its
replication at that moment.

`REPLCONF rdb-only` leaves out what is written meanwhile, which a replica would get next. With `capa eof` the child
sends what it writes (`$EOF:MARK`); without, the server writes a file first and sends that (`$LENGTH`). The former is
delayed by `repl-diskless-sync-delay`, for other replicas to come; so it is asked for only where that is 0, or may be
set to 0. The store notes the former value until it is set again, as a killed backup cannot: the next one does.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import redis

from brokerapp.errors import BackupRefused, StoreUnavailable
from brokerapp.store.client.failures import store_failure
from brokerapp.store.client.keys import StoreKeys
from brokerapp.store.client.pools import blocking_client
from brokerapp.system.store_address import without_password

#: Errors of files, which a connection does not have.
_OF_FILES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
#: Seconds for the server to answer a command, and to send more of a snapshot.
ANSWER_SECONDS, SILENCE_SECONDS = 10.0, 60.0
#: Seconds until a snapshot begins that nothing else waits for: another child of the server may have to end first.
BEGIN_SECONDS = 600.0
#: Bytes read at once, of a line at most, and of the mark at the end of a snapshot without length.
READ_BYTES, MAX_LINE_BYTES, MARK_BYTES = 256 * 1024, 4096, 40
_DELAY = "repl-diskless-sync-delay"
_NEEDED = "the store's user needs the commands psync, replconf, info and client|pause"


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a server says of itself."""

    run_id: str
    history_id: str  #: of its replication
    offset: int
    version: str
    has_child: bool  #: whether it writes a file in the background

    @property
    def life(self) -> str:
        """Return what tells this life of the server from others, as store/functions/history.lua has it."""
        return self.run_id[:20] + self.history_id[:20]


class ServerSnapshot:
    """One snapshot of the server behind a URL. `keys` are those of a shard in it. Raises StoreUnavailable."""

    def __init__(self, url: str, keys: StoreKeys) -> None:
        self._name = without_password(url)
        self.client: Any = blocking_client(
            url, keys.state, protocol=2, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS
        )
        self._stream: Any = None
        self._received = bytearray()
        self._note = keys.sync_delay
        self._delay = ""  # that the server has else
        self._is_noted = False
        self.offset = 0  #: at which the snapshot was taken, once it has begun

    def close(self) -> None:
        """Close all connections; a snapshot that is under way ends."""
        self.give_up()
        self.client.close()

    def give_up(self) -> None:
        """End a snapshot that is under way; another one may be prepared then."""
        self._restore_delay()
        if self._is_noted:  # not before, as the server may hold writes
            with suppress(redis.RedisError, OSError):
                self.client.delete(self._note)
            self._is_noted = False
        self._received.clear()
        if self._stream is not None:
            with suppress(redis.RedisError, OSError):
                self._stream.disconnect()
            self.client.connection_pool.release(self._stream)
            self._stream = None

    @property
    def database(self) -> int:
        """Return the database of the server that the URL names."""
        return int(self.client.connection_pool.connection_kwargs.get("db") or 0)

    def ask(self, *command: Any) -> Any:
        """Return the server's answer to a command."""
        try:
            return self.client.execute_command(*command)
        except (redis.RedisError, OSError) as error:
            raise self._failure(error) from error

    def facts(self) -> ServerFacts:
        """Return what the server says of itself now."""
        said = self.ask("INFO")
        if said.get("role") != "master":
            raise StoreUnavailable(f"{self._name} is a replica: name the primary")
        return ServerFacts(
            said["run_id"], said["master_replid"], int(said["master_repl_offset"]),
            f"{said.get('server_name', 'redis')} {said.get('valkey_version', said.get('redis_version', ''))}".strip(),
            bool(said["rdb_bgsave_in_progress"] or said["aof_rewrite_in_progress"]),
        )  # fmt: skip

    def pause(self, seconds: float) -> None:
        """Have the server hold all writes, for so long at most."""
        self.ask("CLIENT", "PAUSE", int(1000 * seconds), "WRITE")

    def end_pause(self) -> None:
        """Let the server write again."""
        self.ask("CLIENT", "UNPAUSE")

    # -- the snapshot

    def prepare(self) -> None:
        """Connect as a replica that wants a snapshot only. Raises BackupRefused where that is not permitted."""
        streams = self._is_undelayed()
        try:
            self._stream = self.client.connection_pool.get_connection()
            self._tell("REPLCONF", "rdb-only", "1")
            if streams:
                self._tell("REPLCONF", "capa", "eof")
        except redis.ResponseError as error:
            raise BackupRefused(f"{self._name} gives no snapshot: {error}; {_NEEDED}") from error
        except (redis.RedisError, OSError) as error:
            raise self._failure(error) from error

    def request(self) -> None:
        """Ask for the snapshot."""
        try:
            self._stream.send_command("PSYNC", "?", "-1")
        except (redis.RedisError, OSError) as error:
            raise self._failure(error) from error

    def wait_until_begun(self, least: int, seconds: float = BEGIN_SECONDS) -> bool:
        """Wait until the server has forked; return whether it did so in time, and not before the offset `least`.

        A server that writes a file for another replica sends that instead of one that begins later.
        """
        deadline = time.monotonic() + seconds
        line = b""
        while not line:  # empty lines say that it is still busy with something else
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            try:
                line = self._read_line(left)
            except TimeoutError:
                return False
        self._restore_delay()
        if not line.startswith(b"+FULLRESYNC "):
            raise BackupRefused(f"{self._name} gives no snapshot: {line.decode(errors='replace')}; {_NEEDED}")
        self.offset = int(line.split()[2])
        return self.offset >= least

    def read(self, write: Callable[[bytes], Any]) -> int:
        """Pass the snapshot on as it comes; return how many bytes it has."""
        header = b""
        try:
            while not header:
                header = self._read_line(SILENCE_SECONDS)
            if header.startswith(b"$EOF:"):
                return self._read_until(header[5:], write)
            if header.startswith(b"$"):
                return self._read_exactly(int(header[1:]), write)
        except (TimeoutError, OSError) as error:
            if error.errno in _OF_FILES:
                raise  # what `write` could not write
            raise StoreUnavailable(f"{self._name} ended the snapshot: {error or 'it sends nothing more'}") from error
        raise StoreUnavailable(f"{self._name} sends no snapshot: {header.decode(errors='replace')}")

    def _read_exactly(self, size: int, write: Callable[[bytes], Any]) -> int:
        left = size
        while left:
            data = self._receive(SILENCE_SECONDS)[:left]
            write(data)
            left -= len(data)
        return size

    def _read_until(self, mark: bytes, write: Callable[[bytes], Any]) -> int:
        """Read up to the mark, behind which nothing comes: the bytes that it may be in are held."""
        held, size = b"", 0
        while True:
            held += self._receive(SILENCE_SECONDS)
            if held.endswith(mark):
                write(held[: -len(mark)])
                return size + len(held) - len(mark)
            ready = len(held) - MARK_BYTES
            if ready > 0:
                write(held[:ready])
                held, size = held[ready:], size + ready

    def _read_line(self, seconds: float) -> bytes:
        """Return the next line without its end. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) > MAX_LINE_BYTES:
                raise StoreUnavailable(f"{self._name} sends no snapshot: a line of more than {MAX_LINE_BYTES} bytes")
            self._received += self._read_socket(max(0.001, deadline - time.monotonic()))
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line.strip(b"\r")

    def _receive(self, seconds: float) -> bytes:
        if self._received:
            data, self._received = bytes(self._received), bytearray()
            return data
        return self._read_socket(seconds)

    def _read_socket(self, seconds: float) -> bytes:
        connected: socket.socket = self._stream._sock  # below the driver, which would take a snapshot for an answer
        connected.settimeout(seconds)
        data = connected.recv(READ_BYTES)
        if not data:
            raise StoreUnavailable(f"{self._name} closed the connection before the snapshot was complete")
        return data

    def _tell(self, *command: str) -> None:
        self._stream.send_command(*command)
        self._stream.read_response()

    def _is_undelayed(self) -> bool:
        """Return whether the server would send a snapshot without a file at once, after setting it so where allowed."""
        run = self.facts().run_id
        with suppress(redis.ResponseError, redis.ConnectionError, OSError):
            found = self.client.config_get(_DELAY).get(_DELAY)
            if found is None:
                return False
            if int(found):
                self.client.set(self._note, f"{run} {found}")
                self._is_noted = True
                self.client.config_set(_DELAY, 0)
                self._delay = found
            else:
                self._delay = self._delay_before(run)
                self._is_noted = bool(self._delay)
            return True
        return False

    def _delay_before(self, run: str) -> str:
        """Return the delay that the server had before a backup that was killed; "" without one in this run of it."""
        with suppress(redis.RedisError, OSError):
            noted_run, _, delay = (self.client.get(self._note) or b"").decode().partition(" ")
            return delay if noted_run == run else ""
        return ""

    def _restore_delay(self) -> None:
        if self._delay:
            with suppress(redis.RedisError, OSError):
                self.client.config_set(_DELAY, self._delay)
            self._delay = ""

    def _failure(self, error: Exception) -> StoreUnavailable:
        return store_failure(error, self._name)
