"""Run brokers of a cluster as processes with stores of their own, which tests kill and restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from brokerapp.admin import BrokerAdmin
from brokerapp.cluster.status import ClusterStatus, MemberState
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import DestinationStats
from brokerapp.store.server.embedded import EmbeddedStore
from brokerapp.system.data_directory import DataDirectory
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run
from tests.waiting import wait_until

PATIENCE = 30.0
#: Milliseconds: short ones, which tests can wait for, and longer ones, which nothing here lasts.
RETRY_MS, AUTO_DESTROY_MS, WINDOW_MS = 150, 1_000, 2_500
CONFIG = """\
<broker xmlns="http://activemq.apache.org/schema/core" xmlns:sluice="urn:sluice" brokerName="{name}"
  sluice:clusterBrokers="{members}" sluice:clusterMaster="{master}" sluice:clusterRetry="{retry}"
  sluice:autoDestroyAfter="{auto}" sluice:reconnectWindow="{window}" schedulerSupport="false">
  <destinationPolicy><policyMap><policyEntries>
    <policyEntry queue="closed.>" sluice:autoCreate="false"/>
    <policyEntry queue="bounded.>" sluice:storeLimit="2048" sendFailIfNoSpace="true"/>
  </policyEntries></policyMap></destinationPolicy>
  {more}
  <transportConnectors><transportConnector name="stomp" uri="stomp://127.0.0.1:{port}"/></transportConnectors>
</broker>
"""

T = TypeVar("T")


class MemberProcess:
    """One broker: a data folder, and the processes that serve it, one after the other."""

    def __init__(self, folder: Path, name: str, port: int, config: str) -> None:
        self.name, self.port, self.data = name, port, folder / name
        self.config = folder / f"{name}.xml"
        self.config.write_text(config)
        self._log = folder / f"{name}.log"
        self._run: Run | None = None

    # -- its process

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._run is not None and self._run.is_alive

    def launch(self) -> None:
        """Run it; `ready` waits for it."""
        self._run = Run("--config", self.config, "--data", self.data, "--no-trace", log=self._log)

    def ready(self) -> None:
        """Wait until it says that it is ready."""
        self._run.ready()

    def start(self) -> None:
        """Run it."""
        self.launch()
        self.ready()

    def kill(self) -> None:
        """kill -9."""
        self._run.kill()

    def restart(self) -> None:
        """kill -9, and run it again."""
        self.kill()
        self.start()

    def end(self) -> None:
        """Leave nothing behind."""
        if self.is_running:
            self.kill()
        with EmbeddedStore(self.data / "store"):
            pass  # whoever can claim the folder knows that the last server is gone

    # -- as operators see it

    def ask(self, question: Callable[[BrokerAdmin], Awaitable[T]]) -> T:
        """Ask through the operators' door."""

        async def once() -> T:
            admin = BrokerAdmin(*DataDirectory(self.data).locate_store())
            try:
                return await question(admin)
            finally:
                await admin.close()

        return asyncio.run(once())

    def status(self) -> ClusterStatus:
        """The cluster as it sees it."""
        return self.ask(lambda admin: admin.cluster())

    def is_linked(self) -> bool:
        """Whether it is in step, and has links to and from all others."""
        status = self.status()
        others = [each for each in status.members if each.state is not MemberState.SELF]
        return not status.suspended and all(each.state is MemberState.UP and each.linked_back for each in others)

    def create(self, text: str) -> None:
        """An operator makes a destination."""
        self.ask(lambda admin: admin.create(Destination.parse(text)))

    def delete(self, text: str) -> int:
        """An operator deletes one."""
        return self.ask(lambda admin: admin.delete(Destination.parse(text)))

    def stored(self, text: str) -> dict | None:
        """What its store knows of a destination; None: nothing."""

        async def look(admin: BrokerAdmin) -> dict | None:
            return (await admin._store.logs.all_attributes()).get(str(Destination.parse(text)))

        return self.ask(look)

    def stats(self, text: str) -> DestinationStats | None:
        """The numbers of a destination; None: it is not there."""

        async def look(admin: BrokerAdmin) -> DestinationStats | None:
            wanted = Destination.parse(text)
            _, found, _ = await admin.stats()
            return next((each for each in found if each.destination == wanted), None)

        return self.ask(look)

    def has(self, text: str) -> bool:
        """Whether it lists the destination."""
        return self.stats(text) is not None


