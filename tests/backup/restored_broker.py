"""Back up and restore brokers by the functions behind the commands, and run nodes on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from brokerapp.admin import BrokerAdmin
from brokerapp.backup import command_line
from brokerapp.model.destination import Destination
from brokerapp.store.shards.broker_store import BrokerStore
from brokerapp.system.data_directory import DataDirectory
from tests.ports import free_port
from tests.runbroker import Run

PASSPHRASE = "correct horse battery"
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" schedulerSupport="true">
  {more}
  <transportConnectors><transportConnector name="clients" uri="auto://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""
T = TypeVar("T")


class BrokerInFolder:
    """A broker of one node with a data folder, which may not have been started yet."""

    def __init__(self, folder: Path, data: str, *options: str, name: str = "orders", more: str = "") -> None:
        self.name, self.data, self.port = name, folder / data, free_port()
        self.config, self._log, self._options = folder / f"{data}.xml", folder / f"{data}.log", options
        self.config.write_text(CONFIG.format(name=name, port=self.port, more=more))
        self.run: Run | None = None

    def launch(self) -> Run:
        """Start its process."""
        arguments = ("--config", self.config, "--data", self.data, "--no-trace", *self._options)
        self.run = Run(*arguments, log=self._log)
        return self.run

    def start(self) -> None:
        """Start its process, and wait until it accepts clients."""
        self.launch().ready()

    def refusal(self) -> str:
        """Start it, and return what it says as it ends."""
        run = self.launch()
        assert run.hear() == "", "it started"
        return run.errors().strip().splitlines()[-1]

    def end(self) -> None:
        """Stop its process."""
        if self.run is not None and self.run.is_alive:
            assert self.run.stop() == 0, self.run.errors()

    def kill(self) -> None:
        """kill -9."""
        if self.run is not None:
            self.run.kill()

    def bodies(self, queue: str) -> list[str]:
        """Return the bodies that its store has in a queue, in order."""
        return content_of(DataDirectory(self.data).locate_store()[0], self.name, [queue])[queue]

    def admin(self, question: Callable[[BrokerAdmin], Awaitable[T]]) -> T:
        """Ask it as an operator."""

        async def once() -> T:
            admin = BrokerAdmin(*DataDirectory(self.data).locate_store())
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(once())


def content_of(url: str, broker: str, queues: list[str]) -> dict[str, list[str]]:
    """Return the bodies in queues of a store, in order."""

    async def read() -> dict[str, list[str]]:
        store = BrokerStore(url, broker)
        try:
            await store.open()
            found = {}
            for queue in queues:
                entries = await store.entries.read(str(Destination.queue(queue)), 0, 1_000_000)
                found[queue] = [each.message.body.decode() for each in entries]
            return found
        finally:
            await store.close()

    return asyncio.run(read())


def backup(file: Path, *options: str | Path) -> int:
    """Run the command; its exit status."""
    return command_line.backup([str(file), *map(str, options)], "sluice backup")


def restore(*arguments: str | Path) -> int:
    """Run the command; its exit status."""
    return command_line.restore(list(map(str, arguments)), "sluice restore")
