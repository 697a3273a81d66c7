"""The blast radius: where messages would come if they were sent again now, and what should be known before.

By the routing in force, message by message; by the recorded trace as far as it says where a message was processed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from brokerapp.engine.policy.broker_headers import COUNT, LIVED_UNTIL, brokers_word
from brokerapp.model.destination import Destination
from brokerapp.model.stats_records import BrowsedMessage, DestinationStats
from console.access import redaction
from console.access.roles import Sees, everything
from console.ui.formatting.number_format import pluralize_count

#: Messages whose ways are looked at; and of those whose trace is.
MAX_ROUTED, MAX_TRACED = 100, 20

#: Where a message would be sent (None: it does not say), and its headers then.
Way = tuple[Destination | None, dict[str, str]]


@dataclass(slots=True)
class Reach:
    """One destination that messages come to."""

    destination: Destination
    stats: DestinationStats | None = None
    is_named: bool = True  #: whether who looks may know of it; else it only counts
    processed: int = 0  #: how many of the messages were acknowledged there before

    @property
    def is_paused(self) -> bool:
        """Whether nothing leaves it now."""
        return self.stats is not None and self.stats.Paused

    @property
    def warning(self) -> str:
        """What stands in the way there, or ""."""
        if self.is_paused:
            return f"is paused, with {pluralize_count(self.stats.QueueSize, 'message')}"
        if self.stats is None or not self.stats.ConsumerCount:
            return "has no consumer now"
        return ""


@dataclass(slots=True)
class Blast:
    """Messages that take the same way."""

    target: Destination | None  #: None: they do not say where they failed
    count: int = 0
    reaches: list[Reach] = field(default_factory=list)
    topics: list[tuple[Destination, int]] = field(default_factory=list)  #: with how many subscribers listen
    unnamed_topics: int = 0  #: topics that only count
    unnamed_listeners: int = 0  #: the subscribers of those
    error: str = ""

    @property
    def named(self) -> list[Reach]:
        """The queues that who looks may know of."""
        return [each for each in self.reaches if each.is_named]

    @property
    def unnamed(self) -> int:
        """How many queues and topics there are beside those that are named."""
        return len(self.reaches) - len(self.named) + self.unnamed_topics

    @property
    def sentence(self) -> str:
        """What happens to each of them."""
        if self.error:
            return f"cannot be sent: {self.error}"
        queues, listeners = len(self.reaches), self.unnamed_listeners + sum(count for _, count in self.topics)
        done = sum(bool(each.processed) for each in self.reaches)
        also = f" and to {pluralize_count(listeners, 'subscriber')} of a topic" if listeners else ""
        if queues == 1:
            before = ", where it was processed before" if done and self.count == 1 else ""
            before = (
                f", where {self.reaches[0].processed} of them were processed before" if done and not before else before
            )
            return f"goes to exactly one queue{before}{also}"
        if not queues:
            return f"goes to no queue{also}: nothing keeps it"
        processed = f", {done} of which processed {'it' if self.count == 1 else 'some'}" if done else ""
        return f"fans out again to {pluralize_count(queues, 'queue')}{processed}{also}"

    @property
    def is_safe(self) -> bool:
        """Whether each message goes to one queue, which has not had it, and where somebody waits for it."""
        return (
            len(self.reaches) == 1 and not self.error and not self.reaches[0].processed and not self.reaches[0].warning
        )


@dataclass(slots=True)
class Radius:
    """All ways of the messages somebody chose, and what should be known about them."""

    blasts: list[Blast]
    looked_at: int
    of: int
    notes: list[str] = field(default_factory=list)
    traced: bool = True  #: whether the trace says where they were processed

    @property
    def is_safe(self) -> bool:
        """Whether nothing needs a second thought."""
        return all(each.is_safe for each in self.blasts) and not self.notes


Router = Callable[[Sequence[tuple[Destination, dict[str, str]]]], list[dict]]
#: For message ids, where each was acknowledged; None when the trace cannot tell.
Processed = Callable[[Sequence[str]], dict[str, set[str]] | None]


def radius(
    messages: Sequence[BrowsedMessage], ways: Sequence[Way], of: int,
    router: Router, processed: Processed, stats: Callable[[Destination], DestinationStats | None],
    sees: Sees = everything, shown: Callable[[BrowsedMessage], Mapping[str, str]] = attrgetter("headers"),
) -> Radius:  # fmt: skip
    """What becomes of these messages, of `of` that were chosen, when each goes its way.

    What who looks may not know of (`sees`) is counted and not named; of headers they are told what is `shown` to them.
    """
    looked_at = messages[:MAX_ROUTED]
    targets = [to for to, _ in ways[:MAX_ROUTED]]
    asked = [(to, headers) for to, headers in ways[:MAX_ROUTED] if to]
    answers = iter(router(asked) if asked else ())
    done = processed([message.id for message in looked_at[:MAX_TRACED]])
    blasts: dict[tuple, Blast] = {}
    for message, to in zip(looked_at, targets, strict=True):
        route = next(answers) if to else {"queues": [], "topics": [], "error": "it does not say where it failed"}
        key = (to, tuple(route["queues"]), route.get("error", ""))
        if key not in blasts:
            blasts[key] = _blast(to, route, stats, sees)
        blast = blasts[key]
        blast.count += 1
        for reach in blast.reaches:
            reach.processed += str(reach.destination) in (done or {}).get(message.id, ())
    ordered = sorted(blasts.values(), key=lambda each: -each.count)
    return Radius(ordered, len(looked_at), of, list(_notes(map(shown, looked_at))), done is not None)


def _blast(
    to: Destination | None, route: dict, stats: Callable[[Destination], DestinationStats | None], sees: Sees
) -> Blast:
    reaches = [Reach(each, stats(each), sees(each)) for each in map(Destination.parse, route["queues"])]
    topics = [(Destination.parse(name), count) for name, count in route["topics"]]
    named = [(topic, count) for topic, count in topics if sees(topic)]
    unnamed = [count for topic, count in topics if not sees(topic)]
    return Blast(
        to, 0, reaches, named, len(unnamed), sum(unnamed), redaction.redact_sentence(route.get("error", ""), sees)
    )  # fmt: skip


def _notes(messages: Iterable[Mapping[str, str]]) -> Iterable[str]:
    """What should be known of messages with these headers."""
    now, expired, once, groups, again = time.time() * 1000, 0, 0, Counter(), 0
    for headers in messages:
        expired += 0 < _number(headers.get("expires", "0")) < now
        word = brokers_word(headers)
        once += 0 < _number(word.get(LIVED_UNTIL, "0")) < now
        again += COUNT in word
        if group := headers.get("JMSXGroupID"):
            groups[group] += 1
    if expired:
        said = pluralize_count(expired, "message")
        yield f"{said} {_is(expired)} past the time to live, and would expire again at once."
    if once:
        said = pluralize_count(once, "message")
        yield f"{said} had a time to live that is over; sent again, {_it(once)} would not expire."
    if groups:
        named = ", ".join(list(groups)[:3]) + ("…" if len(groups) > 3 else "")
        count = sum(groups.values())
        yield (
            f"{pluralize_count(count, 'message')} {'belongs' if count == 1 else 'belong'} to message groups ({named}): "
            "later ones of the group may have been processed meanwhile, and what is sent again comes after them."
        )
    if again:
        said = pluralize_count(again, "message")
        yield f"{said} {'was' if again == 1 else 'were'} sent again before, and failed again."


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 16 else 0


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _it(count: int) -> str:
    return "it" if count == 1 else "they"