class RunningCluster:
    """Three brokers W, X and Y; W keeps the record."""

    def __init__(self, folder: Path, names: str = "WXY", master: str = "W", more: str = "") -> None:
        ports = {name: free_port() for name in names}
        members = ",".join(f"{name}=tcp://127.0.0.1:{port}" for name, port in ports.items())
        self.members = {
            name: MemberProcess(
                folder, name, port,
                CONFIG.format(
                    name=name, port=port, members=members, master=master, retry=RETRY_MS, auto=AUTO_DESTROY_MS,
                    window=WINDOW_MS, more=more,
                ),
            )
            for name, port in ports.items()
        }  # fmt: skip

    def __getitem__(self, name: str) -> MemberProcess:
        return self.members[name]

    def __iter__(self) -> Iterator[MemberProcess]:
        return iter(self.members.values())

    def start(self) -> None:
        """Run all, at once."""
        for each in self:
            each.launch()
        for each in self:
            each.ready()
        self.settle()

    def revive(self) -> None:
        """Run those that were killed."""
        dead = [each for each in self if not each.is_running]
        for each in dead:
            each.launch()
        for each in dead:
            each.ready()
        self.settle()

    def settle(self) -> None:
        """Wait until all are linked to all."""
        wait_until(lambda: all(each.is_linked() for each in self), "links between all brokers", PATIENCE)

    def end(self) -> None:
        """Leave nothing behind."""
        for each in self:
            each.end()

    def client(self, name: str, **connect: str) -> StompClient:
        """A client of one of them."""
        return StompClient(self[name].port, **connect)

    def everywhere(self, text: str) -> None:
        """Wait until all list a destination."""
        wait_until(lambda: all(each.has(text) for each in self), f"{text} everywhere")

    def nowhere(self, text: str) -> None:
        """Wait until none does."""
        wait_until(lambda: not any(each.has(text) for each in self), f"{text} nowhere")

    # -- what a broker holds, and what it serves the others

    def bodies(self, name: str, text: str) -> list[str]:
        """The messages of a queue that a broker keeps, given out or not."""
        wanted = Destination.parse(text)
        found = self[name].ask(lambda admin: admin.browse(wanted, limit=1000)).messages
        return [each.body.decode() for each in found]

    def _consumed(self, name: str, by: str) -> set[Destination]:
        """What one broker consumes at another."""
        peers = self[name].ask(lambda admin: admin.peers.all())
        links = [each for each in peers if each.connection["client_id"] == f"cluster:{by}"]
        return {Destination.parse(each) for link in links for one in link.consumers for each in one["destinations"]}

    def serves(self, name: str, by: str, text: str) -> None:
        """Wait until a broker has a consumer of a destination for the clients of another one."""
        wait_until(lambda: Destination.parse(text) in self._consumed(name, by), f"{by} consumes {text} at {name}")

    def serves_no_more(self, name: str, by: str, text: str) -> None:
        """Wait until it has none."""
        wait_until(lambda: Destination.parse(text) not in self._consumed(name, by), f"{by} leaves {text} at {name}")

    def lodgers(self, name: str, home: str) -> dict[str, dict]:
        """The temporary destinations of another broker that a broker knows."""
        return {each["destination"]: each for each in self[name].status().temporaries if each["home"] == home}

    def taken(self, name: str, source: str) -> int:
        """Messages that a broker took from another one."""
        return next(each.taken for each in self[name].status().members if each.name == source)

    def logs(self, name: str) -> list[str]:
        """What the store of a broker keeps logs of."""
        return list(self[name].ask(lambda admin: admin._logs()))

    def attributes(self, name: str) -> list[tuple[str, dict]]:
        """The same, with what the store knows of them."""
        return list(self[name].ask(lambda admin: admin._logs()).items())
