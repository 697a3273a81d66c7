"""brokerctl's verbs about one queue: what waits in it, who gets it, what is remembered of its consumers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from typing import Any

from brokerapp.admin import BrokerAdmin
from brokerapp.management.edit_verb import add_edit_verb, edit
from brokerapp.model.destination import Destination
from brokerapp.system import clock

Answer = tuple[Any, list[str]]

QUEUE = "queue://NAME, /queue/NAME, or the bare name of a queue"


def add_verbs(verbs) -> None:
    """Add these verbs to brokerctl's."""
    for verb, text, has_target in (
        ("move", "move messages to another destination, where they are routed like what is sent there", True),
        ("copy", "copy messages to another destination", True),
        ("retry", "resubmit dead letters to their original destination", False),
        ("remove", "remove messages", False),
        ("edit", "send messages again with something changed, each in the place of the old one", False),
    ):
        parser = _queue_verb(verbs, verb, text)
        if has_target:
            parser.add_argument("target", help="where to")
        parser.add_argument("--selector", help="only those that match, e.g. \"region = 'eu'\"")
        parser.add_argument("--id", action="append", help="only the one with this message-id; may be repeated")
        parser.add_argument("--limit", type=int, help="at most so many, the oldest first")
        if verb == "edit":
            add_edit_verb(parser)
    _queue_verb(verbs, "pause", "pause delivery from a queue (persists across restarts)")
    _queue_verb(verbs, "resume", "give out messages of a queue again")
    _queue_verb(verbs, "groups", "message groups of a queue, with who owns them")
    forgetting = _queue_verb(verbs, "forget-groups", "reset message group assignments")
    forgetting.add_argument("group", nargs="?", help="only this one")
    verbs.add_parser("selectors", help="selectors remembered of former consumers, with the age of their last use")
    selector = _queue_verb(verbs, "forget-selectors", "remember selectors of former consumers no longer")
    selector.add_argument("selector", nargs="?", help="only this one")


def _queue_verb(verbs, verb: str, text: str) -> ArgumentParser:
    parser = verbs.add_parser(verb, help=text)
    parser.add_argument("queue", help=QUEUE)
    return parser


def _which(args: Namespace) -> dict[str, Any]:
    return {"selector": args.selector, "ids": args.id, "limit": args.limit}


def _dealt_with(word: str, count: int) -> Answer:
    return {word: count}, [f"{count:,} message{'' if count == 1 else 's'} {word}"]


async def _move(admin: BrokerAdmin, args: Namespace) -> Answer:
    queue, target = Destination.parse(args.queue), Destination.parse(args.target)
    return _dealt_with("moved", await admin.move(queue, target, **_which(args)))


async def _copy(admin: BrokerAdmin, args: Namespace) -> Answer:
    queue, target = Destination.parse(args.queue), Destination.parse(args.target)
    return _dealt_with("copied", await admin.copy(queue, target, **_which(args)))


async def _retry(admin: BrokerAdmin, args: Namespace) -> Answer:
    return _dealt_with("retried", await admin.retry(Destination.parse(args.queue), **_which(args)))


async def _remove(admin: BrokerAdmin, args: Namespace) -> Answer:
    return _dealt_with("removed", await admin.remove(Destination.parse(args.queue), **_which(args)))


async def _pause(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.pause(Destination.parse(args.queue))
    return {"paused": args.queue}, [f"{args.queue} is paused"]


async def _resume(admin: BrokerAdmin, args: Namespace) -> Answer:
    await admin.pause(Destination.parse(args.queue), False)
    return {"resumed": args.queue}, [f"{args.queue} goes on"]


async def _groups(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.groups(Destination.parse(args.queue))
    result = [{"group": group, "client": client, "subscription": name} for group, client, name in found]
    lines = [f"{group}: {client}, subscription {name}" for group, client, name in found]
    return result, lines or ["no group has an owner"]


async def _forget_groups(admin: BrokerAdmin, args: Namespace) -> Answer:
    count = await admin.forget_groups(Destination.parse(args.queue), args.group)
    return {"forgotten": count}, [f"{count:,} group{'' if count == 1 else 's'} forgotten"]


async def _selectors(admin: BrokerAdmin, _args: Namespace) -> Answer:
    found, now_ms = await admin.selectors(), clock.now_ms()
    result = [
        {"queue": str(queue), "selector": selector, "used_ms": used}
        for queue, entries in sorted(found.items())
        for selector, used in entries.items()
    ]
    lines = [f"{each['queue']}  {_age(now_ms - each['used_ms'])}  {each['selector']}" for each in result]
    return result, lines or ["nothing is remembered"]


def _age(milliseconds: int) -> str:
    seconds = max(0, milliseconds) // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


async def _forget_selectors(admin: BrokerAdmin, args: Namespace) -> Answer:
    found = await admin.forget_selectors(Destination.parse(args.queue), args.selector)
    return {"forgotten": found}, ["forgotten" if found else "there was no such selector"]


QUEUE_VERBS: dict[str, Callable[[BrokerAdmin, Namespace], Awaitable[Answer]]] = {
    "move": _move,
    "copy": _copy,
    "retry": _retry,
    "remove": _remove,
    "edit": edit,
    "pause": _pause,
    "resume": _resume,
    "groups": _groups,
    "forget-groups": _forget_groups,
    "selectors": _selectors,
    "forget-selectors": _forget_selectors,
}
