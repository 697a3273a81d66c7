"""Searches messages by id, correlation id and indexed properties, in the trace, dead-letter queues and queues.

The search is limited in time and reports what it did not scan. Only visible destinations are searched.
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
from brokerapp.model.jms.properties import property_header
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, DestinationStats
from console.broker.gateway import gateway
from console.messages import trace_reader
from console.messages.dead_letter_groups import is_dead_letter_queue
from console.messages.journey.journey import COPY_STATES, build_journey
from console.messages.journey.journey_service import operator_actions
from console.messages.message_view import MessageView

#: Time limits in seconds: for the trace, and for queues.
TRACE_SECONDS, QUEUE_SECONDS = 0.8, 0.8
#: Results that are shown.
MAX_HITS = 50
#: Messages read at once; and messages scanned around a known position.
PAGE, SCAN_NEAR = 500, 3_000
#: Copies of one message that are reported in one queue.
MAX_COPIES = 5
QUOTE = "'"
#: How much earlier than recorded a message may have arrived, in milliseconds.
CLOCK_TOLERANCE_MS = 2_000


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that was found in one destination."""

    id: str
    destination: Destination
    state: str
    when: datetime | None
    why: str = ""  #: property or header that matched
    origin: str = ""  #: original destination of a dead letter
    cause: str = ""
    seq: int | None = None
    others: tuple[tuple[str, Destination], ...] = ()  #: states and destinations of further copies

    @property
    def icon(self) -> str:
        """Return the name of the icon of its state."""
        return "dlq" if self.state == "dead" else "message"

    @property
    def state_label(self) -> str:
        """Return its state and a preposition, to be followed by the destination."""
        if self.state == "dead":
            return "Dead-lettered in"
        return f"{_state_label(self.state)} {'from' if self.state == 'taken' else 'in'}"

    @property
    def other_copies(self) -> list[tuple[str, Destination]]:
        """Return labels of the states of further copies, and their destinations."""
        return [(_state_label(state).lower(), destination) for state, destination in self.others]


def _state_label(state: str) -> str:
    return COPY_STATES.get(state, state.capitalize())


@dataclass(slots=True)
class SearchResult:
    """The messages found by a search, and how much was scanned."""

    hits: list[MessageHit] = field(default_factory=list)
    read_count: int = 0  #: messages scanned in queues
    searched_queues: int = 0  #: queues scanned completely
    total_queues: int = 0
    complete: bool = True
    names: tuple[str, ...] = ()
    seconds: float = QUEUE_SECONDS  #: time limit of the scan of queues


#: Masks a message in a queue for the user.
MaskMessage = Callable[[BrowsedMessage, Destination], BrowsedMessage]


