"""Bridge: one direction of a network connection: what the target's consumers want goes from the source to the target.

A message is acknowledged at the source when the target has confirmed it, so that it is never in neither; until then it
may be in both, and is passed on again when a link breaks.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brokerapp.destination import Destination, Kind
from brokerapp.engine.brokers_word import CAUSE
from brokerapp.network.demand import Change, Demand, Wanted
from brokerapp.network.intake import Intake
from brokerapp.network.link import Link
from brokerapp.network.outbox import Outbox, PassedOn
from brokerapp.network.permitted import held_for
from brokerapp.network.terms import Terms
from brokerapp.network_path import HELD_HEADER, REASON_HEADER, UNLIMITED, read_path, write_path
from brokerapp.stomp.compression import packed
from brokerapp.stomp.frames import Frame
from brokerapp.transformations import ADVISORY_JSON

logger = logging.getLogger(__name__)


#: Seconds that a consumer has to be back after a broken link, where any is served as a durable one (forceDurable).
FORCED_SECONDS = 60.0
#: The subscription by which a bridge hears of consumers.
DEMAND = "demand"
_CONSUMERS, _TEMPORARIES = "ActiveMQ.Advisory.Consumer.", ("ActiveMQ.Advisory.TempQueue", "ActiveMQ.Advisory.TempTopic")
_VIRTUAL_CONSUMERS = "ActiveMQ.Advisory.VirtualDestination.Consumer."
#: Where a Sluice tells that bridges there are for others than when they began.
_BRIDGE_CONSUMERS = "ActiveMQ.Advisory.BridgeConsumer."
_WORDS = {Kind.QUEUE: "Queue", Kind.TOPIC: "Topic"}
#: Headers of a MESSAGE that are about its delivery, not of the message.
#: That somebody may have got it already stays true wherever it goes.
_OF_DELIVERY = frozenset({"subscription", "ack", "JMSXDeliveryCount", "destination"})


def prefix_of(bridge: str) -> str:
    """How all begins that is this bridge's on links it shares with another: subscriptions, receipts."""
    return f"{bridge}:"


@dataclass(slots=True)
class BridgeNumbers:
    """What the bridges of one direction did, one after the other."""

    forwarded: int = 0
    forwarded_bytes: int = 0  #: of bodies
    dropped_by_ttl: int = 0  #: messages of durable subscriptions that had crossed as many bridges as they may
    refused: int = 0  #: messages that the target did not take


@dataclass(slots=True)
class _UnderWay:
    """A message that the target has not confirmed yet."""

    called: str  #: what tells it from all others, to people too: its destination and its message-id
    subscription: str
    size: int  #: bytes of its body
    told: Frame | None  #: the message, where somebody wants to hear of it if it is refused


_NOTHING = _UnderWay("", "", 0, None)


def _named(id: str) -> str:
    """A message, to people."""
    destination, _, message = id.rpartition(" ")
    return f"message {message} of {destination}"


