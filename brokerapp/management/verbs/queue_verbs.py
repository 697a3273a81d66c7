"""brokerctl's verbs for queues: operations on messages, delivery, message groups and remembered selectors."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable

from brokerapp.admin import BrokerAdmin
from brokerapp.management.verbs.declaration import Answer, Subparsers, add_verb
from brokerapp.management.verbs.edit_verb import add_edit_verb, edit
from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination
from brokerapp.system import clock

QUEUE = "queue://NAME, /queue/NAME, or the bare name of a queue"


def add_verbs(verbs: Subparsers) -> None:
    """Add these verbs to brokerctl's."""
    for verb, text, has_target in (
        ("move", "move messages to another destination, where they are routed as if sent there", True),
        ("copy", "copy messages to another destination", True),
        ("resubmit", "resubmit dead letters to their original destination", False),
        ("remove", "remove messages", False),
        ("edit", "edit messages and resubmit them in place of the originals", False),
    ):
        parser = _queue_verb(verbs, verb, text)
        if has_target:
            parser.add_argument("target", help="target destination")
        parser.add_argument("--selector", help="only messages that match, e.g. \"region = 'eu'\"")
        parser.add_argument("--id", action="append", help="only the message with this message-id; may be repeated")
        parser.add_argument("--limit", type=int, help="maximum number of messages, oldest first")
        if verb == "edit":
            add_edit_verb(parser)
    _queue_verb(verbs, "pause", "pause delivery from a queue (persists across restarts)")
    _queue_verb(verbs, "resume", "resume delivery from a queue")
    _queue_verb(verbs, "groups", "list the message groups of a queue with their owners")
    forgetting = _queue_verb(verbs, "reset-groups", "reset message group assignments")
    forgetting.add_argument("group", nargs="?", help="only this one (default: all)")
    add_verb(verbs, "selectors", "list remembered selectors of former consumers with the time since their last use")
    selector = _queue_verb(verbs, "delete-selectors", "delete remembered selectors of former consumers")
    selector.add_argument("selector", nargs="?", help="only this one (default: all)")


def _queue_verb(verbs: Subparsers, verb: str, text: str) -> ArgumentParser:
    parser = add_verb(verbs, verb, text)
    parser.add_argument("queue", help=QUEUE)
    return parser


def _which(args: Namespace) -> JsonObject:
    return {"selector": args.selector, "ids": args.id, "limit": args.limit}


def _dealt_with(word: str, count: int, key: str = "") -> Answer:
    """Return the count under `key`, by default the word itself, and a line that says it."""
    return {key or word: count}, [f"{count:,} message{'' if count == 1 else 's'} {word}"]


async def _move(admin: BrokerAdmin, args: Namespace) -> Answer:
    queue, target = Destination.parse(args.queue), Destination.parse(args.target)
    return _dealt_with("moved", await admin.move(queue, target, **_which(args)))


async def _copy(admin: BrokerAdmin, args: Namespace) -> Answer:
    queue, target = Destination.parse(args.queue), Destination.parse(args.target)
    return _dealt_with("copied", await admin.copy(queue, target, **_which(args)))


async def _resubmit(admin: BrokerAdmin, args: Namespace) -> Answer:
    count = await admin.resubmit(Destination.parse(args.queue), **_which(args))
    return _dealt_with("resubmitted", count, key="retried")  # the key of former versions, which scripts read


async def _remove(admin: BrokerAdmin, args: Namespace) -> Answer:
    return _dealt_with("removed", await admin.remove(Destination.parse(args.queue), **_which(args)))


async def _pause(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.pause(Destination.parse(args.queue))
    return {"paused": args.queue}, [f"{args.queue} paused"]


async def _resume(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.pause(Destination.parse(args.queue), False)
    return {"resumed": args.queue}, [f"{args.queue} resumed"]


async def _groups(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.groups(Destination.parse(args.queue))
    result = [{"group": group, "client": client, "subscription": name} for group, client, name in found]
    lines = [f"{group}: {client}, subscription {name}" for group, client, name in found]
    return result, lines or ["No message groups with an owner"]


async def _reset_groups(admin: BrokerAdmin, args: Namespace) -> Answer:
    count = await admin.reset_groups(Destination.parse(args.queue), args.group)
    return {"forgotten": count}, [f"{count:,} group assignment{'' if count == 1 else 's'} reset"]


async def _selectors(admin: BrokerAdmin, _args: Namespace) -> Answer:
    found, now_ms = await admin.selectors(), clock.now_ms()
    rows = [(str(queue), *entry) for queue, entries in sorted(found.items()) for entry in entries.items()]
    result = [{"queue": queue, "selector": selector, "used_ms": used} for queue, selector, used in rows]
    lines = [f"{queue}  {_age(now_ms - used)}  {selector}" for queue, selector, used in rows]
    return result, lines or ["No remembered selectors"]


def _age(milliseconds: int) -> str:
    seconds = max(0, milliseconds) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


async def _delete_selectors(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.delete_selectors(Destination.parse(args.queue), args.selector)
    return {"forgotten": found}, ["Deleted" if found else "Selector not found"]


QUEUE_VERBS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "move": _move,
    "copy": _copy,
    "resubmit": _resubmit,
    "remove": _remove,
    "edit": edit,
    "pause": _pause,
    "resume": _resume,
    "groups": _groups,
    "reset-groups": _reset_groups,
    "selectors": _selectors,
    "delete-selectors": _delete_selectors,
}
