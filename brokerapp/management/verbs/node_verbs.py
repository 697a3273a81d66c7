"""brokerctl's verbs for the nodes of a broker."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable

from brokerapp.admin import BrokerAdmin
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb


def add_node_verbs(verbs: Subparsers) -> None:
    """Add these verbs to brokerctl's."""
    drain = add_verb(verbs, "drain", "hand the queues of a node over to other nodes and let its clients go")
    drain.add_argument("node", help="name of the node (`stats` lists them)")
    drain.add_argument("--end", action="store_true", help="let a drained node serve again")
    add_verb(verbs, "rebalance", "spread queues and subscriptions evenly over the nodes")


async def _drain(admin: BrokerAdmin, args: Namespace) -> Answer:
    if args.end:
        is_changed = await admin.membership.end_drain(args.node)
        said = "serves again" if is_changed else "was not drained"
        return {"node": args.node, "draining": False, "changed": is_changed}, [f"node {args.node} {said}"]
    done = await admin.membership.drain(args.node)
    queues = f"{done.owned_count:,} queue{'' if done.owned_count == 1 else 's'} handed over"
    clients = f"{done.released_count:,} client{'' if done.released_count == 1 else 's'} let go"
    return done.to_json(), [f"node {done.node} is drained: {queues}, {clients}"]


async def _rebalance(admin: BrokerAdmin, _args: Namespace) -> Answer:
    before = await admin.membership.owned_counts()
    after = await admin.membership.rebalance()
    lines = [f"{name}: {before.get(name, 0):,} -> {count:,} queues" for name, count in sorted(after.items())]
    return {"before": before, "after": after}, lines


NODE_VERBS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "drain": _drain,
    "rebalance": _rebalance,
}
