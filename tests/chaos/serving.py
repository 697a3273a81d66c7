"""Run a node behind a proxy, which reports what is waiting.

It listens for other nodes as ever, and says that it is to be called at the proxy.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Iterator

from brokerapp.nodes.links.peer_links import NodeLinks
from brokerapp.runtime.node import Node

#: Makes a node write into its log what all its tasks wait for.
ASK = signal.SIGUSR2
#: What it says when others can reach it, before its port.
LISTENS = "listens"


def prepare(link_proxy: int) -> None:
    """Be called at this port, and tell what waits when asked."""
    _be_called_at(link_proxy)
    signal.signal(ASK, _tell_what_waits)


def _be_called_at(proxy: int) -> None:
    listen = NodeLinks.listen

    async def listen_behind(links: NodeLinks, host: str) -> None:
        await listen(links, host)
        host, _, port = links.address.rpartition(":")
        sys.stdout.write(f"{LISTENS} {port}\n")
        sys.stdout.flush()
        links.address = f"{host}:{proxy}"

    NodeLinks.listen = listen_behind


def _tell_what_waits(*_: object) -> None:
    for task in asyncio.all_tasks(asyncio.get_event_loop()):
        task.print_stack(file=sys.stderr)
    for node in [each for each in gc.get_objects() if isinstance(each, Node)]:
        for line in _known_by(node):
            sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _known_by(node: Node) -> Iterator[str]:
    """What a node knows of its logs, of who consumes them, and of what it is to hear from others."""
    homes = node.broker.placement
    about = f"epoch {homes.peers.members.epoch}, others {homes.peers.other_sessions}, asked {homes.requests._pending}"
    yield f"node {node.session}: {about}"
    for log in node.broker.queues:
        facts = {name: getattr(log, name) for name in ("away", *_OF_LOGS)}
        account = homes.outbound_accounts._accounts.get(log.name)
        held = {} if account is None else {number: each[0].key for number, each in account.unacked.items()}
        elsewhere = sorted(homes.remote_unacked.seqs(log.name))
        yield f"{log.name}: {facts}, held here {held}, at other nodes {elsewhere}"
        for each in homes.outbound_consumers.known_consumers(log):
            client = each.client
            yield (
                f"  {client.client_id} {each.name} guest of {each.owner_session!r}: {each.credit} of {each.prefetch},"
                f" started {each.started}, blocked {client.is_socket_full}, tested {each.scanned_up_to.get(log.name)}"
            )


#: Attributes of a log that say why it gives out nothing.
_OF_LOGS = (
    "depth", "in_flight", "unloaded", "unsure", "loaded", "shared", "paging", "stopped", "tenure", "window",
)  # fmt: skip
