"""brokerctl's verb `browse`: shows messages of a queue without consuming them."""

from __future__ import annotations

import base64
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from brokerapp.admin import BrokerAdmin
from brokerapp.management.verbs.declaration import BROWSE_LIMIT, Answer
from brokerapp.model import JsonObject
from brokerapp.model.destination import Destination
from brokerapp.model.jms.typed_text import STRING
from brokerapp.model.stats_records import BrowsedMessage, MatchCount
from brokerapp.openwire.shown_messages import JmsContent, jms_form, read_content, shown_headers, shown_lines

DESTINATION = "queue://NAME, topic://NAME, /queue/NAME, the bare name of a queue, or subscription://CLIENT:NAME"


def add_browse_verb(parser: ArgumentParser) -> None:
    """Add the options for what is shown."""
    parser.add_argument("destination", help=DESTINATION)
    parser.add_argument("--after", type=int, default=0, help="only messages with a higher sequence number")
    parser.add_argument("--limit", type=int, default=BROWSE_LIMIT, help="maximum number (default: %(default)d)")
    parser.add_argument("--selector", help="only messages that match, e.g. \"region = 'eu' AND amount > 500\"")


async def browse(admin: BrokerAdmin, args: Namespace) -> Answer:
    """Show a page of messages; of those from JMS clients kind, types and values."""
    destination = Destination.parse(args.destination)
    page = await admin.browse(destination, args.after, args.limit, args.selector)
    tally = MatchCount(len(page.messages))
    if page.next:
        tally = await admin.count(destination, args.after, args.selector)
    result = {
        "messages": [_message_json(each) for each in page.messages],
        "scanned": page.scanned,
        "count": tally.count,
        "count_is_whole": tally.is_whole,
        "next": page.next,
    }
    lines = []
    for each in page.messages:
        form = jms_form(each.headers)
        lines.append(f"{each.seq}  {each.id}  {each.size} bytes{f', {form.kind} message' if form else ''}")
        lines += [f"    {line}" for line in shown_lines(each.headers)]
        lines += ["", *_body_lines(each), ""]
    lines.append(
        f"{len(page.messages)} of {tally} message{'' if tally.count == 1 else 's'}"
        + (f" after {args.after}" if args.after else "")
        + (" that match" if args.selector else "")
        + (f", continue with --after {page.next}" if page.next else "")
    )
    return result, lines


def _message_json(message: BrowsedMessage) -> JsonObject:
    """Return a message as JSON, what JMS clients get of it under `jms`."""
    form = jms_form(message.headers)
    shown = {**asdict(message), "headers": shown_headers(message.headers), "body": _text(message.body)}
    if form is None:
        return shown
    types = {each.name: each.type for each in shown_lines(message.headers) if each.type not in ("", STRING)}
    content = read_content(form, message.body) or JmsContent()
    values = [asdict(each) for each in content.values]
    return shown | {"jms": {"kind": form.kind, "types": types, "values": values, "class_name": content.class_name}}


def _body_lines(message: BrowsedMessage) -> list[str]:
    """Return a body: as text, the values of a map or stream one per line, the name of the class of an object."""
    form = jms_form(message.headers)
    content = read_content(form, message.body) if form is not None else None
    if content is None or content.problem:
        return [_text(message.body)]
    return [content.class_name] if content.class_name else list(map(str, content.values))


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(body).decode()
