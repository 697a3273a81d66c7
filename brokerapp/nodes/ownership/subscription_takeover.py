"""Lets a client take over a named subscription once no other node consumes from it.

Those nodes alone know whether they consume it still, and are asked. One that stands still or is not reached says so
when it can, or is a member no more: who came waits so long instead of being told that somebody is there who is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.model.subscription_identity import SubscriptionIdentity
from brokerapp.nodes.links.pending_confirmations import OnAnswer
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.system import clock

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker, NodeOwnership

logger = logging.getLogger(__name__)

#: Milliseconds until it is looked at again whether somebody who consumes no more, or whose node is gone, is in the way:
#: at first, and at most, as each pause is twice the last.
FIRST_RETRY_MS, LONGEST_RETRY_MS = 50, 1_000
#: Milliseconds after which the account of a consumer that its node denies is wrong: what parts is told in moments.
DENIED_MS = 5_000
#: Who wants one at another node: its session, the consumer's key there, the log.
RemoteConsumerKey = tuple[str, int, str]


@dataclass(slots=True)
class ConsumptionQuery:
    """Whether nodes consume a log still, however many wait for the answer."""

    log: str
    sessions: set[str]  #: the nodes that did not answer yet, or deny what is counted here
    since_ms: int
    callbacks: list[Callable[[bool], None]]
    pause_ms: int = FIRST_RETRY_MS


class SubscriptionTakeover:
    """Asks the nodes that may still consume from a subscription before another client may."""

    def __init__(self, broker: LocalBroker, ownership: NodeOwnership) -> None:
        self._broker, self._ownership = broker, ownership
        self._queries: dict[
            tuple[str, frozenset[str]], ConsumptionQuery
        ] = {}  # by log, and nodes that were asked first
        self._waiting: dict[RemoteConsumerKey, int] = {}  # with the id of the question that is not answered yet

    def other_consumers(self, log: MessageLog, newcomer: Subscription | None = None, at: str = "") -> set[str]:
        """The nodes, "" for this one, whose clients may consume a log beside this one, which comes from a node."""
        lost = {
            session for session in self._ownership.inbound_consumers.sessions_maybe_consuming(log.name) if session != at
        }
        return lost | {each.owner_session for each in log.consumers if each is not newcomer}

    def query(self, log: str, rivals: set[str], then: Callable[[bool], None]) -> None:
        """`then` is told whether one of these nodes says that it consumes a log; else, once none of them counts as one
        that does, it is to be looked at again.
        """
        if "" in rivals:
            then(True)
            return
        asked = log, frozenset(rivals)
        if (question := self._queries.get(asked)) is not None:
            question.callbacks.append(then)
            return
        question = self._queries[asked] = ConsumptionQuery(log, set(rivals), clock.now_ms(), [then])
        self._ask(question, lambda: self._queries.pop(asked))

    def _ask(self, question: ConsumptionQuery, forget: Callable[[], object]) -> None:
        def answered(refusal: str) -> None:
            if refusal:
                settled(taken=True)
            else:
                self._broker.timers.at(clock.now_ms() + question.pause_ms, look)

        def look() -> None:
            log = self._broker.queues.get(question.log)
            question.sessions &= self.other_consumers(log) if log is not None else set()
            if not question.sessions:
                settled(taken=False)
                return
            if clock.now_ms() - question.since_ms >= DENIED_MS and self._ownership.handoff_in.all_done:
                self._resync(question.log, question.sessions)
                question.since_ms = clock.now_ms()
            question.pause_ms = min(2 * question.pause_ms, LONGEST_RETRY_MS)
            self._ask(question, forget)

        def settled(*, taken: bool) -> None:
            forget()
            for then in question.callbacks:
                then(taken)

        self._ownership.propagation.request(question.sessions, PeerMessageType.IS_CONSUMED, (question.log,), answered)

    def _resync(self, log: str, sessions: set[str]) -> None:
        """These nodes, which go by the same members, deny what is counted here: both are to say all again."""
        for session in sessions:
            logger.warning(
                "node %s consumes %s as is counted here, but does not confirm it: all nodes count again", session, log
            )
            self._ownership.reconnect(session)

    def on_query(self, session: str, id: int, name: str) -> None:
        """The home of a log asks whether clients of ours consume it still."""
        log = self._broker.queues.get(name)
        is_so = log is not None and log.is_remote and any(self._ownership.outbound_consumers.known_consumers(log))
        self._ownership.send(session, PeerMessageType.CONFIRMED, id, "it is consumed" if is_so else "")

    # -- for our own clients

    def question_before_claim(self, wanted: SubscriptionIdentity) -> Callable[[OnAnswer], None] | None:
        """What other nodes are to be asked before there is one as it is wanted: whether they have it still, or to let
        go of it. Raises what Durables.claim raises.
        """
        durables = self._broker.durables
        found = durables.known_as(wanted)
        rivals = self.other_consumers(found.log) if found is not None else set()
        if rivals and "" not in rivals and (refusal := durables.refusal(wanted)):
            return lambda then: self.query(found.log.name, rivals, lambda taken: then(refusal if taken else ""))
        former = durables.in_the_way(wanted)
        return partial(self._ownership.subscription_removal.remove, former) if former is not None else None

    # -- for clients of other nodes

    def attach_or_refuse(
        self, guest: RemoteConsumerKey, id: int, rivals: set[str], refusal: str, again: Callable[[], None]
    ) -> None:
        """Tell a node why its client cannot consume a log, or try again when nobody says to be in the way."""
        session, _, name = guest

        def settled(taken: bool) -> None:
            if self._waiting.get(guest) != id:
                return
            del self._waiting[guest]
            if taken:
                self._ownership.send(session, PeerMessageType.CONFIRMED, id, refusal)
            else:
                again()

        self.on_detached(guest)  # what it asked in a former epoch
        self._waiting[guest] = id
        self.query(name, {""} if session in rivals else rivals, settled)

    def on_detached(self, guest: RemoteConsumerKey) -> None:
        """It wants it no longer: what it asked is answered, as nothing comes of it."""
        if (id := self._waiting.pop(guest, None)) is not None:
            self._ownership.send(guest[0], PeerMessageType.CONFIRMED, id, "")

    def on_link_down(self, session: str) -> None:
        """What this node's clients want it says again when it hears us."""
        self._waiting = {guest: id for guest, id in self._waiting.items() if guest[0] != session}
