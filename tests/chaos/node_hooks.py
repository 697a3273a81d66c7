"""Run a node behind a proxy, which reports what is waiting.

It listens for other nodes as usual, and advertises the address of the proxy.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Iterator

from brokerapp.nodes.links.peer_links import NodeLinks
from brokerapp.runtime.node import Node

#: Signal on which a node logs what its tasks wait for.
DUMP_SIGNAL = signal.SIGUSR2
#: First word of the line, before the port, that a node prints when it listens for other nodes.
LISTENING = "listens"


def install_hooks(link_proxy: int) -> None:
    """Let other nodes connect to the proxy at this port, and log waiting tasks on a signal."""
    _advertise_proxy(link_proxy)
    signal.signal(DUMP_SIGNAL, _dump_tasks)


def _advertise_proxy(proxy: int) -> None:
    listen = NodeLinks.listen

    async def listen_behind(links: NodeLinks, host: str) -> None:
        await listen(links, host)
        host, _, port = links.address.rpartition(":")
        sys.stdout.write(f"{LISTENING} {port}\n")
        sys.stdout.flush()
        links.address = f"{host}:{proxy}"

    NodeLinks.listen = listen_behind


def _dump_tasks(*_: object) -> None:
    for task in asyncio.all_tasks(asyncio.get_event_loop()):
        task.print_stack(file=sys.stderr)
    for node in [each for each in gc.get_objects() if isinstance(each, Node)]:
        for line in _state_of(node):
            sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _state_of(node: Node) -> Iterator[str]:
    """Describe what a node knows of its logs and their consumers, and what it expects from other nodes."""
    homes = node.broker.placement
    about = f"epoch {homes.peers.members.epoch}, others {homes.peers.other_sessions}, asked {homes.requests._pending}"
    yield f"node {node.session}: {about}"
    for log in node.broker.queues:
        facts = {name: getattr(log, name) for name in _LOG_ATTRIBUTES}
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


#: Attributes of a log that show why it dispatches nothing.
_LOG_ATTRIBUTES = (
    "is_remote", "depth", "in_flight", "unloaded_count", "end_is_unknown", "loaded_up_to", "dispatched_up_to",
    "shared", "paging", "paused", "suspend_reasons", "generation",
)  # fmt: skip
