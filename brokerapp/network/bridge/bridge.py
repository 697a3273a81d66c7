"""Forward messages in one direction: from the source to the target, for the target's consumers.

A message is acknowledged at the source when the target has confirmed it, so that it is never in neither; until then it
may be in both, and is passed on again when a link breaks.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from brokerapp.engine.policy.broker_headers import CAUSE
from brokerapp.model.broker_path import UNLIMITED
from brokerapp.model.destination import Destination
from brokerapp.network.bridge.advisory_listener import AdvisoryListener
from brokerapp.network.bridge.demand import Demand, DemandChange, DemandSubscription
from brokerapp.network.bridge.forwarder import ForwardedMessage, Forwarder
from brokerapp.network.bridge.refused_messages import MessageInTransit, RefusedMessages
from brokerapp.network.bridge.source_consumers import SourceConsumers
from brokerapp.network.links.broker_link import BridgedMessage, BrokerLink
from brokerapp.network.links.remote_consumers import RemoteConsumer
from brokerapp.network.options.destination_filter import is_listed, queues_held_for
from brokerapp.network.options.options import ConnectorOptions

logger = logging.getLogger(__name__)


#: How it begins that the target does not take something.
_REFUSED = "temporarily rejected by the other broker"


def id_prefix_of(bridge: str) -> str:
    """Return the prefix of a bridge's subscriptions and receipts, on links that it shares with another bridge."""
    return f"{bridge}:"


@dataclass(slots=True)
class BridgeCounters:
    """Counters of the bridges of one direction, over all their connections."""

    forwarded: int = 0
    forwarded_bytes: int = 0  #: of bodies
    dropped_by_ttl: int = 0  #: messages of durable subscriptions that had crossed as many bridges as they may
    refused: int = 0  #: messages that the target did not take


def _describe_message(id: str) -> str:
    """Describe a message for users."""
    destination, _, message = id.rpartition(" ")
    return f"message {message} of {destination}"


def _describe_refusal(aside: MessageInTransit) -> str:
    return f"{_REFUSED} ({_describe_message(aside.message.id)}): {aside.refusal}"


