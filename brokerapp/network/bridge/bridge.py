"""Bridge: one direction of a network connection: what the target's consumers want goes from the source to the target.

A message is acknowledged at the source when the target has confirmed it, so that it is never in neither; until then it
may be in both, and is passed on again when a link breaks.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from brokerapp.engine.policy.broker_headers import CAUSE
from brokerapp.model.broker_path import HELD_HEADER, REASON_HEADER, UNLIMITED, read_path, write_path
from brokerapp.model.destination import Destination
from brokerapp.network.bridge.advisory_listener import Advised
from brokerapp.network.bridge.demand import Change, Demand, Wanted
from brokerapp.network.bridge.forwarder import Outbox, PassedOn
from brokerapp.network.bridge.refused_messages import Passing, Trials
from brokerapp.network.bridge.source_consumers import Intake
from brokerapp.network.links.bridge_link import Link
from brokerapp.network.options.destination_filter import held_for, listed
from brokerapp.network.options.options import Terms
from brokerapp.stomp.compression import packed
from brokerapp.stomp.frames import Frame

logger = logging.getLogger(__name__)


#: How it begins that the target does not take something.
_REFUSED = "the other broker refuses it, for now"
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


def _named(id: str) -> str:
    """A message, to people."""
    destination, _, message = id.rpartition(" ")
    return f"message {message} of {destination}"


def _of_one(aside: Passing) -> str:
    return f"{_REFUSED} ({_named(aside.message.id)}): {aside.refused}"


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
        self._given = itertools.count()
        self._under_way: dict[str, Passing] = {}  # by ack id: what the target has not answered yet
        self._trials = Trials(self._pass_on, source.later, terms.prefetch_size)
        self._advised = Advised(name, target, self._prefix, terms, self.demand, self._follow, self._all_known)
        self.intake = Intake(source, here, there, terms, self._prefix, self._forward)
        #: Told of what the target refused: the message and the reason, where that is wished for; a sentence, always.
        self.told_refused: Callable[[Frame, str], None] = lambda _message, _why: None
        self.complained: Callable[[str], None] = lambda _sentence: None

    def start(self) -> None:
        """Consume what is wanted anyway, and hear of who consumes at the target."""
        self._follow(self.demand.static())
        if not self.terms.static_bridge:
            self._advised.start()

    def _all_known(self) -> None:
        """All consumers and durable subscriptions there are known now: of those that were there before some may be
        gone, and others are not bridged any more. What is kept for them is not needed.
        """
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
            self._trials.end(self._prefix + each.id)
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
        if self._is_excluded(headers):
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
        passing = Passing(
            next(self._given), headers["subscription"], headers["destination"],
            PassedOn(ack, id, passed_on, body, sure), len(frame.body),
            told=frame if self.terms.advisory_for_failed_forward else None,
            answered=sure or self._outbox.answers_all,
        )  # fmt: skip
        if too_long := self._target.limits.exceeded(sent, body, len(frame.body)):
            self._too_long(passing, too_long, is_dead=CAUSE in headers)
        elif not self._trials.takes(passing):
            self._pass_on(passing)

    def _pass_on(self, passing: Passing) -> None:
        self._under_way[passing.ack] = passing
        self._outbox.send(passing.message)

    def _too_long(self, passing: Passing, why: str, *, is_dead: bool) -> None:
        """A message can never cross: it becomes a dead letter where it is.

        One that is a dead letter already has nowhere to go there, it would be dropped: it is set aside.
        """
        self._note_refused(passing, why)
        wanted = self._wanted(passing.subscription)
        if wanted is not None and wanted.destination.is_queue and is_dead:
            self._heed(wanted, passing, holds=self._trials.keep(passing))
        else:
            self._reject(passing.ack, passing.message.id, why)

    def _note_refused(self, passing: Passing, why: str) -> None:
        was_refused, passing.refused = bool(passing.refused), why
        if was_refused:
            return  # all that it was tried again tells nothing new
        self.numbers.refused += 1
        if passing.told is not None:
            self.told_refused(passing.told, why)

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

    def _is_excluded(self, headers: Mapping[str, str]) -> bool:
        """Whether a durable subscription by a pattern holds what is excluded: others leave that where it is."""
        wanted = self._wanted(headers["subscription"])
        if wanted is None or wanted.static or not wanted.durable:
            return False
        return listed(Destination.parse(headers["destination"]), self.terms.excluded)

    def _done(self, acks: Sequence[str], receipt: str | None) -> None:
        """The target has what the source knows by these; the receipt is wanted when the source has forgotten it."""
        for each in acks:
            self.numbers.forwarded += 1
            if (sent := self._under_way.pop(each, None)) is not None:
                self.numbers.forwarded_bytes += sent.size
                if (wanted := self._wanted(sent.subscription)) is not None:
                    wanted.forwarded += 1
                self._trials.taken(sent)
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
        is gone has nowhere to go any more. Any other message is tried again alone, and then set aside where it is
        refused alone, too; with too many of them all of its destination is, as nobody knows for whose sake they are
        refused, or for how long. What is aside stays at the source, while all else crosses. Where it was more than one
        message that was refused the bridge ends, and the next one tries again.
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
        if (sent := self._under_way.pop(ack, None)) is not None:
            self._not_taken(sent, reason)
        self._unsubscribe_idle()
        return True

    def _not_taken(self, sent: Passing, reason: str) -> None:
        """The target refuses a message."""
        self._note_refused(sent, reason)
        wanted = self._wanted(sent.subscription)
        if wanted is None or self.intake.is_ending(sent.subscription):
            return  # it goes back when that is unsubscribed
        if wanted.destination.is_temporary:
            self._reject(sent.ack, sent.message.id, reason)
        else:
            self._heed(wanted, sent, holds=self._trials.refused(sent, self._under_way.values()))

    def _heed(self, wanted: Wanted, refused: Passing, *, holds: bool) -> None:
        """A message waits here, or more than may: then all of its destination does."""
        id, why = refused.message.id, refused.refused
        if not holds:
            self._trials.end(refused.subscription)
            self._set_aside(wanted, id, why)
            self._unsubscribe_idle()
        elif refused.tries == 1:
            self._complain(f"{self.there} does not take {_named(id)}, which waits here, for now: {why}")

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
        self.intake.set_aside(wanted, f"{_REFUSED} ({_named(id)}): {reason}")

    def kept_back(self, wanted: Wanted) -> str:
        """What of all that is wanted does not cross for now, and why; ""."""
        if said := self.intake.aside.get(wanted.id):
            return said
        held = list(self._trials.aside(self._prefix + wanted.id))
        if not held:
            return ""
        return _of_one(held[0]) + (f", and {len(held) - 1} more" if len(held) > 1 else "")

    def stays(self, wanted: Wanted, destination: Destination) -> str:
        """Why nothing of a destination that is wanted crosses for now; ""."""
        of_all = self._trials.refused_of(self._prefix + wanted.id, destination.stomp)
        return self.intake.aside.get(wanted.id) or (_of_one(of_all) if of_all is not None else "")

    def refusal(self, message_id: str) -> str:
        """Why a message does not cross that the target refuses by itself; ""."""
        return next((_of_one(each) for each in self._trials.aside() if each.message.id.endswith(f" {message_id}")), "")

    @property
    def under_way(self) -> int:
        """Messages passed on that the target has not confirmed yet."""
        return len(self._under_way)

    @property
    def destinations(self) -> list[Destination]:
        """What it consumes at the source."""
        return [each.destination for each in self.demand.wanted.values()]