def parse_query(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the value to search and the properties to compare: `order:4711` names one, `4711` means all."""
    indexed = settings.SLUICE.indexed
    name, colon, value = text.partition(":")
    if colon and value and name in (*indexed, "correlation"):
        return value.strip(), ("correlation-id" if name == "correlation" else name,)
    return text.strip(), tuple(indexed)


def search(
    text: str, stats: Iterable[DestinationStats], sees: Callable[[Destination], bool], shown: MaskMessage
) -> SearchResult:  # fmt: skip
    """Find messages with this id, correlation id or value of an indexed property; dead letters first, then the newest.

    `shown` masks a message for the user: masked values do not match.
    """
    wanted, names = parse_query(text)
    found = SearchResult(names=names)
    by_place: dict[tuple[str, Destination], MessageHit] = {}
    _search_queues(wanted, names, [each for each in stats if each.destination.is_queue and sees(each.destination)],
               shown, found, by_place)  # fmt: skip
    recorded, is_complete = search_trace(wanted, names, sees, shown, TRACE_SECONDS)
    found.complete = found.complete and is_complete
    for each in recorded:  # what a queue holds now takes precedence over the trace
        by_place.setdefault((each.id, each.destination), each)
    found.hits = merge_copies(by_place.values())[:MAX_HITS]
    return found


def merge_copies(hits: Iterable[MessageHit]) -> list[MessageHit]:
    """Merge results to one per message: the dead letter, else the stored copy, else the latest state."""
    order = {"dead": 0, "waiting": 1, "held": 1}
    ordered = sorted(
        hits, key=lambda hit: (order.get(hit.state, 2), -(hit.when.timestamp() if hit.when else 0.0))
    )  # fmt: skip
    found: dict[str, MessageHit] = {}
    for hit in ordered:
        first = found.setdefault(hit.id, hit)
        if first is not hit:
            found[hit.id] = replace(first, others=(*first.others, (hit.state, hit.destination)))
    return list(found.values())


def match_reason(message: BrowsedMessage, wanted: str, names: Sequence[str]) -> str:
    """Return the property that matches; "" without a match."""
    if message.id == wanted:
        return "message id"
    get = message.headers.get
    return next((name for name in names if wanted in (get(name), get(property_header(name)))), "")


def search_order(queues: Iterable[DestinationStats]) -> list[DestinationStats]:
    """Return the non-empty queues in search order: dead-letter queues first, then by depth."""
    filled = [each for each in queues if each.destination.is_queue and each.QueueSize]
    return sorted(filled, key=lambda each: (not is_dead_letter_queue(each), each.QueueSize))


def matching_messages(
    messages: Iterable[BrowsedMessage], place: Destination, holds_dead_letters: bool, wanted: str,
    names: Sequence[str], shown: MaskMessage,
) -> Iterator[MessageHit]:  # fmt: skip
    """Yield the messages of a queue that match in what the user may see."""
    state = "dead" if holds_dead_letters else "waiting"
    for message in messages:
        if match_reason(message, wanted, names) and (
            matched := match_reason(seen := shown(message, place), wanted, names)
        ):
            yield _hit(seen, place, state, matched)


def _search_queues(
    wanted: str, names: Sequence[str], queues: list[DestinationStats], shown: MaskMessage, found: SearchResult,
    hits: dict[tuple[str, Destination], MessageHit],
) -> None:  # fmt: skip
    deadline, broker, filled = time.monotonic() + QUEUE_SECONDS, gateway(), search_order(queues)
    found.total_queues = len(filled)
    for each in filled:
        before = END_OF_LOG
        while time.monotonic() < deadline and len(hits) < MAX_HITS:
            try:
                page = broker.browse_back(each.destination, before, PAGE, None, PAGE)
            except BrokerError:  # deleted meanwhile
                break
            found.read_count += len(page.messages)
            matches = matching_messages(
                page.messages, each.destination, is_dead_letter_queue(each), wanted, names, shown
            )
            hits.update(((hit.id, hit.destination), hit) for hit in matches)
            if page.next is None:
                found.searched_queues += 1
                break
            before = page.next
        else:
            break
    found.complete = found.searched_queues == found.total_queues


def _hit(message: BrowsedMessage, place: Destination, state: str, matched: str) -> MessageHit:
    listed = MessageView(message)
    origin = message.came_from or "" if state == "dead" else ""
    return MessageHit(
        message.id, place, state, listed.dead_lettered_at or listed.sent_at, matched, origin, listed.cause, message.seq
    )


def search_trace(
    wanted: str, names: Sequence[str], sees: Callable[[Destination], bool], shown: MaskMessage, patience: float
) -> tuple[list[MessageHit], bool]:
    """Find recorded messages; also return whether the whole trace was read within the time limit in seconds."""
    hits: list[MessageHit] = []
    sent = trace_reader.search(wanted, names, patience)
    matched = {
        each.msg_id: reason for each in sent.events if (reason := match_reason(_recorded(each, shown), wanted, names))
    }
    if not matched:
        return hits, sent.complete
    events = trace_reader.events_of(list(matched), patience)
    actions = operator_actions(list(matched))  # the trace does not record removals by operators
    for id, reason in matched.items():
        found_journey = build_journey(id, [each for each in events.events if each.msg_id == id], actions[id], {}, True)
        for copy in found_journey.copies:
            if sees(copy.destination):
                cause = (
                    "" if copy.state == "taken" else copy.detail
                )  # an action's detail names its target, which may be hidden
                hits.append(MessageHit(id, copy.destination, copy.state, copy.since, reason, cause=cause))
        if not found_journey.copies and found_journey.sent_to is not None and sees(found_journey.sent_to):
            hits.append(MessageHit(id, found_journey.sent_to, "sent", found_journey.steps[0].time, reason))
    return hits, sent.complete and events.complete


def _recorded(event: TraceEvent, shown: MaskMessage) -> BrowsedMessage:
    """Return a message as recorded when it was sent."""
    place = Destination.parse(event.destination)
    headers = {"message-id": event.msg_id, **event.properties}
    return shown(BrowsedMessage(0, event.msg_id, place.stomp, None, headers, b"", event.size), place)


def locate(id: str, queue: Destination, came: datetime) -> list[BrowsedMessage]:
    """Find the copies of a message in a queue near the time of its arrival."""
    broker, selector = gateway(), f"JMSMessageID = '{id.replace(QUOTE, QUOTE * 2)}'"
    try:
        after = broker.seq_at(queue, int(came.astimezone(UTC).timestamp() * 1000) - CLOCK_TOLERANCE_MS)
        near = broker.browse(queue, after, MAX_COPIES, selector, SCAN_NEAR)
        return near.messages or broker.browse_back(queue, END_OF_LOG, MAX_COPIES, selector, PAGE).messages
    except BrokerError:  # the queue was deleted
        return []