class Bridge:
    """Moves messages from `source` to `target`; `here` and `there` are the names of the brokers at them."""

    def __init__(
        self,
        name: str,
        source: BrokerLink,
        target: BrokerLink,
        here: str,
        there: str,
        terms: ConnectorOptions,
        outbox: Forwarder,
        numbers: BridgeCounters,
    ) -> None:
        self.name, self.terms, self.here, self.there = name, terms, here, there
        self._source, self._target, self._outbox = source, target, outbox
        outbox.on_done = self._on_forwarded
        self.demand = Demand(terms, here, there)
        self.counters = numbers
        self._prefix = id_prefix_of(name)
        self._sequence = itertools.count()
        self._unconfirmed: dict[str, MessageInTransit] = {}  # by ack id: what the target has not answered yet
        self._refused_messages = RefusedMessages(self._forward, source.call_later, terms.prefetch_size)
        self._advisory_listener = AdvisoryListener(
            name, target, self._prefix, terms, self.demand, self._apply_demand_change, self._on_demand_complete
        )
        self.consumers = SourceConsumers(source, here, there, terms, self._prefix, self._on_message)
        #: Told of what the target refused: the message and the reason, where that is wished for; a sentence, always.
        self.on_message_refused: Callable[[BridgedMessage, str], None] = lambda _message, _why: None
        self.on_complaint: Callable[[str], None] = lambda _sentence: None

    def start(self) -> None:
        """Consume what is wanted anyway, and hear of who consumes at the target."""
        self._apply_demand_change(self.demand.start_static())
        if not self.terms.static_bridge:
            self._advisory_listener.start()

    def _on_demand_complete(self) -> None:
        """All consumers and durable subscriptions there are known now: of those that were there before some may be
        gone, and others are not bridged any more. What is kept for them is not needed.
        """
        self.consumers.keep_durables(self.demand.durable_topics)

    def synchronize(self, durable: Iterable[RemoteConsumer]) -> None:
        """Keep messages for these durable subscriptions, which are all there are at the target, and for no others."""
        for each in durable:
            self._apply_demand_change(self.demand.on_consumer_started(each))
        self._on_demand_complete()

    def remove(self) -> None:
        """For good: nothing is to be kept for it any more."""
        self.consumers.remove_all(list(self.demand.subscriptions.values()))

    def _apply_demand_change(self, change: DemandChange) -> None:
        """Start new subscriptions before ending those that they replace."""
        for each in change.begin:
            self.consumers.begin(each)
        for each in change.end:
            self.consumers.end(each)
            self._refused_messages.end(self._prefix + each.id)
        self._unsubscribe_idle()
        if self._source.is_sluice:
            for each in change.other:
                self.consumers.begin(each)

    def _unsubscribe_idle(self) -> None:
        self.consumers.unsubscribe_idle(lambda: {each.subscription for each in self._unconfirmed.values()})

    # -- messages

    def _on_message(self, message: BridgedMessage) -> None:
        subscription, ack = message.subscription, message.ack
        if self.consumers.is_ending(subscription):
            return  # it goes back when that is unsubscribed
        if self.consumers.is_durable(subscription) and not self._may_cross(message.path):
            self.counters.dropped_by_ttl += self.there not in message.path
            self._source.ack([ack])
            return
        if self._is_excluded(message):
            self._source.ack([ack])
            return
        goes_to, path = self._target_destination(message), (*message.path, self.here)
        held = queues_held_for(self.terms, message.bound_queues, message.path)
        outgoing = self._target.prepare(message, goes_to, path, held, compressed=self.terms.use_compression)
        sure = message.is_persistent or self.terms.always_sync_send
        passing = MessageInTransit(
            next(self._sequence), subscription, message.destination,
            ForwardedMessage(ack, f"{message.destination} {message.id}", outgoing, sure), len(message.body),
            original=message if self.terms.advisory_for_failed_forward else None,
            is_confirmed_by_target=sure or self._outbox.confirms_all,
        )  # fmt: skip
        if too_long := self._target.excess_of(outgoing, message, self._prefix + ack if sure else None):
            self._reject_too_long(passing, too_long, is_dead=CAUSE in message.headers)
        elif not self._refused_messages.handle(passing):
            self._forward(passing)

    def _forward(self, passing: MessageInTransit) -> None:
        self._unconfirmed[passing.ack] = passing
        self._outbox.send(passing.message)

    def _reject_too_long(self, passing: MessageInTransit, why: str, *, is_dead: bool) -> None:
        """A message can never cross: it becomes a dead letter where it is.

        One that is a dead letter already has nowhere to go there, it would be dropped: it is set aside.
        """
        self._record_refusal(passing, why)
        wanted = self._subscription_of(passing.subscription)
        if wanted is not None and wanted.destination.is_queue and is_dead:
            self._hold_or_suspend(wanted, passing, holds=self._refused_messages.hold_permanently(passing))
        else:
            self._reject(passing.ack, passing.message.id, why)

    def _record_refusal(self, passing: MessageInTransit, why: str) -> None:
        was_refused, passing.refusal = bool(passing.refusal), why
        if was_refused:
            return  # all that it was tried again tells nothing new
        self.counters.refused += 1
        if passing.original is not None:
            self.on_message_refused(passing.original, why)

    def _reject(self, ack: str, id: str, why: str) -> None:
        """A message has nowhere to go at the target."""
        self._complain(f"{self.there} permanently rejected {_describe_message(id)}, which is dead-lettered here: {why}")
        self._source.reject(ack, f"permanently rejected by {self.there}: {why}")

    def _complain(self, said: str) -> None:
        logger.warning("network connector %s: %s", self.terms.name, said)
        self.on_complaint(said)

    def _subscription_of(self, subscription: str) -> DemandSubscription | None:
        """For whom a subscription is; None: for nobody any more."""
        return self.demand.subscriptions.get(subscription.removeprefix(self._prefix))

    def _target_destination(self, message: BridgedMessage) -> str:
        """Where a message belongs at the target: a queue of an address is to be called by its full name there."""
        wanted = self._subscription_of(message.subscription)
        if wanted is not None and wanted.destination.address:
            return wanted.destination.stomp
        return message.destination

    def _may_cross(self, path: tuple[str, ...]) -> bool:
        """A durable subscription holds what may not cross, too, and it must not pile up there.

        Queues and topics give to a bridge only what may cross (bridge_rate_filter.py).
        """
        ttl = self.terms.message_ttl
        return self.there not in path and (ttl == UNLIMITED or len(path) < ttl)

    def _is_excluded(self, message: BridgedMessage) -> bool:
        """Whether a durable subscription by a pattern holds what is excluded: others leave that where it is."""
        wanted = self._subscription_of(message.subscription)
        if wanted is None or wanted.static or not wanted.durable:
            return False
        return is_listed(Destination.parse(message.destination), self.terms.excluded)

    def _on_forwarded(self, acks: Sequence[str], receipt: str | None) -> None:
        """The target has what the source knows by these; the receipt is wanted when the source has forgotten it."""
        for each in acks:
            self.counters.forwarded += 1
            if (sent := self._unconfirmed.pop(each, None)) is not None:
                self.counters.forwarded_bytes += sent.size
                if (wanted := self._subscription_of(sent.subscription)) is not None:
                    wanted.forwarded += 1
                self._refused_messages.on_accepted(sent)
        self._source.ack(acks, receipt)
        self._unsubscribe_idle()

    def on_receipt(self, receipt: str) -> bool:
        """Handle a receipt; return whether this bridge requested it."""
        if not receipt.startswith(self._prefix):
            return False
        name = receipt.removeprefix(self._prefix)
        if self.consumers.is_subscription_receipt(name):
            self.consumers.on_subscribed(name)
        else:
            self._outbox.on_receipt(name)
        return True

    def on_refused(self, receipt: str, reason: str) -> bool:
        """A broker does not do what this receipt is of; whether it was this bridge that asked for it.

        A subscription that the source refuses is tried again. What was for a temporary destination of the target that
        is gone has nowhere to go any more. Any other message is tried again alone, and then set aside where it is
        refused alone, too; with too many of them all of its destination is, as nobody knows for whose sake they are
        refused, or for how long. What is aside stays at the source, while all else crosses. Where it was more than one
        message that was refused the bridge ends, and the next one tries again.
        """
        if not receipt.startswith(self._prefix):
            return False
        name = receipt.removeprefix(self._prefix)
        if self.consumers.is_subscription_receipt(name):
            self._on_subscription_refused(name, reason)
            return True
        ack = self._outbox.on_refused(name)
        if ack is None:
            self._target.close(f"{self.there} rejects messages: {reason}")
            return True
        if (sent := self._unconfirmed.pop(ack, None)) is not None:
            self._on_message_refused(sent, reason)
        self._unsubscribe_idle()
        return True

    def _on_message_refused(self, sent: MessageInTransit, reason: str) -> None:
        """The target refuses a message."""
        self._record_refusal(sent, reason)
        wanted = self._subscription_of(sent.subscription)
        if wanted is None or self.consumers.is_ending(sent.subscription):
            return  # it goes back when that is unsubscribed
        if wanted.destination.is_temporary:
            self._reject(sent.ack, sent.message.id, reason)
        else:
            self._hold_or_suspend(
                wanted, sent, holds=self._refused_messages.on_refused(sent, self._unconfirmed.values())
            )

    def _hold_or_suspend(self, wanted: DemandSubscription, refused: MessageInTransit, *, holds: bool) -> None:
        """A message waits here, or more than may: then all of its destination does."""
        id, why = refused.message.id, refused.refusal
        if not holds:
            self._refused_messages.end(refused.subscription)
            self._suspend_subscription(wanted, id, why)
            self._unsubscribe_idle()
        elif refused.attempts == 1:
            self._complain(f"{self.there} temporarily rejected {_describe_message(id)}, which stays here: {why}")

    def _on_subscription_refused(self, receipt: str, reason: str) -> None:
        """The source refuses a subscription."""
        wanted = self.consumers.on_refused(
            receipt, self.demand.subscriptions, f"temporarily rejected by {self.here}: {reason}"
        )
        if wanted is not None:
            self._complain(f"{self.here} temporarily refuses a subscription to {wanted.destination}: {reason}")

    def _suspend_subscription(self, wanted: DemandSubscription, id: str, reason: str) -> None:
        if wanted.id not in self.consumers.suspended:
            message = _describe_message(id)
            self._complain(f"{self.there} rejected {message}: {wanted.destination} is not forwarded for now: {reason}")
        self.consumers.suspend(wanted, f"{_REFUSED} ({_describe_message(id)}): {reason}")

    def held_back(self, wanted: DemandSubscription) -> str:
        """Describe why messages of a subscription are not forwarded for now; "" if they are."""
        if said := self.consumers.suspended.get(wanted.id):
            return said
        held = list(self._refused_messages.held(self._prefix + wanted.id))
        if not held:
            return ""
        return _describe_refusal(held[0]) + (f", and {len(held) - 1} more" if len(held) > 1 else "")

    def block_reason(self, wanted: DemandSubscription, destination: Destination) -> str:
        """Why nothing of a destination that is wanted crosses for now; ""."""
        of_all = self._refused_messages.first_refused(self._prefix + wanted.id, destination.stomp)
        return self.consumers.suspended.get(wanted.id) or (_describe_refusal(of_all) if of_all is not None else "")

    def refusal_reason(self, message_id: str) -> str:
        """Why a message does not cross that the target refuses by itself; ""."""
        return next(
            (
                _describe_refusal(each)
                for each in self._refused_messages.held()
                if each.message.id.endswith(f" {message_id}")
            ),
            "",
        )

    @property
    def unconfirmed_count(self) -> int:
        """Return how many messages were forwarded that the target has not confirmed yet."""
        return len(self._unconfirmed)

    @property
    def destinations(self) -> list[Destination]:
        """Return the destinations that the bridge consumes from at the source."""
        return [each.destination for each in self.demand.subscriptions.values()]
