"""Groups dead letters of all queues by cause and original destination. Reads queues through callables.

The newest are read first, within limits of time and number; the result says how many were read.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from analytics.model.failure_patterns import GAP, LONGEST, UNKNOWN, pattern_of
from brokerapp.engine.policy.broker_headers import (
    CAUSE,
    EARLIER_CAUSE,
    FAILED_AT,
    FIRST_FAILED_AT,
    RESUBMIT_COUNT,
    broker_headers,
)
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, BrowsePage, DestinationStats
from console.messages.message_view import MessageView

#: Limits of one survey: seconds and messages.
TIMEOUT_SECONDS, MAX_READ = 2.0, 50_000
PAGE = 500
#: Bars of a histogram.
BARS = 48


def is_dead_letter_queue(stats: DestinationStats) -> bool:
    """Return whether a destination is a dead-letter queue."""
    return stats.destination.is_queue and stats.DLQ


@dataclass(slots=True)
class DeadLetterGroup:
    """Dead letters with the same original destination and the same pattern of their cause."""

    pattern: str
    origin: str  #: original destination in STOMP form; "" if not recorded
    queues: Counter[Destination] = field(default_factory=Counter)
    consumers: Counter[str] = field(default_factory=Counter)
    times: list[int] = field(default_factory=list)  #: of the latest failure of each, milliseconds since the epoch
    first_ms: float = math.inf  #: of the first failure, including those before a resubmission
    newest: MessageView | None = None
    resubmitted: int = 0  #: number of messages that were resubmitted before
    claimed: int = 0  #: number of messages whose failure was reported by their sender, not by this broker

    @property
    def count(self) -> int:
        """Return the number of messages read."""
        return sum(self.queues.values())

    @property
    def queue(self) -> Destination:
        """Return the dead-letter queue that holds most of them."""
        return self.queues.most_common(1)[0][0]

    @property
    def top_consumers(self) -> list[str]:
        """Return the three consumers with the most failures."""
        return [name for name, _ in self.consumers.most_common(3)]

    @property
    def original_destination(self) -> Destination | None:
        """Return the destination in which they failed."""
        return Destination.parse(self.origin) if self.origin else None

    @property
    def first(self) -> datetime | None:
        """Return the time of the first failure; a resubmission that failed alike does not reset it."""
        return datetime.fromtimestamp(self.first_ms / 1000, UTC) if self.times else None

    @property
    def last(self) -> datetime | None:
        """Return the time of the last failure."""
        return datetime.fromtimestamp(max(self.times) / 1000, UTC) if self.times else None

    @property
    def selector(self) -> str:
        """Return the selector that finds these messages in their queue."""
        return " AND ".join(each for each in (_cause_condition(self.pattern), _origin_condition(self.origin)) if each)

    def bars(self, since_ms: float, until_ms: float, count: int = BARS) -> list[int]:
        """Return the number of failures per bar of a time range."""
        return histogram(self.times, since_ms, until_ms, count)


@dataclass(slots=True)
class DeadLetterSurvey:
    """Dead letters of several queues, in groups."""

    groups: list[DeadLetterGroup]
    read: int
    depths: dict[Destination, int]  #: messages of each queue: as read, or the node's count if not all were read
    times: list[int]

    @property
    def total(self) -> int:
        """Return the number of dead letters in all queues."""
        return sum(self.depths.values())

    @property
    def complete(self) -> bool:
        """Return whether every dead letter was read."""
        return self.read >= self.total

    def matching(self, text: str) -> list[DeadLetterGroup]:
        """Return the groups with a text in their cause, original destination or queue."""
        part = text.lower()
        return [each for each in self.groups if part in f"{each.pattern} {each.origin} {each.queue}".lower()]


def histogram(times: Iterable[int], since_ms: float, until_ms: float, count: int = BARS) -> list[int]:
    """Count times per bar of a time range."""
    found, width = [0] * count, max(1.0, (until_ms - since_ms) / count)
    for each in times:
        if since_ms <= each <= until_ms:
            found[min(count - 1, int((each - since_ms) / width))] += 1
    return found


def group_dead_letters(messages: Iterable[tuple[Destination, BrowsedMessage]]) -> list[DeadLetterGroup]:
    """Group dead letters that are given newest first; the group with the latest failure comes first."""
    found: dict[tuple[str, str], DeadLetterGroup] = {}
    for queue, message in messages:
        headers = message.headers
        pattern, origin = pattern_of(headers.get(CAUSE, "")), message.came_from or ""
        group = found.setdefault((pattern, origin), DeadLetterGroup(pattern, origin))
        group.queues[queue] += 1
        properties = broker_headers(headers)
        group.claimed += CAUSE in headers and CAUSE not in properties
        if consumer := properties.get("dlqConsumer"):
            group.consumers[consumer] += 1
        failed_ms = _milliseconds(properties.get(FAILED_AT) or headers.get("timestamp", ""))
        if failed_ms is not None:
            group.times.append(failed_ms)
            group.first_ms = min(group.first_ms, failed_ms, _failed_before(properties, pattern))
        group.resubmitted += RESUBMIT_COUNT in properties
        group.newest = group.newest or MessageView(message)
    return sorted(found.values(), key=lambda each: (-max(each.times, default=0), each.pattern))


def _failed_before(properties: Mapping[str, str], pattern: str) -> float:
    """Return when a resubmitted message first failed with this cause (ms since the epoch); infinity: never."""
    first_ms = _milliseconds(properties.get(FIRST_FAILED_AT, ""))
    is_alike = pattern_of(properties.get(EARLIER_CAUSE, "")) == pattern
    return first_ms if first_ms is not None and is_alike else math.inf


def _milliseconds(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 15 else None


BrowseBack = Callable[[Destination, int, int, str | None, int], BrowsePage]


def survey_queues(
    queues: list[DestinationStats], browse_back: BrowseBack, patience: float = TIMEOUT_SECONDS
) -> DeadLetterSurvey:
    """Read dead-letter queues newest first, one page of each in turn, and group what was read."""
    deadline, read = time.monotonic() + patience, []
    waiting = [(each.destination, END_OF_LOG) for each in queues if each.QueueSize]
    while waiting and len(read) < MAX_READ and time.monotonic() < deadline:
        queue, before = waiting.pop(0)
        page = browse_back(queue, before, PAGE, None, PAGE)
        read += [(queue, message) for message in reversed(page.messages)]
        if page.next is not None:
            waiting.append((queue, page.next))
    groups = group_dead_letters(read)
    times = [each for group in groups for each in group.times]
    found_in, unread = Counter(queue for queue, _ in read), {queue for queue, _ in waiting}
    counts = {each.destination: each.QueueSize if each.destination in unread else 0 for each in queues}
    holds = {queue: max(found_in[queue], size) for queue, size in counts.items()}
    return DeadLetterSurvey(groups, len(read), holds, times)


def _cause_condition(pattern: str) -> str:
    if pattern == UNKNOWN:
        return "dlqDeliveryFailureCause IS NULL"
    if GAP not in pattern and len(pattern) < LONGEST:
        return f"dlqDeliveryFailureCause = '{_quoted(pattern)}'"
    end = "%" if len(pattern) == LONGEST else ""
    return f"dlqDeliveryFailureCause LIKE '{_escaped(pattern)}{end}'" + _escape_clause(pattern)


def _origin_condition(origin: str) -> str:
    if not origin:
        return ""
    return f"(dlqRoute = '{_quoted(origin)}' OR dlqRoute LIKE '%,{_escaped(origin)}'" + _escape_clause(origin) + ")"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", _quoted(text)).replace(GAP, "%")


def _escape_clause(text: str) -> str:
    return r" ESCAPE '\'" if re.search(r"[%_\\]", text) else ""
