"""Removes named subscriptions, wherever their logs are owned.

Whether somebody consumes one is known at its home alone: that lets it go, or says why not. While a log moves, its next
home is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.durable_subscription import DurableSubscription
from brokerapp.errors import RequestRefused
from brokerapp.nodes.links.pending_confirmations import OnAnswer
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.store import PendingWrite
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

#: Milliseconds until it is tried again where there is no home that could say.
RETRY_MS = 50


class SubscriptionRemoval:
    """Removes a named subscription unless a client consumes from it."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership

    def remove(self, durable: DurableSubscription, then: OnAnswer) -> None:
        """Let it exist no longer, with what it holds, unless somebody consumes it."""
        # after what is said of our own consumers, see Abroad.attach
        self._broker.commits.submit(PendingWrite(callback=lambda *_: self._ask_owner(durable, then)))

    def _ask_owner(self, durable: DurableSubscription, then: OnAnswer) -> None:
        log = durable.log

        def answered(refusal: str) -> None:
            if refusal:
                then(refusal)
            elif self._broker.durables.known(log.name) is not durable:
                then("")
            else:  # who was asked is its home no more
                self._broker.timers.at(clock.now_ms() + RETRY_MS, lambda: self._ask_owner(durable, then))

        if self._broker.durables.known(log.name) is not durable or not log.is_remote:
            self._remove_local(log.name, answered)
        elif (home := self._ownership.owner_of(log.name)) != self._ownership.session:
            self._ownership.propagation.request([home], PeerMessageType.REMOVE_SUBSCRIPTION, (log.name,), answered)
        else:
            answered("")

    def on_remove(self, session: str, id: int, log: str) -> None:
        """A client of another node wants a named subscription to go."""
        self._remove_local(log, lambda refusal: self._ownership.send(session, PeerMessageType.CONFIRMED, id, refusal))

    def _remove_local(self, log: str, then: OnAnswer, *, sure: bool = False) -> None:
        """One that is not at home here stays as it is, and `then` is told "", as it is where it may be tried again.

        `sure`: who consumes it says so.
        """
        durable, contending = self._broker.durables.known(log), self._ownership.subscription_takeover
        rivals = contending.other_consumers(durable.log) if durable is not None and not sure else set()
        if rivals:
            contending.query(log, rivals, lambda taken: self._remove_local(log, then, sure=True) if taken else then(""))
            return
        if durable is not None and durable.log.is_remote:
            then("")
            return
        try:
            if durable is not None:
                self._broker.durables.remove(durable)
        except RequestRefused as error:
            then(str(error))
            return
        self._broker.commits.submit(PendingWrite(callback=lambda *_: then("")))
