"""brokerctl's verb `edit`: edits messages and resubmits them in place of the originals."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from brokerapp.admin import BrokerAdmin
from brokerapp.errors import RequestRefused
from brokerapp.management.verbs.declaration import Answer
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import MessageOperationOutcome
from brokerapp.openwire.shown_messages import shown_headers, shown_lines
from brokerapp.selectors import compile_selector

#: Messages of one step.
STEP = 200
#: Messages looked at for one page, when few match.
SCAN = 10_000
#: Messages that were left alone, of which is told why.
MAX_TOLD = 100


def add_edit_verb(parser: ArgumentParser) -> None:
    """Add the options for the changes."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME[:TYPE]=VALUE",
        help="set a property, or correlation-id, reply-to, type or content-type; TYPE is the JMS type that the property"
        " gets in messages of JMS clients (string, boolean, byte, short, int, long, float, double), or number for a"
        " value that must be one; without TYPE a property keeps its type",
    )  # fmt: skip
    parser.add_argument("--remove", action="append", default=[], metavar="NAME", help="remove a property")
    parser.add_argument("--persistent", action=argparse.BooleanOptionalAction, help="make the messages persistent")
    parser.add_argument("--priority", type=int, help="0 to 9")
    parser.add_argument(
        "--ttl", "--lives", dest="lives", type=int, metavar="SECONDS", help="time to live from now; 0: never expires"
    )
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", help="replace the body")
    body.add_argument("--body-file", type=Path, metavar="FILE", help="replace the body by the bytes of a file")
    parser.add_argument(
        "--to",
        metavar="DESTINATION",
        help="target (default: the original destination of dead letters, otherwise the same queue)",
    )
    parser.add_argument("--keep", action="store_true", help="keep the original messages")
    parser.add_argument(
        "--dry-run", action="store_true", help="only count the matching messages and show the first edited one"
    )


async def edit(admin: BrokerAdmin, args: Namespace) -> Answer:
    """Edit the selected messages that are in the queue now."""
    wanted, queue = _edit(args), Destination.parse(args.queue)
    target = Destination.parse(args.to) if args.to else None
    if not (wanted.changes or target):
        raise RequestRefused("nothing to change: use --set, --remove, --body or another option, or --to")
    if args.dry_run:
        return await _preview(admin, args, wanted, queue, target)
    counts: Counter[str] = Counter()
    told: list[MessageOperationOutcome] = []
    async for seqs in _chosen(admin, args, queue, wanted.batch_size(STEP)):
        for each in await admin.step("edit", queue, seqs, target, "brokerctl", wanted.to_json()):
            counts[each.outcome] += 1
            if each.outcome != "done" and len(told) < MAX_TOLD:
                told.append(each)
    left = [{"seq": each.seq, "outcome": each.outcome, "detail": each.detail} for each in told]
    count = counts.pop("done", 0)
    lines = [f"{count:,} message{'' if count == 1 else 's'} edited"]
    lines += [f"{number:,} {outcome}" for outcome, number in sorted(counts.items())]
    lines += [f"  {each.seq} {each.outcome}{f': {each.detail}' if each.detail else ''}" for each in told]
    return {"edited": count, **counts, "left": left}, lines


def _edit(args: Namespace) -> Any:
    from brokerapp.engine.editing.message_edit import MessageEdit  # here: other verbs need not wait for it
    from brokerapp.engine.editing.message_properties import EDITABLE, check_name, check_type, leaves_type

    values: dict[str, str] = {}
    types: dict[str, str] = {}
    for text in args.set:
        written, equals, value = text.partition("=")
        if not equals:
            raise RequestRefused(f"--set {text}: expected NAME=VALUE or NAME:TYPE=VALUE")
        name, kind = _typed_name(written)
        check_name(name)
        if name in values:
            raise RequestRefused(f"--set {text}: {name!r} is set twice")
        values[name] = check_type(name, kind, value)
        if name not in EDITABLE and not leaves_type(kind):
            types[name] = kind
    body = args.body_file.read_bytes() if args.body_file else None if args.body is None else args.body.encode()
    found = MessageEdit(
        values, tuple(dict.fromkeys(args.remove)), args.persistent, args.priority, args.lives, body,
        args.body_file is not None, args.keep, types,
    )  # fmt: skip
    found.check()
    return found


def _typed_name(text: str) -> tuple[str, str]:
    """Split a name from its type, which follows the last colon; without one a property keeps its type."""
    from brokerapp.engine.editing.message_properties import EDIT_TYPES, KEEP_TYPE

    name, colon, kind = text.rpartition(":")
    return (name, kind) if colon and kind in (*EDIT_TYPES, "text", "number") else (text, KEEP_TYPE)


async def _chosen(
    admin: BrokerAdmin, args: Namespace, queue: Destination, step: int = STEP
) -> AsyncIterator[list[int]]:
    """Yield the numbers of the selected messages, a step at a time; messages that arrive from now on are left alone."""
    if args.selector:
        compile_selector(args.selector)
    upto, after, ids = await admin.last(queue), 0, set(args.id or ())
    left = args.limit
    while after < upto and (left is None or left > 0):
        page = await admin.browse(queue, after, step, args.selector, scan=SCAN)
        seqs = [each.seq for each in page.messages if each.seq <= upto and (not ids or each.id in ids)][:left]
        if seqs:
            yield seqs
        left = None if left is None else left - len(seqs)
        after = page.next if page.next is not None else upto


async def _preview(admin: BrokerAdmin, args: Namespace, wanted: Any, queue: Destination, target: Any) -> Answer:
    from brokerapp.engine.editing.resubmit_target import edit_target

    seqs = [seq async for page in _chosen(admin, args, queue) for seq in page]
    lines = [f"{len(seqs):,} message{'' if len(seqs) == 1 else 's'} would be edited"]
    first = (await admin.message(queue, seqs[0])).messages if seqs else []
    if not first:
        return {"count": len(seqs), "before": None, "after": None}, lines
    [old] = first
    to = target or edit_target(old.headers, old.came_from, queue)
    made = wanted.applied(old.headers, old.body, to.stomp, 0)
    after = {
        "destination": made.destination, "properties": shown_headers(made.properties), "persistent": made.persistent,
        "priority": made.priority, "bytes": len(made.body),
    }  # fmt: skip
    lines.append(f"first message: {old.id}, {old.size} bytes")
    lines += [f"  - {line}" for line in shown_lines(old.headers)]
    lines.append(f"edited: {made.destination}, {len(made.body)} bytes, priority {made.priority}, "
                 f"{'' if made.persistent else 'not '}persistent")  # fmt: skip
    lines += [f"  + {line}" for line in shown_lines(made.headers)]
    return {"count": len(seqs), "before": {"id": old.id, **shown_headers(old.headers)}, "after": after}, lines
