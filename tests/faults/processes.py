"""Run a broker as `manage.py runbroker`, a process with a store of its own, which tests kill."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import psutil

from brokerapp.store.redis import RedisStore
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.data_directory import DataDirectory
from tests.ports import free_port
from tests.runbroker import Run
from tests.waiting import wait_until

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
        self.config, self.data, self._log = folder / "activemq.xml", folder / "data", folder / "broker.log"
        self.config.write_text(CONFIG.format(port=self.port, more=more, name=name))
        self._run: Run | None = None

    def start(self) -> None:
        """Run it until it says that it is ready."""
        self._run = Run("--config", self.config, "--data", self.data, log=self._log)
        self._run.ready()

    @property
    def process(self) -> psutil.Process:
        """That of the node."""
        return psutil.Process(self._run.pid)

    @property
    def said(self) -> list[str]:
        """On standard error."""
        return self._run.errors().splitlines()

    def store_process(self) -> psutil.Process:
        """Its store's server."""
        [server] = [each for each in self.process.children() if "valkey" in each.name()]
        return server

    def kill(self) -> None:
        """kill -9."""
        self._run.kill()

    def kill_store(self) -> None:
        """kill -9 of the store only."""
        server = self.store_process()
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: is_dead(server), "the store is dead")

    def terminate(self) -> int | None:
        """SIGTERM; its exit status."""
        return self._run.stop()

    def depths(self, prefix: str, kind: str = "queue") -> dict[str, int]:
        """Messages in the queues whose names begin so, as the store has them; or in the logs of another kind."""

        async def ask() -> dict[str, int]:
            store = RedisStore(*DataDirectory(self.data).locate_store())
            try:
                return await store.logs.depths(
                    [log for log in await store.logs.all_attributes() if log.startswith(f"{kind}://{prefix}")]
                )
            finally:
                await store.close()

        return {name.removeprefix(f"{kind}://"): depth for name, depth in asyncio.run(ask()).items()}

    def end(self) -> None:
        """Leave nothing behind."""
        if self._run is not None:
            self.kill()
        with EmbeddedStore(self.data / "store"):
            pass  # whoever can claim the folder knows that the last server is gone


def is_dead(process: psutil.Process) -> bool:
    """Whether it ended, its parent knowing of it or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
