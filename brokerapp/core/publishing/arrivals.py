"""MessageArrivals: what follows when messages come to logs and topics: counts, dispatch and trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress, groupby
from operator import attrgetter, is_
from typing import TYPE_CHECKING, NamedTuple

from brokerapp.engine.clients.client import Client, RoutedBatch
from brokerapp.engine.dispatch.append_group import AppendGroup
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.topic_batch import TopicBatch
from brokerapp.model.message import BodySizes, Message
from brokerapp.store import AppendNumbers, FirstNumber, numbers_from
from brokerapp.tracing.schema import FORWARD

if TYPE_CHECKING:
    from brokerapp.core.ports import (
        AdvisoriesPort,
        BridgesPort,
        BrokerContext,
        ConcurrentDispatchPort,
        Destinations,
        DispatcherPort,
        Placement,
        TemporariesPort,
        TopicDispatcherPort,
    )


class _Arrived(NamedTuple):
    """Copies of messages that came to one log, one after the other."""

    messages: Sequence[Message]
    sizes: Sequence[int]
    numbers: Sequence[int]
    payloads: Sequence[int]
    row: tuple[str, str, str]

    def entries(self) -> list[LogEntry]:
        name, original, shown = self.row
        deliveries = self.messages[0].deliveries
        facts = zip(self.numbers, self.messages, self.payloads, self.sizes, strict=True)
        return [
            LogEntry(name, number, message, payload, size, original, shown, deliveries)
            for number, message, payload, size in facts
        ]


_messages = attrgetter("messages")


def _hold_same_messages(arrived: Sequence[_Arrived], others: Sequence[_Arrived]) -> bool:
    """Whether the same messages came to two logs, at the same times."""
    return len(arrived) == len(others) and all(map(is_, map(_messages, arrived), map(_messages, others)))


def _join(arrived: Sequence[_Arrived]) -> tuple[Sequence[Message], BodySizes]:
    """Return all messages that came to a log, in order, and the sizes of their bodies."""
    messages = list(chain.from_iterable(map(_messages, arrived)))
    return messages, BodySizes.of(messages)


class MessageArrivals:
    """Hands messages to those who consume. A part of the broker."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        advisories: AdvisoriesPort,
        bridges: BridgesPort,
        concurrent: ConcurrentDispatchPort,
        dispatcher: DispatcherPort,
        placement: Placement,
        queues: Destinations,
        temporaries: TemporariesPort,
        topic_dispatcher: TopicDispatcherPort,
    ) -> None:
        self._commits, self._tracer, self._counters = context.commits, context.tracer, context.counters
        self._advisories, self._bridges, self._concurrent = advisories, bridges, concurrent
        self._dispatcher, self._placement, self._queues = dispatcher, placement, queues
        self._temporaries, self._topic_dispatcher = temporaries, topic_dispatcher

    # -- before they are stored, or without that

    def offer_early(self, placed: Sequence[RoutedBatch]) -> list[RoutedBatch]:
        """Give consumers early what may be; nothing of a log behind what it does not give early.

        Return the messages in parts, of which each was given or not.
        """
        parts: list[RoutedBatch] = []
        behind: set[str] = set()
        for each in placed:
            names = [name for group in each.route.groups for name in group.names]
            parts += self._concurrent.offer(each) if behind.isdisjoint(names) else (each,)
            if not parts[-1].given and each is not placed[-1]:
                behind.update(names)
        return parts

    def on_refused(self, given: Mapping[str, Sequence[LogEntry]]) -> None:
        """Act on the refusal of messages that consumers were given early."""
        self._concurrent.on_refused(given)

    def may_pass(self, each: RoutedBatch, *, is_behind: bool) -> bool:
        """Return whether consumers of the queue take these messages without the store as soon as they have room.

        `is_behind`: their sender has others on their way to the store, which they must not overtake.
        """
        return self._need_not_be_stored(each, is_behind) and next(iter(each.route.groups[0].logs)).may_take_unstored

    def _need_not_be_stored(self, each: RoutedBatch, is_behind: bool) -> bool:
        messages, groups = each.messages, each.route.groups
        if messages[0].persistent or any(message.persistent or message.has_group for message in messages):
            return False
        if len(groups) != 1 or len(groups[0].names) > 1 or each.route.topics or any(each.dedup_keys):
            return False
        return not (is_behind and self._commits.has_pending_for(groups[0].names[0]))

    def pass_through(self, each: RoutedBatch, *, is_behind: bool) -> int:
        """Give messages for one queue straight to those who wait there for just such; return how many they took."""
        if not self._need_not_be_stored(each, is_behind):
            return 0
        [group], passed = each.route.groups, 0
        [log], [(name, original, shown)] = group.logs, group.rows
        while messages := each.messages[passed : passed + log.room_for_unstored]:  # which each dispatch renews
            given = log.dispatch_unstored([LogEntry(name, 0, message, 0, 0, original, shown) for message in messages])
            if not given:
                break
            self.count_arrivals(log, messages, BodySizes.of(messages))
            self._tracer.record(FORWARD, messages[0].born_us, messages, group.names, str(each.destination))
            for consumer, entries in given:
                self._dispatcher.dispatch(log, consumer, entries)
            passed += len(messages)
        return passed

    # -- when they are stored

    def is_followed(self, log: str) -> bool:
        """Whether to ask the store what stood last in a log before a commit, see Window.offer_run."""
        found = self._queues.get(log)
        return found is not None and (
            found.has_active_consumers or (found.is_remote and self._placement.append_notices.wants_entries(log))
        )

    def on_committed(
        self,
        placed: Sequence[RoutedBatch],
        seq: FirstNumber,
        moved_us: int = 0,
        kind: int = FORWARD,
        reason: str | None = None,
    ) -> None:
        """Count copies that are stored, the first as number `seq`, and let their logs dispatch them.

        `moved_us`: when they were stored, if not at the birth of the messages. They are recorded as this kind of event,
        with this reason.
        """
        arrived: dict[MessageLog, list[_Arrived]] = {}
        is_spread = isinstance(seq, AppendNumbers)  # over several shards: their numbers do not follow each other
        for each in placed:
            groups, messages = each.route.groups, each.messages
            count = len(messages)
            if len(groups) == 1 and not is_spread:
                self._note(arrived, each, slice(None), groups[0], numbers_from(seq, count), moved_us, kind, reason)
            elif groups:  # a queue gets them more than once: each message with all of its copies
                for place in range(count):
                    numbers = numbers_from(seq + place * len(groups), len(groups))
                    for number, group in zip(numbers, groups, strict=True):
                        self._note(arrived, each, slice(place, place + 1), group, (number,), moved_us, kind, reason)
            seq += len(groups) * count
        last: Sequence[_Arrived] = ()
        for log, found in arrived.items():
            if not _hold_same_messages(found, last):
                last, (messages, bodies) = found, _join(found)
            self._append(log, found, messages, bodies, is_late=is_spread)
        to_topics = [each for each in placed if each.route.topics]
        if to_topics:
            self._publish(to_topics)

    def _note(
        self,
        arrived: dict[MessageLog, list[_Arrived]],
        each: RoutedBatch,
        part: slice,
        group: AppendGroup,
        numbers: Sequence[int],
        moved_us: int,
        kind: int,
        reason: str | None,
    ) -> None:
        """Note what came to each log of a group; what was given early is only numbered."""
        messages = each.messages[part]
        if not group.shared:
            payloads: Sequence[int] = (0,) * len(messages)
        else:
            base = self._commits.payload_base(group.names[0])
            payloads = [number + base for number in numbers] if base else numbers
        ts_us, sent_to = moved_us or messages[0].born_us, str(each.destination)
        if each.given:
            [log] = group.logs
            self._concurrent.on_committed(log, each.given, numbers, payloads)
            # Logs count what was given early from that moment on.
            self._tracer.record(FORWARD, ts_us, messages, group.names, sent_to, in_depths=True)
            return
        self._tracer.record(kind, ts_us, messages, group.names, sent_to, reason=reason)
        sizes = list(map(len, each.stored[part]))
        for log, row in zip(group.logs, group.rows, strict=True):
            arrived.setdefault(log, []).append(_Arrived(messages, sizes, numbers, payloads, row))

    def _append(
        self,
        log: MessageLog,
        arrived: Sequence[_Arrived],
        messages: Sequence[Message],
        bodies: BodySizes,
        *,
        is_late: bool,
    ) -> None:
        """Let a log dispatch what came to it: these messages, all together, whose bodies have these sizes.

        `is_late`: what was stored after them may be told of already.
        """
        before, notices = self._commits.before.get(log.name), self._placement.append_notices
        if log.is_remote:
            self._count(log, bodies)
            is_wanted = notices.wants_entries(log.name)
            for each in arrived:  # numbers in a notice follow each other: those between belong to other logs
                notices.add(log, len(each.messages), each.numbers[-1], each.entries() if is_wanted else (), before)
                before = each.numbers[-1]
            return
        self.count_arrivals(log, messages, bodies)
        if log.consumers:
            append = log.append_late if is_late else log.append_batch
            append([entry for each in arrived for entry in each.entries()], before)
            self._dispatcher.touch(log)
        else:
            log.note_appended(len(messages), arrived[-1].numbers[-1])

    def _publish(self, placed: Sequence[RoutedBatch]) -> None:
        """Give messages to those who listen to the topics on their way."""
        for sender, of_sender in groupby(placed, key=attrgetter("sender")):
            batches = [TopicBatch(each.messages, copy, each.places) for each in of_sender for copy in each.route.topics]
            there = [each for each in batches if not self._temporaries.is_gone(each.copy.destination)]
            if sender is not None and sender.bridge:
                there = [self._new_of(each, sender) for each in there]
            if published := [each for each in there if each.messages]:
                self._topic_dispatcher.publish(published, sender)

    def _new_of(self, batch: TopicBatch, sender: Client) -> TopicBatch:
        """Return the messages of a bridge that came by no other bridge before."""
        topic = batch.copy.destination
        is_new = [not self._bridges.is_repeated(message, topic, sender) for message in batch.messages]
        places = list(compress(batch.places, is_new))
        return TopicBatch(list(compress(batch.messages, is_new)), batch.copy, places)

    def count_arrivals(self, log: MessageLog, messages: Sequence[Message], sizes: BodySizes) -> None:
        """Messages came to a log, with bodies of these sizes: count them, tell those who listen."""
        self._count(log, sizes)
        if self._advisories.watching:
            self._advisories.delivered(log.destination, messages, heard=bool(log.consumers))

    def _count(self, log: MessageLog, sizes: BodySizes) -> None:
        """Each node counts what it stored, see stats_aggregation.py."""
        log.counts.count_arrivals(sizes)
        self._counters.mark_changed(log.counts)
