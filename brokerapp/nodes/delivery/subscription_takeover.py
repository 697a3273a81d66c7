"""Lets a client take over a named subscription once no other node consumes from it.

Only the nodes of its consumers know whether those still consume, and are asked. A node that stands still or is not
reached answers later, or is no member any more: the new client waits so long instead of being refused because of a
consumer that is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from brokerapp.core.ports import BrokerContext, Destinations
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.nodes.delivery.outbound_consumers import OutboundConsumers
from brokerapp.nodes.links.handoff_state import HandoffState
from brokerapp.nodes.links.node_requests import NodeRequests
from brokerapp.nodes.links.observers import NodeObserver
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.system import clock

logger = logging.getLogger(__name__)

#: Milliseconds until it is checked again whether a consumer that ended, or whose node is gone, still counts as one: at
#: first, and at most; each pause is twice the last.
FIRST_RETRY_MS, LONGEST_RETRY_MS = 50, 1_000
#: Milliseconds after which the account of a consumer that its node denies is wrong: detaching takes moments.
DENIED_MS = 5_000
#: The consumer of another node: its session, the consumer's key there, the log.
RemoteConsumerKey = tuple[str, int, str]


@dataclass(slots=True)
class ConsumptionQuery:
    """The question whether nodes still consume from a log, for all who wait for the answer."""

    log: str
    sessions: set[str]  #: the nodes that did not answer yet, or deny what is counted here
    since_ms: int
    callbacks: list[Callable[[bool], None]]
    pause_ms: int = FIRST_RETRY_MS


class SubscriptionTakeover(NodeObserver):
    """Asks the nodes that may still consume from a subscription before another client may."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        requests: NodeRequests,
        queues: Destinations,
        outbound_consumers: OutboundConsumers,
        handoff: HandoffState,
    ) -> None:
        self._timers, self._peers, self._requests, self._queues = context.timers, peers, requests, queues
        self._outbound_consumers, self._handoff = outbound_consumers, handoff
        self._queries: dict[tuple[str, frozenset[str]], ConsumptionQuery] = {}  # by log, and nodes asked first
        self._waiting: dict[RemoteConsumerKey, int] = {}  # with the id of the request that is not answered yet
        #: By session and log, who consumed when the link was lost, with whether it may go on.
        self._disconnected: dict[str, dict[str, dict[Subscription, bool]]] = {}

    # -- consumers behind lost links

    def on_disconnected(self, session: str, log: str, consumer: Subscription) -> None:
        """Note that a consumer was attached to a log when the link to its node was lost; its groups wait for it."""
        self._disconnected.setdefault(session, {}).setdefault(log, {})[consumer] = True

    def _sessions_maybe_consuming(self, log: str) -> list[str]:
        """Return the members behind lost links where somebody may consume a log."""
        return [
            session
            for session, logs in self._disconnected.items()
            if any(logs.get(log, {}).values()) and not self._peers.is_lost(session)
        ]

    def maybe_consumed(self, log: str) -> bool:
        """Return whether somebody may consume a log behind a lost link."""
        return bool(self._sessions_maybe_consuming(log))

    def take_disconnected(self, session: str) -> dict[str, dict[Subscription, bool]]:
        """Remove and return the consumers of a node by log: it has said which of them go on."""
        return self._disconnected.pop(session, {})

    def release_log(self, log: str) -> list[str]:
        """Forget a log that another node owns from now on; return the sessions behind lost links."""
        for logs in self._disconnected.values():
            logs.pop(log, None)
        return list(self._disconnected)

    # -- asking

    def other_consumers(self, log: MessageLog, newcomer: Subscription | None = None, at: str = "") -> set[str]:
        """Return the nodes, "" for this one, whose clients may consume a log beside a newcomer from the node `at`."""
        disconnected = {session for session in self._sessions_maybe_consuming(log.name) if session != at}
        return disconnected | {each.owner_session for each in log.consumers if each is not newcomer}

    def query(self, log: str, sessions: set[str], then: Callable[[bool], None]) -> None:
        """Call back with True when one of these nodes says that it consumes from a log.

        With False once none of them counts as a consumer: the caller tries again.
        """
        if "" in sessions:
            then(True)
            return
        key = log, frozenset(sessions)
        if (query := self._queries.get(key)) is not None:
            query.callbacks.append(then)
            return
        query = self._queries[key] = ConsumptionQuery(log, set(sessions), clock.now_ms(), [then])
        self._ask(query, lambda: self._queries.pop(key))

    def _ask(self, query: ConsumptionQuery, forget: Callable[[], object]) -> None:
        def on_confirmed(refusal: str) -> None:
            if refusal:
                finish(is_consumed=True)
            else:
                self._timers.at(clock.now_ms() + query.pause_ms, check)

        def check() -> None:
            log = self._queues.get(query.log)
            query.sessions &= self.other_consumers(log) if log is not None else set()
            if not query.sessions:
                finish(is_consumed=False)
                return
            if clock.now_ms() - query.since_ms >= DENIED_MS and self._handoff.all_done:
                self._resync(query.log, query.sessions)
                query.since_ms = clock.now_ms()
            query.pause_ms = min(2 * query.pause_ms, LONGEST_RETRY_MS)
            self._ask(query, forget)

        def finish(*, is_consumed: bool) -> None:
            forget()
            for callback in query.callbacks:
                callback(is_consumed)

        self._requests.send(query.sessions, PeerMessageType.IS_CONSUMED, (query.log,), on_confirmed)

    def _resync(self, log: str, sessions: set[str]) -> None:
        """Count anew with nodes of the same epoch that deny a consumer which is counted here."""
        for session in sessions:
            logger.warning(
                "node %s consumes %s as is counted here, but does not confirm it: all nodes count again", session, log
            )
            self._peers.reconnect(session)

    def on_query(self, session: str, id: int, name: str) -> None:
        """Answer the owner of a log whether our clients still consume from it."""
        log = self._queues.get(name)
        is_consumed = log is not None and log.is_remote and any(self._outbound_consumers.known_consumers(log))
        self._peers.confirm(session, id, "it is consumed" if is_consumed else "")

    # -- consumers of other nodes that wait for the answer

    def attach_or_refuse(
        self, consumer: RemoteConsumerKey, id: int, sessions: set[str], refusal: str, again: Callable[[], None]
    ) -> None:
        """Refuse a consumer of another node if one of these nodes still consumes; else let it try again."""
        session, _, name = consumer

        def on_answer(is_consumed: bool) -> None:
            if self._waiting.get(consumer) != id:
                return
            del self._waiting[consumer]
            if is_consumed:
                self._peers.confirm(session, id, refusal)
            else:
                again()

        self._cancel(consumer)  # what it requested in a former epoch
        self._waiting[consumer] = id
        self.query(name, {""} if session in sessions else sessions, on_answer)

    def on_detached(self, consumer: RemoteConsumerKey) -> None:
        """Let a consumer of another node wait no longer, and count it no more if its link is lost."""
        session, key, name = consumer
        self._cancel(consumer)
        former = self._disconnected.get(session, {}).get(name, {})
        for each in former:
            if each.key == str(key):
                former[each] = False

    def _cancel(self, consumer: RemoteConsumerKey) -> None:
        """Confirm what a consumer requested: nothing comes of it."""
        if (id := self._waiting.pop(consumer, None)) is not None:
            self._peers.confirm(consumer[0], id)

    def on_link_down(self, session: str) -> None:
        """Forget who waits at a node: it says so again over the next link."""
        self._waiting = {consumer: id for consumer, id in self._waiting.items() if consumer[0] != session}
