"""Removes named subscriptions, wherever their logs are owned.

Only the owner of the log knows whether somebody consumes it: it removes the subscription, or says why not. While a log
is handed off, its next owner is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from brokerapp.core.ports import BrokerContext
from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.errors import RequestRefused
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.nodes.delivery.subscription_takeover import SubscriptionTakeover
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.pending_confirmations import OnAnswer
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ports import OwnedDurables
from brokerapp.store import PendingWrite
from brokerapp.system import clock

#: Milliseconds until the next attempt where no node owns the log.
RETRY_MS = 50


class SubscriptionRemoval:
    """Removes a named subscription, or one that a claim replaces, unless a client consumes from it."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        requests: NodeRequests,
        durables: OwnedDurables,
        takeover: SubscriptionTakeover,
    ) -> None:
        self._commits, self._timers = context.commits, context.timers
        self._peers, self._requests, self._durables, self._takeover = peers, requests, durables, takeover

    def question_before_claim(self, wanted: SubscriptionIdentity) -> Callable[[OnAnswer], None] | None:
        """Return what other nodes must be asked before a client may have a subscription: None where nothing.

        Either whether they still consume from it, or to let go of another one. Raises what DurablesPort.claim raises.
        """
        found = self._durables.find_identity(wanted)
        sessions = self._takeover.other_consumers(found.log) if found is not None else set()
        if found is not None and sessions and "" not in sessions and (refusal := self._durables.refusal(wanted)):
            log = found.log.name
            return lambda then: self._takeover.query(log, sessions, lambda consumed: then(refusal if consumed else ""))
        former = self._durables.find_conflicting(wanted)
        return partial(self.remove, former) if former is not None else None

    def remove(self, durable: DurableSubscription, then: OnAnswer) -> None:
        """Remove a subscription with its messages, unless somebody consumes from it."""
        # after what the owner is told of our own consumers, see OutboundConsumers.attach
        self._commits.submit(PendingWrite(callback=lambda *_: self._ask_owner(durable, then)))

    def _ask_owner(self, durable: DurableSubscription, then: OnAnswer) -> None:
        log = durable.log

        def on_answer(refusal: str | RequestRefused) -> None:
            if refusal:
                then(refusal)
            elif self._durables.known(log.name) is not durable:
                then("")
            else:  # the node that was asked does not own it any more
                self._timers.at(clock.now_ms() + RETRY_MS, lambda: self._ask_owner(durable, then))

        if self._durables.known(log.name) is not durable or not log.is_remote:
            self._remove_local(log.name, on_answer)
        elif (owner := self._peers.owner_of(log.name)) != self._peers.session:
            self._requests.send([owner], PeerMessageType.REMOVE_SUBSCRIPTION, (log.name,), on_answer)
        else:
            on_answer("")

    def on_remove(self, session: str, id: int, log: str) -> None:
        """Remove a subscription for a client of another node."""
        self._remove_local(log, lambda refusal: self._peers.confirm(session, id, str(refusal)))

    def _remove_local(self, log: str, then: OnAnswer, *, is_consumed: bool = False) -> None:
        """Remove a subscription that this node owns.

        Another one stays as it is, and `then` is called with "", as it is where another attempt may succeed.
        `is_consumed`: a node has confirmed that it consumes from it, so that the removal is refused.
        """
        durable = self._durables.known(log)
        sessions = self._takeover.other_consumers(durable.log) if durable is not None and not is_consumed else set()
        if sessions:
            self._takeover.query(
                log,
                sessions,
                lambda consumed: self._remove_local(log, then, is_consumed=True) if consumed else then(""),
            )
            return
        if durable is not None and durable.log.is_remote:
            then("")
            return
        try:
            if durable is not None:
                self._durables.remove(durable)
        except RequestRefused as error:
            then(str(error))
            return
        self._commits.submit(PendingWrite(callback=lambda *_: then("")))