class Bridge:
    """Moves messages from `source` to `target`; `here` and `there` are the names of the brokers at them."""

    def __init__(
        self, name: str, source: Link, target: Link, here: str, there: str, terms: Terms, outbox: Outbox,
        numbers: BridgeNumbers,
    ) -> None:  # fmt: skip
        self.name, self.terms, self.here, self.there = name, terms, here, there
        self._source, self._target, self._outbox = source, target, outbox
        outbox.done = self._done
        self.demand = Demand(terms, here, there)
        self.numbers = numbers
        self._prefix = prefix_of(name)
        #: By ack id.
        self._under_way: dict[str, _UnderWay] = {}
        self._heard_of = 0  # advisories
        self.intake = Intake(source, here, there, terms, self._prefix, self._forward)
        #: Told of what the target refused: the message and the reason, where that is wished for; a sentence, always.
        self.told_refused: Callable[[Frame, str], None] = lambda _message, _why: None
        self.complained: Callable[[str], None] = lambda _sentence: None

    def start(self) -> None:
        """Consume what is wanted anyway, and hear of who consumes at the target."""
        self._follow(self.demand.static())
        if not self.terms.static_bridge:
            headers = {"transformation": ADVISORY_JSON, "ack": "auto"}
            self._target.subscribe(self._prefix + DEMAND, self._advisories(), self._heard, headers)

    def _advisories(self) -> str:
        """The topics that tell of the consumers this bridge cares for."""
        terms = self.terms
        if terms.destination_filter is not None:
            first, *others = terms.destination_filter.split(",")
            topics = [_CONSUMERS + first, *others]
        elif terms.dynamically_included:
            about = [f"{_WORDS[each.kind]}.{each.name}" for each in terms.dynamically_included]
            topics = [_CONSUMERS + each for each in about]
            if terms.use_virtual_dest_subs:
                topics += [_VIRTUAL_CONSUMERS + each for each in about]
        else:
            topics = [_CONSUMERS + ">"]
            if terms.use_virtual_dest_subs:
                topics.append(_VIRTUAL_CONSUMERS + ">")
        if self._target.dialect.knows_rivals:
            said = [each.removeprefix(_CONSUMERS) for each in topics if each.startswith(_CONSUMERS)]
            topics += [_BRIDGE_CONSUMERS + each for each in said]
        return ",".join(f"/topic/{each}" for each in topics)

    # -- demand

    def _heard(self, frame: Frame) -> None:
        try:
            document = json.loads(frame.body)
        except ValueError:
            logger.warning("%s: an advisory of %s is no JSON", self.name, self.there)
            return
        if "AllConsumers" in document:
            self._all_heard(document["AllConsumers"])
            return
        self._heard_of += 1
        if "ConsumerInfo" in document:
            self._follow(self.demand.started(self._target.dialect.consumer(document["ConsumerInfo"])))
        elif "BridgeConsumerInfo" in document:
            self._follow(self.demand.is_for(document["BridgeConsumerInfo"]))
        elif "RemoveInfo" in document:
            self._follow(self.demand.stopped(document["RemoveInfo"]))
        elif "RemoveSubscriptionInfo" in document:
            self._follow(self.demand.forgotten(document["RemoveSubscriptionInfo"]))

    def _all_heard(self, said: Mapping[str, Any]) -> None:
        """All consumers and durable subscriptions there are known now: of those that were there before some may be
        gone, and others are not bridged any more. What is kept for them is not needed.

        Consumers that are served as durable ones, and are none, get some time to come back.
        """
        if self._heard_of < said.get("told", 0):
            logger.warning("%s: %s told of more consumers than were heard of", self.name, self.there)
        elif self.terms.forced_durable:
            self._source.later(FORCED_SECONDS, self._forget_others)
        else:
            self._forget_others()

    def _forget_others(self) -> None:
        self.intake.keep(self.demand.durable)

    def leave(self) -> None:
        """For good: nothing is to be kept for it any more."""
        self.intake.leave(list(self.demand.wanted.values()))

    def _follow(self, change: Change) -> None:
        """What comes begins before it takes over from what goes."""
        for each in change.begin:
            self.intake.begin(each)
        for each in change.end:
            self.intake.end(each)
        self._unsubscribe_idle()
        if self._source.dialect.knows_rivals:
            for each in change.other:
                self.intake.begin(each)

    def _unsubscribe_idle(self) -> None:
        self.intake.unsubscribe_idle(lambda: {each.subscription for each in self._under_way.values()})

    # -- messages

    def _forward(self, frame: Frame) -> None:
        headers, ack = frame.headers, frame.headers["ack"]
        if self.intake.is_ending(headers["subscription"]):
            return  # it goes back when that is unsubscribed
        path = self._source.dialect.path_of(headers)
        if self.intake.is_durable(headers["subscription"]) and not self._may_cross(path):
            self.numbers.dropped_by_ttl += self.there not in path
            self._source.ack([ack])
            return
        own = self._source.dialect.received(headers)
        own = {name: value for name, value in own.items() if name not in _OF_DELIVERY}
        goes_to = self._goes_to(headers)
        if held := held_for(self.terms, read_path(headers.get(HELD_HEADER, "")), path):
            own[HELD_HEADER] = write_path(held)
        passed_on = self._target.dialect.sending({"destination": goes_to, **own}, (*path, self.here))
        body = frame.body
        if self.terms.use_compression and self._target.dialect.knows_rivals:
            passed_on, body = packed(passed_on, body)
        sure = headers.get("persistent") == "true" or self.terms.always_sync_send
        id = f"{headers['destination']} {headers['message-id']}"
        sent = {**passed_on, "receipt": self._prefix + ack} if sure else passed_on
        if too_long := self._target.limits.exceeded(sent, body, len(frame.body)):
            self._too_long(frame, id, too_long)
            return
        told = frame if self.terms.advisory_for_failed_forward else None
        self._under_way[ack] = _UnderWay(id, headers["subscription"], len(frame.body), told)
        self._outbox.send(PassedOn(ack, id, passed_on, body, sure))

    def _too_long(self, frame: Frame, id: str, why: str) -> None:
        """A message can never cross: it becomes a dead letter where it is.

        One that is a dead letter already has nowhere to go there, it would be dropped: its queue is set aside.
        """
        self.numbers.refused += 1
        if self.terms.advisory_for_failed_forward:
            self.told_refused(frame, why)
        wanted = self._wanted(frame.headers["subscription"])
        if wanted is not None and wanted.destination.is_queue and CAUSE in frame.headers:
            self._set_aside(wanted, id, why)
            self._unsubscribe_idle()
        else:
            self._reject(frame.headers["ack"], id, why)

    def _reject(self, ack: str, id: str, why: str) -> None:
        """A message has nowhere to go at the target."""
        self._complain(f"{self.there} never takes {_named(id)}, which is rejected here: {why}")
        self._source.send("NACK", {"id": ack, REASON_HEADER: f"{self.there} never takes it: {why}"})

    def _complain(self, said: str) -> None:
        logger.warning("network connector %s: %s", self.terms.name, said)
        self.complained(said)

    def _wanted(self, subscription: str) -> Wanted | None:
        """For whom a subscription is; None: for nobody any more."""
        return self.demand.wanted.get(subscription.removeprefix(self._prefix))

    def _goes_to(self, headers: Mapping[str, str]) -> str:
        """Where a message belongs at the target: a queue of an address is to be called by its full name there."""
        wanted = self._wanted(headers["subscription"])
        if wanted is not None and wanted.destination.address:
            return wanted.destination.stomp
        return headers["destination"]

    def _may_cross(self, path: tuple[str, ...]) -> bool:
        """A durable subscription holds what may not cross, too, and it must not pile up there.

        Queues and topics give to a bridge only what may cross (engine/gate.py).
        """
        ttl = self.terms.message_ttl
        return self.there not in path and (ttl == UNLIMITED or len(path) < ttl)

    def _done(self, acks: Sequence[str], receipt: str | None) -> None:
        """The target has what the source knows by these; the receipt is wanted when the source has forgotten it."""
        for each in acks:
            sent = self._under_way.pop(each, _NOTHING)
            self.numbers.forwarded += 1
            self.numbers.forwarded_bytes += sent.size
            if (wanted := self._wanted(sent.subscription)) is not None:
                wanted.forwarded += 1
        self._source.ack(acks, receipt)
        self._unsubscribe_idle()

    def confirmed(self, receipt: str) -> bool:
        """What this receipt is for was done; whether it was this bridge that asked for it."""
        if not receipt.startswith(self._prefix):
            return False
        name = receipt.removeprefix(self._prefix)
        if self.intake.is_of_subscription(name):
            self.intake.has_begun(name)
        else:
            self._outbox.confirmed(name)
        return True

    def refused(self, frame: Frame) -> bool:
        """A broker does not do what this is about; whether it was this bridge that asked for it.

        A subscription that the source refuses is tried again. What was for a temporary destination of the target that
        is gone has nowhere to go any more. For any other message its destination is set aside, as nobody knows for
        whose sake it is refused, or for how long: it stays at the source, while all others cross. Where it was more
        than one message the bridge ends, and the next one tries again.
        """
        receipt, reason = frame.headers.get("receipt-id", ""), frame.headers.get("message", "")
        if not receipt.startswith(self._prefix):
            return False
        name = receipt.removeprefix(self._prefix)
        if self.intake.is_of_subscription(name):
            self._not_given(name, reason)
            return True
        ack = self._outbox.refused(name)
        if ack is None:
            self._target.close(f"{self.there} does not take messages: {reason}")
            return True
        sent = self._under_way.pop(ack, _NOTHING)
        self.numbers.refused += 1
        if sent.told is not None:
            self.told_refused(sent.told, reason)
        wanted = self._wanted(sent.subscription)
        if wanted is not None and wanted.destination.is_temporary:
            self._reject(ack, sent.called, reason)
        elif wanted is not None:
            self._set_aside(wanted, sent.called, reason)
        self._unsubscribe_idle()
        return True

    def _not_given(self, receipt: str, reason: str) -> None:
        """The source refuses a subscription."""
        wanted = self.intake.refused(receipt, self.demand.wanted, f"{self.here} refuses it, for now: {reason}")
        if wanted is not None:
            self._complain(f"{self.here} gives nothing of {wanted.destination}, for now: {reason}")

    def _set_aside(self, wanted: Wanted, id: str, reason: str) -> None:
        if wanted.id not in self.intake.aside:
            self._complain(
                f"{self.there} does not take {_named(id)}: {wanted.destination} stays here, for now: {reason}"
            )
        self.intake.set_aside(wanted, f"the other broker refuses it, for now ({_named(id)}): {reason}")

    @property
    def under_way(self) -> int:
        """Messages passed on that the target has not confirmed yet."""
        return len(self._under_way)

    @property
    def destinations(self) -> list[Destination]:
        """What it consumes at the source."""
        return [each.destination for each in self.demand.wanted.values()]
