"""A broker as an operator runs it: `manage.py runbroker` as a process with a store of its own, to be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from brokerapp.data_folder import DataFolder
from brokerapp.store.embedded import EmbeddedStore
from brokerapp.store.redis import RedisStore
from tests.protocol.running_node import until

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0

CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}">
  {more}
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""


class BrokerProcess:
    """One data folder, and the processes that serve it, one after the other."""

    def __init__(self, folder: Path, more: str = "", name: str = "faults") -> None:
        self.port = free_port()
        self.config, self.data = folder / "activemq.xml", folder / "data"
        self.config.write_text(CONFIG.format(port=self.port, more=more, name=name))
        self._process: subprocess.Popen[str] | None = None
        self.said: list[str] = []  #: on standard error

    def start(self) -> None:
        """Run it until it says that it is ready."""
        command = [sys.executable, "manage.py", "runbroker", "--config", self.config, "--data", self.data]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True).start()
        line = self._process.stdout.readline().strip()
        assert line == "ready", f"it said {line!r} and {self.said}"

    def _listen(self, stream) -> None:
        for line in stream:
            self.said.append(line.rstrip())

    def store_process(self) -> psutil.Process:
        """Its store's server."""
        [server] = [each for each in psutil.Process(self._process.pid).children() if "valkey" in each.name()]
        return server

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def kill_store(self) -> None:
        """kill -9 of the store only."""
        server = self.store_process()
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: is_dead(server), "the store is dead")

    def terminate(self) -> int:
        """SIGTERM; its exit status."""
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def depths(self, prefix: str, kind: str = "queue") -> dict[str, int]:
        """Messages in the queues whose names begin so, as the store has them; or in the logs of another kind."""

        async def ask() -> dict[str, int]:
            store = RedisStore(*DataFolder(self.data).whereabouts())
            try:
                return await store.depths([log for log in await store.logs() if log.startswith(f"{kind}://{prefix}")])
            finally:
                await store.close()

        return {name.removeprefix(f"{kind}://"): depth for name, depth in asyncio.run(ask()).items()}

    def end(self) -> None:
        """Leave nothing behind."""
        if self._process is not None:
            if self._process.poll() is None:
                self.kill()
            self._process.stdout.close()
        with EmbeddedStore(self.data / "store"):
            pass  # whoever can claim the folder knows that the last server is gone


def free_port() -> int:
    """A TCP port nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_dead(process: psutil.Process) -> bool:
    """Whether it ended, its parent knowing of it or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
