"""What a node of a run does beside what `manage.py runbroker` does: it is reached through a proxy, and says what waits.

It listens for other nodes as ever, and says that it is to be called at the proxy.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from brokerapp.nodes.links import Links

#: Makes a node write into its log what all its tasks wait for.
ASK = signal.SIGUSR2
#: What it says when others can reach it, before its port.
LISTENS = "listens"


def prepare(link_proxy: int) -> None:
    """Be called at this port, and tell what waits when asked."""
    _be_called_at(link_proxy)
    signal.signal(ASK, _tell_what_waits)


def _be_called_at(proxy: int) -> None:
    listen = Links.listen

    async def listen_behind(links: Links, host: str) -> None:
        await listen(links, host)
        host, _, port = links.address.rpartition(":")
        sys.stdout.write(f"{LISTENS} {port}\n")
        sys.stdout.flush()
        links.address = f"{host}:{proxy}"

    Links.listen = listen_behind


def _tell_what_waits(*_: object) -> None:
    for task in asyncio.all_tasks(asyncio.get_event_loop()):
        task.print_stack(file=sys.stderr)
    sys.stderr.flush()
