"""brokerctl's verb `shards`: the shards of the store, and where families of destinations are."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from brokerapp.admin import BrokerAdmin
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb
from brokerapp.system.store_address import without_password

#: Bytes of a mebibyte.
MIB = 1024 * 1024
#: Seconds for which messages a second are measured: nodes write counters once a second.
RATE_SECONDS = 3.0
#: Name of the family of temporary destinations, which has none.
TEMPORARY = "(temporary destinations)"


def add_shard_verbs(verbs: Subparsers) -> None:
    """Add the verb and its actions to brokerctl's."""
    parser = add_verb(verbs, "shards", "list the shards of the store; add, drain and remove them; move families")
    parser.set_defaults(action="list", dry_run=False)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    adding = actions.add_parser("add", help="add a store as a shard, and wait until all nodes serve it")
    adding.add_argument("url", help="URL of the store, as --redis")
    removing = actions.add_parser("remove", help="remove a shard that is drained and empty")
    removing.add_argument("number", type=int)
    draining = actions.add_parser("drain", help="put nothing new into a shard, and move its families to others")
    draining.add_argument("number", type=int)
    draining.add_argument("--cancel", action="store_true", help="let the shard serve again")
    listing = actions.add_parser("families", help="list families of destinations with their load")
    listing.add_argument("number", type=int, nargs="?", help="only those of this shard")
    moving = actions.add_parser("move", help="move a family to a shard, and wait for the end")
    moving.add_argument("family", help="family as `shards families` shows it, such as queue://orders")
    moving.add_argument("number", type=int, help="the shard to move it to")
    balancing = actions.add_parser("rebalance", help="move few families so that the load of the shards is even")
    balancing.add_argument("--dry-run", action="store_true", help="only show the moves")


def is_change(args: Namespace) -> bool:
    """Return whether the action changes something."""
    return args.action not in (None, "list", "families")


def object_of(args: Namespace) -> str:
    """Return what the action is about, without passwords."""
    if "family" in args:
        return str(args.family)
    if "url" in args:
        return without_password(args.url)
    number = getattr(args, "number", None)
    return "shards" if number is None else f"shard {number}"


async def shards(admin: BrokerAdmin, args: Namespace) -> Answer:
    """Do what the action says."""
    return await _ACTIONS[args.action or "list"](admin, args)


async def _list(admin: BrokerAdmin, _args: Namespace) -> Answer:
    found = await admin.shards.all()
    rows: list[tuple[str, ...]] = [
        ("shard", "state", "destinations", "families", "messages", "MiB", "limit MiB", "store")
    ]
    for each in found:
        counts = [f"{count:,}" for count in (each.destinations, each.families, each.messages)]
        counts += [f"{each.used / MIB:,.1f}", f"{each.limit / MIB:,.1f}" if each.limit else "-"]
        if not each.answers:
            counts = ["-"] * len(counts)
        rows.append((str(each.number), each.state if each.answers else "no answer", *counts, each.url))
    return [each.to_json() for each in found], _table(rows)


async def _families(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.shards.families(args.number, await admin.shards.rates(RATE_SECONDS))
    rows: list[tuple[str, ...]] = [("family", "shard", "destinations", "messages", "messages/s", "MiB")]
    rows += [
        (each.family or TEMPORARY, str(each.shard), f"{each.destinations:,}", f"{each.messages:,}", f"{each.rate:,.1f}",
         f"{each.used / MIB:,.1f}")
        for each in found
    ]  # fmt: skip
    return [each.to_json() for each in found], _table(rows) if found else ["No families"]


async def _add(admin: BrokerAdmin, args: Namespace) -> Answer:
    number = await admin.shards.add(args.url)
    served = await admin.shards.wait_until_serving(number)
    said = "all nodes serve it" if served else "the nodes do not serve it yet: see `shards`, and the logs of the nodes"
    return {"number": number, "serving": served}, [f"Shard {number} added; {said}"]


async def _remove(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.shards.remove(args.number)
    return {"removed": args.number}, [f"Shard {args.number} removed"]


async def _drain(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.shards.drain(args.number, cancel=args.cancel)
    said = "is serving again" if args.cancel else "is draining: the nodes move its families to other shards"
    return {"number": args.number, "draining": not args.cancel}, [f"Shard {args.number} {said}"]


async def _move(admin: BrokerAdmin, args: Namespace) -> Answer:
    ended = await admin.shards.wait_until_moved(await admin.shards.move(args.family, args.number))
    return ended, [_moved_line(ended)]


async def _rebalance(admin: BrokerAdmin, args: Namespace) -> Answer:
    moves = await admin.shards.suggest(RATE_SECONDS)
    if args.dry_run or not moves:
        lines = [f"{each.family}: shard {each.source} to shard {each.target}" for each in moves]
        return {"moves": list(map(asdict, moves))}, lines or ["The load of the shards is even: no moves"]
    ended = []
    for each in moves:
        move = await admin.shards.move(each.family, each.target)
        ended.append(await admin.shards.wait_until_moved(move))
    return {"moved": ended}, list(map(_moved_line, ended))


def _moved_line(move: dict[str, object]) -> str:
    return (
        f"{move['family']} moved from shard {move['source']} to shard {move['target']}: {move['messages']:,} messages, "
        f"held for {move['milliseconds']:,} ms"
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows as lines, with numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:>{width}}" if at > 0 and rows[0][at] not in ("state", "store") else f"{cell:<{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


_ACTIONS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "list": _list,
    "families": _families,
    "add": _add,
    "remove": _remove,
    "drain": _drain,
    "move": _move,
    "rebalance": _rebalance,
}
