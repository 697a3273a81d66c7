"""Impact of sending messages: the destinations they would reach now, with warnings.

Uses the active routing for each message, and the recorded trace for where it was processed before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from brokerapp.engine.policy.broker_headers import ORIGINAL_EXPIRATION, RESUBMIT_COUNT, broker_headers
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage, DestinationStats
from console.access import redaction
from console.access.roles import Sees, everything
from console.ui.formatting.number_format import pluralize_count
from console.ui.formatting.url_query import parse_integer

#: Messages that are routed, and messages whose trace is read.
MAX_ROUTED, MAX_TRACED = 100, 20

#: Destination of a message (None: not recorded) and its headers when sent.
PlannedSend = tuple[Destination | None, dict[str, str]]


@dataclass(slots=True)
class ImpactTarget:
    """A queue that messages would reach."""

    destination: Destination
    stats: DestinationStats | None = None
    is_visible: bool = True  #: whether the user may see it; otherwise it is only counted
    processed: int = 0  #: number of the messages that were acknowledged there before

    @property
    def is_paused(self) -> bool:
        """Return whether its delivery is paused."""
        return self.stats is not None and self.stats.Paused

    @property
    def warning(self) -> str:
        """Return a reason why messages would not be consumed there, or ""."""
        if self.is_paused:
            return "Paused"
        if self.stats is None or not self.stats.ConsumerCount:
            return "No consumers"
        return ""


@dataclass(slots=True)
class ImpactGroup:
    """Messages with the same destination and the same targets."""

    target: Destination | None  #: None: the original destination is not recorded, or the user may not see it
    count: int = 0
    targets: list[ImpactTarget] = field(default_factory=list)
    topics: list[tuple[Destination, int]] = field(default_factory=list)  #: with the number of subscribers
    hidden_topic_count: int = 0  #: topics that the user may not see
    hidden_subscriber_count: int = 0  #: subscribers of the hidden topics
    error: str = ""

    @property
    def visible_queues(self) -> list[ImpactTarget]:
        """Return the queues that the user may see."""
        return [each for each in self.targets if each.is_visible]

    @property
    def hidden_count(self) -> int:
        """Return the number of queues and topics that the user may not see."""
        return len(self.targets) - len(self.visible_queues) + self.hidden_topic_count

    @property
    def sentence(self) -> str:
        """Describe what happens to each message."""
        if self.error:
            return f"cannot be sent: {self.error}"
        queues, listeners = len(self.targets), self.hidden_subscriber_count + sum(count for _, count in self.topics)
        done = sum(bool(each.processed) for each in self.targets)
        also = f" and to {pluralize_count(listeners, 'subscriber')} of a topic" if listeners else ""
        if queues == 1:
            before = ", where it was processed before" if done and self.count == 1 else ""
            if done and not before:
                before = f", where {self.targets[0].processed} of these messages were processed before"
            return f"goes to exactly one queue{before}{also}"
        if not queues:
            return f"goes to no queue{also} and is not stored"
        what = "it" if self.count == 1 else "some of these messages"
        processed = f", {done} of which processed {what} before" if done else ""
        return f"goes to {pluralize_count(queues, 'queue')}{processed}{also}"

    @property
    def is_safe(self) -> bool:
        """Return whether each message reaches exactly one queue, with consumers, that has not processed it before."""
        return (
            len(self.targets) == 1 and not self.error and not self.targets[0].processed and not self.targets[0].warning
        )


@dataclass(slots=True)
class ImpactReport:
    """The impact of sending a set of messages, with warnings. `checked` of `total` messages were routed."""

    groups: list[ImpactGroup]
    checked: int
    total: int
    notes: list[str] = field(default_factory=list)
    traced: bool = True  #: whether the trace has where they were processed

    @property
    def is_safe(self) -> bool:
        """Return whether there is no warning at all."""
        return all(each.is_safe for each in self.groups) and not self.notes


RouteLookup = Callable[[Sequence[tuple[Destination, dict[str, str]]]], list[dict]]
#: For message ids, where each was acknowledged; None if the trace has none of them.
AcknowledgedLookup = Callable[[Sequence[str]], dict[str, set[str]] | None]


def assess_impact(
    messages: Sequence[BrowsedMessage], sends: Sequence[PlannedSend], of: int,
    router: RouteLookup, processed: AcknowledgedLookup, stats: Callable[[Destination], DestinationStats | None],
    sees: Sees = everything, shown: Callable[[BrowsedMessage], Mapping[str, str]] = attrgetter("headers"),
) -> ImpactReport:  # fmt: skip
    """Assess the impact of sending these messages, a sample of `of`.

    Destinations that the user may not see (`sees`) are counted without their names; `shown` returns masked headers.
    """
    checked = messages[:MAX_ROUTED]
    targets = [to for to, _ in sends[:MAX_ROUTED]]
    asked = [(to, headers) for to, headers in sends[:MAX_ROUTED] if to]
    answers = iter(router(asked) if asked else ())
    done = processed([message.id for message in checked[:MAX_TRACED]])
    groups: dict[tuple, ImpactGroup] = {}
    for message, to in zip(checked, targets, strict=True):
        route = (
            next(answers) if to else {"queues": [], "topics": [], "error": "its original destination is not recorded"}
        )
        key = (to, tuple(route["queues"]), route.get("error", ""))
        if key not in groups:
            groups[key] = _impact_group(to, route, stats, sees)
        group = groups[key]
        group.count += 1
        for target in group.targets:
            target.processed += str(target.destination) in (done or {}).get(message.id, ())
    ordered = sorted(groups.values(), key=lambda each: -each.count)
    return ImpactReport(ordered, len(checked), of, list(_notes(map(shown, checked))), done is not None)


def _impact_group(
    to: Destination | None, route: dict, stats: Callable[[Destination], DestinationStats | None], sees: Sees
) -> ImpactGroup:
    targets = [ImpactTarget(each, stats(each), sees(each)) for each in map(Destination.parse, route["queues"])]
    topics = [(Destination.parse(name), count) for name, count in route["topics"]]
    named = [(topic, count) for topic, count in topics if sees(topic)]
    unnamed = [count for topic, count in topics if not sees(topic)]
    error = redaction.redact_sentence(route.get("error", ""), sees)
    return ImpactGroup(to if to and sees(to) else None, 0, targets, named, len(unnamed), sum(unnamed), error)


def _notes(messages: Iterable[Mapping[str, str]]) -> Iterable[str]:
    """Return warnings about messages with these headers."""
    now, expired, once, groups, again = time.time() * 1000, 0, 0, Counter(), 0
    for headers in messages:
        expired += 0 < parse_integer(headers.get("expires"), digits=15) < now
        word = broker_headers(headers)
        once += 0 < parse_integer(word.get(ORIGINAL_EXPIRATION), digits=15) < now
        again += RESUBMIT_COUNT in word
        if group := headers.get("JMSXGroupID"):
            groups[group] += 1
    if expired:
        said = pluralize_count(expired, "message")
        yield f"{said} {_is(expired)} past the time to live and would expire again immediately."
    if once:
        late = pluralize_count(once, "message")
        yield f"{late} exceeded the original time to live. After resubmission {_it(once)} would never expire."
    if groups:
        named = ", ".join(list(groups)[:3]) + ("…" if len(groups) > 3 else "")
        count = sum(groups.values())
        yield (
            f"{pluralize_count(count, 'message')} {'belongs' if count == 1 else 'belong'} to message groups ({named}). "
            "Later messages of these groups may already be processed; resubmitted ones come after them."
        )
    if again:
        said = pluralize_count(again, "message")
        yield f"{said} {'was' if again == 1 else 'were'} resubmitted before and failed again."


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _it(count: int) -> str:
    return "it" if count == 1 else "they"
