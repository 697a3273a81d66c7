"""Represent messages that came to topics at once, as subscribers get them: in the order in which they were sent. Pure.

Subscribers that want the same messages share one offer, so that what is the same for all of them is done once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message, RoutedCopy

#: Who subscribes; nothing here needs to know more of it.
SubscriberT = TypeVar("SubscriberT")
#: Bytes of bodies that a subscriber is handed at once: after that it is seen whether its socket takes more.
MAX_OFFERED_BYTES = 1024 * 1024
_place = itemgetter(0)


class TopicBatch(NamedTuple):
    """Messages that came to one topic, one after the other."""

    messages: Sequence[Message]
    copy: RoutedCopy
    places: Sequence[int] = ()  #: where each was sent among those of other topics; none: behind all before it


@dataclass(eq=False)
class TopicEntries:
    """Entries of one topic, all sent and shown alike."""

    topic: Destination
    entries: Sequence[LogEntry]
    places: Sequence[int] = ()

    @cached_property
    def messages(self) -> list[Message]:
        """Return the messages; the same list each time."""
        return [entry.message for entry in self.entries]

    @cached_property
    def born_us(self) -> list[int]:
        """Return when the messages reached the broker, microseconds since the epoch."""
        return [message.born_us for message in self.messages]

    def filtered(self, wanted: Sequence[bool]) -> TopicEntries:
        """Return those of the entries that are wanted; itself where all are."""
        if all(wanted):
            return self
        kept = [entry for entry, wants in zip(self.entries, wanted, strict=True) if wants]
        places = [place for place, wants in zip(self.places, wanted, strict=True) if wants] if self.places else ()
        return TopicEntries(self.topic, kept, places)


class SharedEntries(list[LogEntry]):
    """Entries that several subscribers get, and what is the same for all of them, looked at once."""

    frame_ends: list[bytes] | None = None  #: what their MESSAGE frames have in common, once one of them was written

    @cached_property
    def shown(self) -> list[str]:
        """Return the destination that is shown of each, in STOMP form."""
        return [entry.shown_destination for entry in self]

    @cached_property
    def one_of_each(self) -> list[LogEntry]:
        """Return an entry of each destination that is shown."""
        return list(dict(zip(self.shown, self, strict=True)).values())


@dataclass(eq=False)
class TopicOffer(Generic[SubscriberT]):
    """What some subscribers get of the messages that came at once."""

    parts: Sequence[TopicEntries]
    subscribers: list[SubscriberT] = field(default_factory=list)

    @cached_property
    def entries(self) -> list[LogEntry]:
        """Return the entries in the order in which they were sent."""
        entries = self._in_order()
        return SharedEntries(entries) if len(self.subscribers) > 1 else entries

    def _in_order(self) -> list[LogEntry]:
        parts = self.parts
        if len(parts) > 1 and all(each.places for each in parts):
            numbered = chain.from_iterable(zip(each.places, each.entries, strict=True) for each in parts)
            return [entry for _, entry in sorted(numbered, key=_place)]
        return [entry for each in parts for entry in each.entries]

    @cached_property
    def size(self) -> int:
        """Return the bytes of the bodies."""
        return sum([message.size for each in self.parts for message in each.messages])

    @cached_property
    def expires_ms(self) -> int:
        """Return when the first of the messages expires, milliseconds since the epoch; 0: none does."""
        return min([message.expires for each in self.parts for message in each.messages if message.expires], default=0)


def offers(wanted: Mapping[SubscriberT, Sequence[TopicEntries]]) -> list[TopicOffer[SubscriberT]]:
    """Return what each subscriber is offered; those that want the very same entries share an offer."""
    found: dict[tuple[int, ...], TopicOffer[SubscriberT]] = {}
    for subscriber, parts in wanted.items():
        key = tuple(map(id, parts))
        offer = found.get(key)
        if offer is None:
            offer = found[key] = TopicOffer(parts)
        offer.subscribers.append(subscriber)
    return list(found.values())
