"""The search for messages: by id, correlation id and indexed properties, in the trace, in dead letters and in queues.

Bounded in time: what was not looked at is said. Only destinations that the predicate lets through are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from django.conf import settings

from analytics.readers.message_trace import TraceEvent
from brokerapp.errors import BrokerError
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, DestinationStats
from console.broker.gateway import gateway
from console.messages import trace_reader
from console.messages.dead_letter_groups import is_dead_letter_queue
from console.messages.journey.journey import journey
from console.messages.journey.journey_service import deeds_of
from console.messages.message_view import Listed

#: Seconds for the trace, and for what lies in queues.
TRACE_PATIENCE, QUEUE_PATIENCE = 0.8, 0.8
#: Hits that are shown.
MAX_HITS = 50
#: Messages of one queue read at a time, the newest; and looked through for one whose place is known.
PAGE, NEAR = 500, 3_000
#: How often one message is told of in one queue.
MAX_TIMES = 5
QUOTE = "'"
#: How much earlier than recorded a message may have come, milliseconds.
EARLIER_MS = 2_000


@dataclass(frozen=True, slots=True)
class Hit:
    """One message, in one place."""

    id: str
    place: Destination
    state: str
    when: datetime | None
    why: str = ""  #: what matched
    origin: str = ""  #: where it failed, of a dead letter
    cause: str = ""
    seq: int | None = None
    others: tuple[tuple[str, Destination], ...] = ()  #: states and places of further copies


@dataclass(slots=True)
class Found:
    """What a search found."""

    hits: list[Hit] = field(default_factory=list)
    read: int = 0  #: messages in queues that were looked at
    queues: int = 0  #: queues of which all was looked at
    of: int = 0
    complete: bool = True
    names: tuple[str, ...] = ()
    seconds: float = QUEUE_PATIENCE  #: after which it stopped in the queues, where it did


#: A message in a queue, as somebody may see it.
Shown = Callable[[BrowsedMessage, Destination], BrowsedMessage]


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """What is searched for, and the properties it may be the value of: `order:4711` names one, `4711` none."""
    indexed = settings.SLUICE.indexed
    name, colon, value = text.partition(":")
    if colon and value and name in (*indexed, "correlation"):
        return value.strip(), ("correlation-id" if name == "correlation" else name,)
    return text.strip(), tuple(indexed)


def search(
    text: str, stats: Iterable[DestinationStats], sees: Callable[[Destination], bool], shown: Shown
) -> Found:  # fmt: skip
    """Messages with this id, correlation id or value of an indexed property; dead letters first, then the newest.

    `shown` gives a message as whoever searches may see it: what is masked for them finds nothing.
    """
    wanted, names = parse(text)
    found = Found(names=names)
    by_place: dict[tuple[str, Destination], Hit] = {}
    _in_queues(wanted, names, [each for each in stats if each.destination.is_queue and sees(each.destination)],
               shown, found, by_place)  # fmt: skip
    recorded, is_complete = in_trace(wanted, names, sees, shown, TRACE_PATIENCE)
    found.complete = found.complete and is_complete
    for each in recorded:  # what a queue holds now is told as it is there
        by_place.setdefault((each.id, each.place), each)
    found.hits = by_message(by_place.values())[:MAX_HITS]
    return found


def by_message(hits: Iterable[Hit]) -> list[Hit]:
    """One hit for each message, in its most telling place: where it is dead, then where it waits, then the latest."""
    order = {"dead": 0, "waiting": 1, "held": 1}
    ordered = sorted(
        hits, key=lambda hit: (order.get(hit.state, 2), -(hit.when.timestamp() if hit.when else 0.0))
    )  # fmt: skip
    found: dict[str, Hit] = {}
    for hit in ordered:
        first = found.setdefault(hit.id, hit)
        if first is not hit:
            found[hit.id] = replace(first, others=(*first.others, (hit.state, hit.place)))
    return list(found.values())


def why(message: BrowsedMessage, wanted: str, names: Sequence[str]) -> str:
    """What of this message matches; "" when nothing does."""
    if message.id == wanted:
        return "message id"
    return next((name for name in names if message.headers.get(name) == wanted), "")


def in_order(queues: Iterable[DestinationStats]) -> list[DestinationStats]:
    """The queues with messages in the order of search: dead letters first, then small ones before large ones."""
    filled = [each for each in queues if each.destination.is_queue and each.QueueSize]
    return sorted(filled, key=lambda each: (not is_dead_letter_queue(each), each.QueueSize))


def matching(
    messages: Iterable[BrowsedMessage], place: Destination, holds_dead_letters: bool, wanted: str,
    names: Sequence[str], shown: Shown,
) -> Iterator[Hit]:  # fmt: skip
    """The messages of a queue that match, as far as whoever searches may see why."""
    state = "dead" if holds_dead_letters else "waiting"
    for message in messages:
        if why(message, wanted, names) and (matched := why(seen := shown(message, place), wanted, names)):
            yield _hit(seen, place, state, matched)


def _in_queues(
    wanted: str, names: Sequence[str], queues: list[DestinationStats], shown: Shown, found: Found,
    hits: dict[tuple[str, Destination], Hit],
) -> None:  # fmt: skip
    deadline, door, filled = time.monotonic() + QUEUE_PATIENCE, gateway(), in_order(queues)
    found.of = len(filled)
    for each in filled:
        before = END_OF_LOG
        while time.monotonic() < deadline and len(hits) < MAX_HITS:
            try:
                page = door.browse_back(each.destination, before, PAGE, None, PAGE)
            except BrokerError:  # deleted in this moment
                break
            found.read += len(page.messages)
            matches = matching(page.messages, each.destination, is_dead_letter_queue(each), wanted, names, shown)
            hits.update(((hit.id, hit.place), hit) for hit in matches)
            if page.next is None:
                found.queues += 1
                break
            before = page.next
        else:
            break
    found.complete = found.queues == found.of


def _hit(message: BrowsedMessage, place: Destination, state: str, matched: str) -> Hit:
    listed = Listed(message)
    origin = message.came_from or "" if state == "dead" else ""
    return Hit(message.id, place, state, listed.died or listed.sent, matched, origin, listed.cause, message.seq)


def in_trace(
    wanted: str, names: Sequence[str], sees: Callable[[Destination], bool], shown: Shown, patience: float
) -> tuple[list[Hit], bool]:
    """What was recorded of messages that match, and whether all of the trace was read within the patience (seconds)."""
    hits: list[Hit] = []
    sent = trace_reader.search(wanted, names, patience)
    matched = {each.msg_id: reason for each in sent.events if (reason := why(_recorded(each, shown), wanted, names))}
    if not matched:
        return hits, sent.complete
    events = trace_reader.events_of(list(matched), patience)
    deeds = deeds_of(list(matched))  # what an operator took away waits nowhere: the trace does not tell of it
    for id, reason in matched.items():
        way = journey(id, [each for each in events.events if each.msg_id == id], deeds[id], {}, True)
        for copy in way.copies:
            if sees(copy.place):
                cause = "" if copy.state == "taken" else copy.detail  # a deed says where to: that is not everybody's
                hits.append(Hit(id, copy.place, copy.state, copy.since, reason, cause=cause))
        if not way.copies and way.sent_to is not None and sees(way.sent_to):
            hits.append(Hit(id, way.sent_to, "sent", way.steps[0].time, reason))
    return hits, sent.complete and events.complete


def _recorded(event: TraceEvent, shown: Shown) -> BrowsedMessage:
    """What was recorded of a message when it was sent."""
    place = Destination.parse(event.destination)
    headers = {"message-id": event.msg_id, **event.properties}
    return shown(BrowsedMessage(0, event.msg_id, place.stomp, None, headers, b"", event.size), place)


def locate(id: str, queue: Destination, came: datetime) -> list[BrowsedMessage]:
    """A message in a queue to which it came at this moment, as far as one can tell, each time it is there."""
    door, selector = gateway(), f"JMSMessageID = '{id.replace(QUOTE, QUOTE * 2)}'"
    try:
        after = door.place_at(queue, int(came.astimezone(UTC).timestamp() * 1000) - EARLIER_MS)
        near = door.browse(queue, after, MAX_TIMES, selector, NEAR)
        return near.messages or door.browse_back(queue, END_OF_LOG, MAX_TIMES, selector, PAGE).messages
    except BrokerError:  # the queue is gone
        return []
