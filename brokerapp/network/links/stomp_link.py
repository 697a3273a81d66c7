"""Speak STOMP with a broker at an end of a bridge: its own, another Sluice, or an ActiveMQ at its STOMP connector."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from brokerapp.model.broker_path import (
    BOUND_QUEUES_HEADER,
    CONSUMERS_HEADER,
    EXCEPT_HEADER,
    KEEP_HEADER,
    REASON_HEADER,
    SUPPRESS_HEADER,
    Path,
    format_path,
    parse_path,
)
from brokerapp.model.jms.transformations import ADVISORY_JSON
from brokerapp.network.links.bridge_link import BridgeLink
from brokerapp.network.links.broker_link import (
    BridgedMessage,
    BridgeLogin,
    BridgeSubscription,
    LinkEvents,
    OutgoingMessage,
)
from brokerapp.network.links.remote_consumers import ConsumerEvent, ConsumerStarted, OriginsChanged, read_consumer_event
from brokerapp.stomp.compression import compress
from brokerapp.stomp.frames import Frame
from brokerapp.stomp.jms_messages import plain_form
from brokerapp.stomp.session import BRIDGE_HEADER, COPIES_HEADER, DUPLEX_HEADER, WAY_HEADER

logger = logging.getLogger(__name__)

#: Names of durable subscriptions that fit into one frame's header; with more of them none is taken away.
MAX_DURABLE_NAMES = 1_000
#: Where a Sluice tells that bridges there are for others than when they began, instead of this.
_CONSUMERS, _BRIDGE_CONSUMERS = "ActiveMQ.Advisory.Consumer.", "ActiveMQ.Advisory.BridgeConsumer."
#: Headers of a MESSAGE that are about its delivery, not of the message.
#: That somebody may have got it already stays true wherever it goes.
_DELIVERY_HEADERS = frozenset({"subscription", "ack", "JMSXDeliveryCount", "destination"})


def login_headers(login: BridgeLogin) -> dict[str, str]:
    """Return the headers of CONNECT by which a bridge says who it is."""
    headers = {BRIDGE_HEADER: login.broker, "client-id": login.client_id, WAY_HEADER: login.way}
    if login.sends_copies:
        headers[COPIES_HEADER] = "true"
    if login.duplex:
        headers[DUPLEX_HEADER] = "true"
    if login.user is not None:
        headers["login"], headers["passcode"] = login.user
    return headers


class StompBrokerLink:
    """Translates what a bridge asks into frames of a connection that has logged in."""

    protocol = "STOMP"

    def __init__(self, connection: BridgeLink) -> None:
        self.connection = connection
        self._dialect, self._limits = connection.dialect, connection.frame_limits

    @property
    def remote(self) -> str:
        """Return the name of the broker."""
        return self.connection.remote

    @property
    def lost(self) -> asyncio.Future[str]:
        """Return what is done when the connection is over."""
        return self.connection.lost

    @property
    def is_sluice(self) -> bool:
        """Return whether the broker is a Sluice."""
        return self._dialect.is_sluice

    @property
    def recognizes_repeated(self) -> bool:
        """Return whether it knows by its id what it is sent again: an ActiveMQ gives ids of its own over STOMP."""
        return self._dialect.is_sluice

    def listen(self, events: LinkEvents) -> None:
        """Have these told from now on."""
        self.connection.on_receipt, self.connection.on_writable_changed = events.on_receipt, events.on_writable_changed
        self.connection.on_error = lambda error: events.on_refused(
            error.headers.get("receipt-id", ""), error.headers.get("message", "ERROR without a message")
        )

    # -- as a source

    def subscribe(self, wanted: BridgeSubscription, told: Callable[[BridgedMessage], None], receipt: str) -> None:
        """Consume, or say for whom that is now."""
        headers = {
            "ack": "client-individual",
            "receipt": receipt,
            "activemq.prefetchSize": str(wanted.prefetch),
            "activemq.priority": str(wanted.priority),
            CONSUMERS_HEADER: format_path(sorted(wanted.consumers)),
            SUPPRESS_HEADER: str(wanted.suppresses_duplicates).lower(),
            **self._dialect.subscribe_headers(wanted.to, wanted.message_ttl, wanted.path, wanted.selector),
        }
        if wanted.excluded:
            headers[EXCEPT_HEADER] = format_path(wanted.excluded)
        if wanted.durable_name is not None:
            headers["activemq.subscriptionName"] = wanted.durable_name
        self.connection.subscribe(
            wanted.id, wanted.destination.stomp, lambda frame: told(self._bridged(frame)), headers
        )

    def _bridged(self, frame: Frame) -> BridgedMessage:
        headers, dialect = frame.headers, self._dialect
        own = dialect.message_headers(headers)
        return BridgedMessage(
            headers["subscription"], headers["ack"], headers["destination"], headers["message-id"],
            {name: value for name, value in own.items() if name not in _DELIVERY_HEADERS}, frame.body,
            dialect.path_of(headers), parse_path(headers.get(BOUND_QUEUES_HEADER, "")),
        )  # fmt: skip

    def unsubscribe(self, id: str) -> None:
        """End a subscription."""
        self.connection.unsubscribe(id)

    def delete_durable(self, name: str) -> None:
        """Delete a durable subscription that nobody consumes."""
        self.connection.send("UNSUBSCRIBE", {"id": "-", "activemq.subscriptionName": name})

    def keep_durables(self, names: Collection[str]) -> None:
        """Delete the durable subscriptions of this bridge but those of these names, at a Sluice."""
        if self.is_sluice and len(names) <= MAX_DURABLE_NAMES:
            self.connection.send("UNSUBSCRIBE", {"id": "-", KEEP_HEADER: format_path(names)})

    def ack(self, ids: Sequence[str], receipt: str | None = None) -> None:
        """Acknowledge messages."""
        self.connection.ack(ids, receipt)

    def reject(self, id: str, why: str) -> None:
        """Give up a message."""
        self.connection.send("NACK", {"id": id, REASON_HEADER: why})

    # -- as a target

    def follow_consumers(self, id: str, topics: Sequence[str], told: Callable[[ConsumerEvent], None]) -> None:
        """Hear of consumers by advisories in JSON; a Sluice tells of changes of bridges, too."""
        if self.is_sluice:
            about = [each.removeprefix(_CONSUMERS) for each in topics if each.startswith(_CONSUMERS)]
            topics = [*topics, *(_BRIDGE_CONSUMERS + each for each in about)]

        def on_advisory(frame: Frame) -> None:
            try:
                event = read_consumer_event(frame.body)
            except ValueError as error:
                logger.warning("%s: an advisory from %s cannot be read: %s", self.connection.name, self.remote, error)
                return
            if isinstance(event, ConsumerStarted | OriginsChanged):
                event = type(event)(self._dialect.consumer_of(event.consumer))
            if event is not None:
                told(event)

        headers = {"transformation": ADVISORY_JSON, "ack": "auto"}
        self.connection.subscribe(id, ",".join(f"/topic/{each}" for each in topics), on_advisory, headers)

    def prepare(
        self, message: BridgedMessage, destination: str, path: Path, bound_queues: Sequence[str], *, compressed: bool
    ) -> OutgoingMessage:
        """Return the headers and the body of a SEND."""
        headers, body = {"destination": destination, **message.headers}, message.body
        if bound_queues:
            headers[BOUND_QUEUES_HEADER] = format_path(bound_queues)
        if not self.is_sluice:
            headers, body = plain_form(headers, body)
        headers = self._dialect.send_headers(headers, path)
        if compressed and self.is_sluice:
            smaller, body = compress(headers, body)
            headers = dict(smaller)
        return OutgoingMessage(headers, body)

    def excess_of(self, outgoing: OutgoingMessage, message: BridgedMessage, receipt: str | None) -> str:
        """Return why a SEND is too long for the broker."""
        return self._limits.exceeded_by(_with_receipt(outgoing, receipt), outgoing.body, len(message.body))

    def send(self, outgoing: OutgoingMessage, receipt: str | None) -> None:
        """Write a SEND."""
        self.connection.send("SEND", _with_receipt(outgoing, receipt), outgoing.body)

    # -- the connection

    def pause_reading(self, held: bool) -> None:
        """Read nothing more for now, or do."""
        self.connection.pause_reading(held)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Do this then, if the connection lasts so long."""
        self.connection.call_later(seconds, call)

    def close(self, why: str = "closed") -> None:
        """Flush and close the connection, with a reason."""
        self.connection.close(why)


def _with_receipt(outgoing: OutgoingMessage, receipt: str | None) -> dict[str, str]:
    return outgoing.headers if receipt is None else {**outgoing.headers, "receipt": receipt}
