"""Run nodes on a store that tests make fail, and clients that go on sending until all is confirmed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import stomp

from tests.faults.processes import CONFIG
from tests.ports import free_port
from tests.protocol.clients import StompClient
from tests.runbroker import Run
from tests.waiting import wait_until

QUEUE = "/queue/fallen"


class NodeProcess:
    """`runbroker` on a store behind an address."""

    def __init__(self, folder: Path, url: str, name: str, *options: str) -> None:
        self.port, folder = free_port(), folder / name
        folder.mkdir()
        config = folder / "activemq.xml"
        config.write_text(CONFIG.format(port=self.port, more="", name="fallen"))
        self.log = folder / "log"
        self.run = Run(
            "--config", config, "--data", folder / "data", "--redis", url, "--node", name, *options, log=self.log
        )
        self.run.ready()

    def said(self) -> str:
        return self.log.read_text()


def connected(port: int, **headers: str) -> StompClient:
    """A client, once the node lets clients in."""
    found: list[StompClient] = []

    def connect() -> bool:
        with contextlib.suppress(stomp.exception.StompException, AssertionError, OSError):
            found.append(StompClient(port, **headers))
        return bool(found)

    wait_until(connect, "a client comes in", 60)
    return found[0]


def send_confirmed(port: int, bodies: list[str]) -> None:
    """Send these until each is confirmed; those may come twice whose confirmation was lost."""
    left = list(bodies)
    while left:
        client = connected(port)
        with contextlib.suppress(stomp.exception.StompException, AssertionError, KeyError, OSError):
            while left and not client.disconnected.is_set():
                client.send(QUEUE, left[0], persistent="true")
                if client.disconnected.is_set():
                    break
                left.pop(0)
