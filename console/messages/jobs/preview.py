"""What becomes of a message, told before it is done: its way, and what an edit makes of it. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from brokerapp.engine.editing.message_properties import EDITABLE, is_own
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.engine.policy.broker_headers import FAILURE, ORIGIN
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage
from console.messages.body_format import as_typed
from console.messages.jobs import job_service
from console.messages.jobs.impact import Way
from console.messages.jobs.models import Job
from console.messages.jobs.spec import Wish

#: Characters of a body that are shown.
SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """One thing a message says, before and after; None: it is not there."""

    name: str
    before: str | None
    after: str | None

    @property
    def mark(self) -> str:
        """What becomes of it, in a word."""
        if self.before == self.after:
            return "same"
        return "added" if self.before is None else "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class Preview:
    """A message before and after. What is masked for who looks is not shown: it would be left alone."""

    seq: int
    id: str
    rows: tuple[Row, ...] = ()
    body: Row | None = None
    is_hidden: bool = False


def made_of(message: BrowsedMessage, wish: Wish, now_ms: int | None = None) -> OperatorMessage:
    """What would be sent in place of a message of this wish's queue. Raises InvalidDestination."""
    home = wish.target or job_service.home(wish.action, message, wish.queue) or wish.queue
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return wish.edit.applied(message.headers, message.body, home.stomp, now_ms)


def way_of(message: BrowsedMessage, wish: Wish) -> Way:
    """Where a message of this wish's queue would be sent, and what it would say there."""
    if wish.edit is not None:
        made = made_of(message, wish)
        return Destination.parse(made.destination), headers_of(made)
    again = wish.action == Job.Action.RETRY
    kept = {name: text for name, text in message.headers.items() if not (again and name in FAILURE)}
    to = wish.target or (job_service.home(wish.action, message, wish.queue) if again else None)
    return to, {**kept, ORIGIN: wish.queue.stomp}


def preview(message: BrowsedMessage, wish: Wish, is_hidden: bool = False, now_ms: int | None = None) -> Preview:
    """A message of this wish's queue before and after the edit."""
    if is_hidden:
        return Preview(message.seq, message.id, is_hidden=True)
    made = made_of(message, wish, now_ms)
    rows = tuple(_rows({**message.headers, "destination": wish.queue.stomp}, headers_of(made)))
    body = Row("body", _shown(message.body), _shown(made.body)) if message.body != made.body else None
    return Preview(message.seq, message.id, rows, body)


def headers_of(made: OperatorMessage) -> dict[str, str]:
    """What it would say, as the routing reads it."""
    standard = {"destination": made.destination, "expires": str(made.expires), "priority": str(made.priority)}
    return {**made.properties, **standard, **({"persistent": "true"} if made.persistent else {})}


def _rows(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Row]:
    yield Row("destination", before["destination"], after["destination"])
    for name in ("persistent", "priority", "expires"):
        row = Row(name, _said(name, before.get(name)), _said(name, after.get(name)))
        if name == "persistent" or row.mark != "same" or row.after not in ("4", "never"):
            yield row
    own = {name for name in (*before, *after) if is_own(name)}
    for name in sorted(own, key=lambda each: (each not in EDITABLE, each)):
        yield Row(name, before.get(name), after.get(name))


def _said(name: str, value: str | None) -> str:
    """A header that every message has, in words: without it, it has a value all the same."""
    if name == "persistent":
        return "yes" if value == "true" else "no"
    if name == "priority":
        return value or "4"
    number = int(value) if value and value.isdecimal() and len(value) < 15 else 0
    return f"{datetime.fromtimestamp(number / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if number else "never"


def _shown(body: bytes) -> str:
    text = as_typed(body)
    if text is None:
        return f"{len(body):,} bytes that are no text"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(body):,} bytes)"
