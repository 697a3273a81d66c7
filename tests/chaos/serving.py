"""A node in a process of its own: what `manage.py runbroker` runs, forked where all is imported already.

Other nodes reach it through a proxy: it listens as ever, and says that it is to be called at the proxy.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from brokerapp.management.commands.runbroker import Command
from brokerapp.nodes.links import Links

#: Processes are forked from a server that has imported this module: starting one costs no seconds of importing.
processes = get_context("forkserver")
processes.set_forkserver_preload([__name__])


#: Makes a node write into its log what all its tasks wait for.
ASK = signal.SIGUSR2


class Told(io.StringIO):
    """What the node says on its standard output, to be told to whoever started it."""

    def __init__(self, teller: Connection) -> None:
        super().__init__()
        self._teller = teller

    def write(self, text: str) -> int:
        if text.strip():
            self._teller.send((text.strip(), 0))
        return len(text)


def serve(options: dict[str, Any], log: Path, link_proxy: int, teller: Connection) -> None:
    """Be the node with these options of the command; its log goes to that file."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    _be_called_at(link_proxy, teller)
    signal.signal(ASK, _tell_what_waits)
    Command(stdout=Told(teller)).handle(**options)


def _be_called_at(proxy: int, teller: Connection) -> None:
    listen = Links.listen

    async def listen_behind(links: Links, host: str) -> None:
        await listen(links, host)
        host, _, port = links.address.rpartition(":")
        teller.send(("listens", int(port)))
        links.address = f"{host}:{proxy}"

    Links.listen = listen_behind


def _tell_what_waits(*_: object) -> None:
    for task in asyncio.all_tasks(asyncio.get_event_loop()):
        task.print_stack(file=sys.stderr)
    sys.stderr.flush()
