"""Writes MESSAGE frames for a client's version, destination names and subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat

from brokerapp.engine.clients.client import Client
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.entries.topic_batch import SharedEntries
from brokerapp.model.broker_path import BOUND_QUEUES_HEADER, PATH_HEADER, format_path
from brokerapp.model.destination import Destination
from brokerapp.model.jms.form import has_jms_form
from brokerapp.model.jms.transformations import as_wanted
from brokerapp.model.message import Message
from brokerapp.stomp.jms_messages import counted, stomp_view
from brokerapp.stomp.naming import replace_reply_to
from brokerapp.stomp.session import StompSession


class MessageFrames:
    """Writes the MESSAGE frames of one client."""

    def __init__(self, session: StompSession, client: Client) -> None:
        self._session, self._client = session, client

    def write(
        self, out: list[bytes], subscription: Subscription, entries: Sequence[LogEntry], ack_ids: Sequence[str]
    ) -> int:
        """Add the frames, in pieces, to what goes out; how many bytes of bodies that were."""
        session = self._session
        named = session.server_frames.version == "1.2"
        as_stored = named and subscription.transformation is None and not self._client.temporary_names
        if as_stored and session.bridge is None and isinstance(entries, SharedEntries):
            return self._write_shared(out, subscription, entries, ack_ids)
        shown_acks = named and bool(ack_ids)  # they hold no line ends: in 1.2 the dispatcher makes them of numbers
        ids: Iterable[bytes] = "\n".join(ack_ids).encode().split(b"\n") if shown_acks else repeat(b"", len(entries))
        before_head = b"\n" if shown_acks else b""
        way, begin, size = ("", "", ""), b"", 0
        for entry, ack_id in zip(entries, ids, strict=True):
            message = entry.message
            if not as_stored or has_jms_form(message):
                message = self._transform(subscription, message)
            if (entry.log, entry.shown_destination, entry.original_destination) != way:
                way = entry.log, entry.shown_destination, entry.original_destination
                begin = self._first_lines(subscription, entry) + (b"ack:" if shown_acks else b"")
            out += (begin, ack_id, before_head)
            if entry.redelivery_count:
                out.append(b"redelivered:true\nJMSXDeliveryCount:%d\n" % (entry.redelivery_count + 1))
            if session.bridge is not None:
                if message.path:
                    out.append(session.server_frames.header(PATH_HEADER, format_path(message.path)))
                if message.held:
                    out.append(session.server_frames.header(BOUND_QUEUES_HEADER, format_path(message.held)))
            if entry.first_of_group and not has_jms_form(entry.message):
                out.append(b"JMSXGroupFirstForConsumer:true\n")
            out += (message.head, b"\n", message.body, b"\0\n")
            size += len(message.body)
        return size

    def _write_shared(
        self, out: list[bytes], subscription: Subscription, entries: SharedEntries, ack_ids: Sequence[str]
    ) -> int:
        """Add the frames of entries that others get, too: what differs is how they begin."""
        if entries.frame_ends is None:
            entries.frame_ends = [self._frame_end(entry) for entry in entries]
        ends, known = entries.frame_ends, subscription.frame_prefixes
        prefixes = {
            entry.shown_destination: known.get(entry.shown_destination) or self._prefix(subscription, entry)
            for entry in entries.one_of_each
        }
        if ack_ids:
            acked = zip(entries.shown, ack_ids, ends, strict=True)
            out += [b"%back:%b\n%b" % (prefixes[shown], ack_id.encode(), end) for shown, ack_id, end in acked]
        elif len(prefixes) == 1:
            [prefix] = prefixes.values()
            out.append(prefix + prefix.join(ends))
        else:
            texts = zip(entries.shown, ends, strict=True)
            out += [text for shown, end in texts for text in (prefixes[shown], end)]
        return sum([entry.message.size for entry in entries])

    def _frame_end(self, entry: LogEntry) -> bytes:
        """Return the end of a frame that is the same for all subscribers of a topic in this version."""
        message = stomp_view(entry.message, None) if has_jms_form(entry.message) else entry.message
        head = message.head
        if entry.original_destination:
            head = self._session.server_frames.header("original-destination", entry.original_destination) + head
        return b"%b\n%b\0\n" % (head, message.body)

    def _transform(self, subscription: Subscription, message: Message) -> Message:
        if has_jms_form(message):
            wanted = subscription.transformation
            message = stomp_view(message, wanted) if self._session.bridge is None else counted(message)
        elif subscription.transformation is not None:
            message = as_wanted(message, subscription.transformation)
        head = message.head
        if self._client.temporary_names:
            head = replace_reply_to(head, self._client.temporary_names)
        head = self._session.server_frames.translate_head(head)
        return message if head is message.head else replace(message, head=head)

    def _first_lines(self, subscription: Subscription, entry: LogEntry) -> bytes:
        """Return the lines that MESSAGE frames for a subscription have in common where destinations are the same."""
        key = entry.shown_destination or entry.log
        lines = subscription.frame_prefixes.get(key) or self._prefix(subscription, entry)
        if entry.original_destination:
            lines += self._session.server_frames.header("original-destination", entry.original_destination)
        return lines

    def _prefix(self, subscription: Subscription, entry: LogEntry) -> bytes:
        """Return the first lines of MESSAGE frames for this subscription and this entry's destination."""
        destination = entry.shown_destination or Destination.parse(entry.log).stomp
        destination = self._client.temporary_names.get(destination, destination)
        prefix = self._session.server_frames.message_prefix(destination, subscription.id)
        subscription.frame_prefixes[entry.shown_destination or entry.log] = prefix
        return prefix
