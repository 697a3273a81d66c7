"""Dead letters of all queues together: groups of those that failed alike, with their history. Reads through callables.

The newest are read first, within a time and a number; what was not read is said.
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
from brokerapp.engine.policy.broker_headers import CAUSE, COUNT, EARLIER_CAUSE, FAILED_AT, FIRST_FAILED_AT, brokers_word
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import END_OF_LOG, BrowsedMessage, BrowsePage, DestinationStats
from console.messages.message_view import Listed

#: Seconds and messages that one look may take.
PATIENCE, MAX_READ = 2.0, 50_000
PAGE = 500
#: Bars of a history.
BARS = 48


def is_dead_letter_queue(stats: DestinationStats) -> bool:
    """Whether failed messages are kept there."""
    return stats.destination.is_queue and stats.DLQ


@dataclass(slots=True)
class Cluster:
    """Dead letters of one origin that failed alike."""

    pattern: str
    origin: str  #: STOMP form; "" when they do not say
    queues: Counter[Destination] = field(default_factory=Counter)
    consumers: Counter[str] = field(default_factory=Counter)
    times: list[int] = field(default_factory=list)  #: of the latest failure of each, milliseconds since the epoch
    first_ms: float = math.inf  #: of the first failure of any, before it was resubmitted, too
    newest: Listed | None = None
    resubmitted: int = 0  #: how many were sent again before
    claimed: int = 0  #: how many did not fail here: they were sent there, and say themselves that they had failed

    @property
    def count(self) -> int:
        """How many were read."""
        return sum(self.queues.values())

    @property
    def queue(self) -> Destination:
        """The dead-letter queue that has most of them."""
        return self.queues.most_common(1)[0][0]

    @property
    def worst(self) -> list[str]:
        """The consumers that most of them failed with."""
        return [name for name, _ in self.consumers.most_common(3)]

    @property
    def from_where(self) -> Destination | None:
        """Where they failed."""
        return Destination.parse(self.origin) if self.origin else None

    @property
    def first(self) -> datetime | None:
        """When any of them failed first; resubmissions that failed alike do not begin again."""
        return datetime.fromtimestamp(self.first_ms / 1000, UTC) if self.times else None

    @property
    def last(self) -> datetime | None:
        """When the last of them failed."""
        return datetime.fromtimestamp(max(self.times) / 1000, UTC) if self.times else None

    @property
    def selector(self) -> str:
        """What finds these messages in their queue."""
        return " AND ".join(each for each in (_like_cause(self.pattern), _like_origin(self.origin)) if each)

    def bars(self, since_ms: float, until_ms: float, count: int = BARS) -> list[int]:
        """How many failed in each part of a time."""
        return histogram(self.times, since_ms, until_ms, count)


@dataclass(slots=True)
class Survey:
    """What a look at all dead letters found."""

    clusters: list[Cluster]
    read: int
    holds: dict[Destination, int]  #: messages of each queue: as read, or as its node counts where not all was read
    times: list[int]

    @property
    def total(self) -> int:
        """Dead letters of all these queues."""
        return sum(self.holds.values())

    @property
    def complete(self) -> bool:
        """Whether every dead letter was read."""
        return self.read >= self.total

    def matching(self, text: str) -> list[Cluster]:
        """The groups with this in their cause, origin or queue."""
        part = text.lower()
        return [each for each in self.clusters if part in f"{each.pattern} {each.origin} {each.queue}".lower()]


def histogram(times: Iterable[int], since_ms: float, until_ms: float, count: int = BARS) -> list[int]:
    """How many moments fall into each part of a time."""
    found, width = [0] * count, max(1.0, (until_ms - since_ms) / count)
    for each in times:
        if since_ms <= each <= until_ms:
            found[min(count - 1, int((each - since_ms) / width))] += 1
    return found


def clustered(messages: Iterable[tuple[Destination, BrowsedMessage]]) -> list[Cluster]:
    """Groups of dead letters, newest first given: those with the latest failure first."""
    found: dict[tuple[str, str], Cluster] = {}
    for queue, message in messages:
        headers = message.headers
        pattern, origin = pattern_of(headers.get(CAUSE, "")), message.came_from or ""
        cluster = found.setdefault((pattern, origin), Cluster(pattern, origin))
        cluster.queues[queue] += 1
        word = brokers_word(headers)
        cluster.claimed += CAUSE in headers and CAUSE not in word
        if consumer := word.get("dlqConsumer"):
            cluster.consumers[consumer] += 1
        failed_ms = _milliseconds(word.get(FAILED_AT) or headers.get("timestamp", ""))
        if failed_ms is not None:
            cluster.times.append(failed_ms)
            cluster.first_ms = min(cluster.first_ms, failed_ms, _failed_before(word, pattern))
        cluster.resubmitted += COUNT in word
        cluster.newest = cluster.newest or Listed(message)
    return sorted(found.values(), key=lambda each: (-max(each.times, default=0), each.pattern))


def _failed_before(word: Mapping[str, str], pattern: str) -> float:
    """When a message that was resubmitted failed first like this, milliseconds since the epoch; infinity: never."""
    first_ms = _milliseconds(word.get(FIRST_FAILED_AT, ""))
    is_alike = pattern_of(word.get(EARLIER_CAUSE, "")) == pattern
    return first_ms if first_ms is not None and is_alike else math.inf


def _milliseconds(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 15 else None


Browse = Callable[[Destination, int, int, str | None, int], BrowsePage]


def survey(queues: list[DestinationStats], browse_back: Browse, patience: float = PATIENCE) -> Survey:
    """Read what these queues hold, the newest first, one page of each in turn."""
    deadline, read = time.monotonic() + patience, []
    waiting = [(each.destination, END_OF_LOG) for each in queues if each.QueueSize]
    while waiting and len(read) < MAX_READ and time.monotonic() < deadline:
        queue, before = waiting.pop(0)
        page = browse_back(queue, before, PAGE, None, PAGE)
        read += [(queue, message) for message in reversed(page.messages)]
        if page.next is not None:
            waiting.append((queue, page.next))
    clusters = clustered(read)
    times = [each for cluster in clusters for each in cluster.times]
    found_in, unread = Counter(queue for queue, _ in read), {queue for queue, _ in waiting}
    told = {each.destination: each.QueueSize if each.destination in unread else 0 for each in queues}
    holds = {queue: max(found_in[queue], size) for queue, size in told.items()}
    return Survey(clusters, len(read), holds, times)


def _like_cause(pattern: str) -> str:
    if pattern == UNKNOWN:
        return "dlqDeliveryFailureCause IS NULL"
    if GAP not in pattern and len(pattern) < LONGEST:
        return f"dlqDeliveryFailureCause = '{_quoted(pattern)}'"
    end = "%" if len(pattern) == LONGEST else ""
    return f"dlqDeliveryFailureCause LIKE '{_escaped(pattern)}{end}'" + _escape_clause(pattern)


def _like_origin(origin: str) -> str:
    if not origin:
        return ""
    return f"(dlqRoute = '{_quoted(origin)}' OR dlqRoute LIKE '%,{_escaped(origin)}'" + _escape_clause(origin) + ")"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", _quoted(text)).replace(GAP, "%")


def _escape_clause(text: str) -> str:
    return r" ESCAPE '\'" if re.search(r"[%_\\]", text) else ""
