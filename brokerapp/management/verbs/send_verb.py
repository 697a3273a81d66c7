"""brokerctl's verb `send`: sends a text, bytes or map message with typed properties."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from brokerapp.admin import BrokerAdmin
from brokerapp.engine.editing.message_edit import MAX_LIFE, MAX_PRIORITY, body_of
from brokerapp.engine.editing.message_properties import EDITABLE
from brokerapp.engine.editing.operator_message import OperatorMessage, check_size
from brokerapp.engine.editing.typed_message import WRITTEN_KINDS, typed_headers, typed_message
from brokerapp.engine.scheduling.delivery_schedule import CRON, DELAY, PERIOD, REPEAT
from brokerapp.errors import RequestRefused
from brokerapp.management.verbs.declaration import Answer
from brokerapp.model.jms.form import JmsKind
from brokerapp.model.jms.typed_text import ENTRY_TYPE_NAMES, PROPERTY_TYPE_NAMES, STRING
from brokerapp.model.message import DEFAULT_PRIORITY
from brokerapp.openwire.written_maps import encode_written_map
from brokerapp.system import clock

#: The file that stands for standard input.
STANDARD_INPUT = Path("-")


def add_send_verb(parser: ArgumentParser) -> None:
    """Add the options for the message."""
    parser.add_argument("destination", help="queue, topic, list, or fully qualified name (orders::orders.eu)")
    parser.add_argument(
        "--kind", choices=[kind.value for kind in WRITTEN_KINDS],
        help="what JMS clients get (default: text; bytes with --base64, --hex or --body-file; map with --entry)",
    )  # fmt: skip
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", metavar="TEXT", help="the body as text")
    body.add_argument("--base64", metavar="TEXT", help="the body in base64")
    body.add_argument("--hex", metavar="TEXT", help="the body in hexadecimal digits")
    body.add_argument("--body-file", type=Path, metavar="FILE", help="the body is that of a file; - is standard input")
    parser.add_argument(
        "--entry", action="append", default=[], metavar="NAME[:TYPE]=VALUE",
        help=f"entry of a map message; TYPE is one of {', '.join(ENTRY_TYPE_NAMES)}",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME[:TYPE]=VALUE",
        help=f"set a property, or {', '.join(EDITABLE)}; TYPE is one of {', '.join(PROPERTY_TYPE_NAMES)}",
    )  # fmt: skip
    parser.add_argument("--persistent", action=argparse.BooleanOptionalAction, default=True, help="survives a restart")
    parser.add_argument("--priority", type=int, default=DEFAULT_PRIORITY, help="0 to 9 (default: %(default)d)")
    parser.add_argument("--ttl", type=int, default=0, metavar="SECONDS", help="time to live (default: never expires)")
    parser.add_argument("--delay", type=int, metavar="SECONDS", help="deliver after a delay")
    parser.add_argument("--period", type=int, metavar="SECONDS", help="repeat interval")
    parser.add_argument("--repeat", type=int, metavar="COUNT", help="repetitions; -1: unlimited")
    parser.add_argument("--cron", metavar="EXPRESSION", help="deliver by a cron expression")
    parser.add_argument("--count", type=int, default=1, help="number of messages (default: %(default)d)")


async def send(admin: BrokerAdmin, args: Namespace) -> Answer:
    """Send the messages and name the queues that they reached."""
    answer = await admin.send(message_of(args).to_json(), args.count, "brokerctl")
    queues, topics = answer["queues"], [topic for topic, _ in answer["topics"]]
    count = answer["count"]
    routed = ", ".join([*queues, *topics]) or "no queue"
    lines = [f"{count:,} message{'' if count == 1 else 's'} sent to {routed}", f"first message: {answer['id']}"]
    return {"id": answer["id"], "count": count, "queues": queues, "topics": topics}, lines


def message_of(args: Namespace) -> OperatorMessage:
    """Return the message of a command line. Raises RequestRefused, which names the option and the rule."""
    rows = list(_rows("--set", args.set, PROPERTY_TYPE_NAMES))
    fields = {name: value for name, type, value in rows if name in EDITABLE and type == STRING}
    headers, types = typed_headers(row for row in rows if row[0] not in fields)
    kind, body = _content(args)
    check_size(len(body))
    _check_number("--priority", args.priority, MAX_PRIORITY)
    _check_number("--ttl", args.ttl, MAX_LIFE)
    return typed_message(
        args.destination, kind=kind, body=body, properties={**fields, **headers, **_schedule(args)}, types=types,
        persistent=args.persistent, priority=args.priority,
        expires=clock.now_ms() + args.ttl * 1000 if args.ttl else 0,
    )  # fmt: skip


def _content(args: Namespace) -> tuple[JmsKind, bytes]:
    """Return kind and body."""
    is_bytes = args.base64 is not None or args.hex is not None or args.body_file is not None
    kind = JmsKind.MAP if args.entry else JmsKind.BYTES if is_bytes else JmsKind.TEXT
    kind = JmsKind(args.kind) if args.kind else kind
    if kind is JmsKind.MAP:
        if is_bytes or args.body is not None:
            raise RequestRefused("a map message has --entry instead of a body")
        return kind, encode_written_map(_rows("--entry", args.entry, ENTRY_TYPE_NAMES))
    if args.entry:
        raise RequestRefused(f"--entry: only a map message has entries, not a {kind} message")
    if args.base64 is not None:
        return kind, body_of(args.base64, "base64")
    if args.hex is not None:
        return kind, body_of(args.hex, "hex")
    if args.body_file is not None:
        return kind, sys.stdin.buffer.read() if args.body_file == STANDARD_INPUT else args.body_file.read_bytes()
    return kind, (args.body or "").encode()


def _rows(option: str, texts: Sequence[str], types: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and value of each text; a type follows the last colon of the name."""
    for text in texts:
        written, equals, value = text.partition("=")
        if not equals:
            raise RequestRefused(f"{option} {text}: expected NAME=VALUE or NAME:TYPE=VALUE")
        name, colon, type = written.rpartition(":")
        yield (name, type, value) if colon and type in types else (written, STRING, value)


def _schedule(args: Namespace) -> dict[str, str]:
    """Return the headers that ask for a delay."""
    asked = {DELAY: args.delay, PERIOD: args.period}
    for header, seconds in asked.items():
        if seconds is not None:
            _check_number(f"--{'delay' if header == DELAY else 'period'}", seconds, MAX_LIFE)
    found = {header: str(seconds * 1000) for header, seconds in asked.items() if seconds is not None}
    if args.repeat is not None:
        found[REPEAT] = str(args.repeat)
    return found | ({CRON: args.cron} if args.cron else {})


def _check_number(option: str, number: int, most: int) -> None:
    if not 0 <= number <= most:
        raise RequestRefused(f"{option} {number}: must be a whole number from 0 to {most:,}")
