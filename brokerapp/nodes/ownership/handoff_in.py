"""Takes over the logs that this node owns from now on, once all other members have let go of them.

It reads what the store has, and goes on from there with what is known to be held by consumers.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerapp.core.ports import BrokerContext, Destinations
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.dispatch.recovery_marks import maybe_delivered_up_to
from brokerapp.nodes.delivery.remote_unacked import RemoteUnacked
from brokerapp.nodes.links.handoff_state import HandoffState
from brokerapp.nodes.links.peers import Peers
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.ownership.consumer_handoff import ConsumerHandoff
from brokerapp.nodes.ownership.outbound_handoff import OutboundHandoff
from brokerapp.store import LogState


class HandoffIn:
    """Takes over logs once all other members have stopped dispatching from them."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        peers: Peers,
        queues: Destinations,
        handoff: HandoffState,
        unacked: RemoteUnacked,
        outbound_handoff: OutboundHandoff,
        consumer_handoff: ConsumerHandoff,
        on_taken_over: Callable[[MessageLog], None],
    ) -> None:
        self._commits, self._counters = context.commits, context.counters
        self._peers, self._queues, self._handoff, self._unacked = peers, queues, handoff, unacked
        self._outbound_handoff, self._consumer_handoff = outbound_handoff, consumer_handoff
        self._on_taken_over = on_taken_over
        self._callbacks: list[Callable[[], None]] = []
        self._settled_epoch = -1  # in which all was taken over

    def is_pending(self, log: str | None) -> bool:
        """Return whether this node owns a log and has not taken it over yet."""
        return self._handoff.is_pending(log)

    @property
    def is_settled(self) -> bool:
        """Return whether this node dispatches from all logs that it owns."""
        return self._settled_epoch == self._peers.members.epoch

    def when_taken_over(self, then: Callable[[], None]) -> None:
        """Call back when this node dispatches from all logs that it owns."""
        self._callbacks.append(then)
        self.take_over()

    def announce_taken_over(self, session: str) -> None:
        """Tell a node that this one dispatches from all logs that it owns, if it does."""
        if self.is_settled and self._peers.members.understands(session, PeerMessageType.TAKEN_OVER):
            self._peers.send(session, PeerMessageType.TAKEN_OVER, self._settled_epoch)

    def take_over(self) -> None:
        """Take over the logs that this node owns, if nobody dispatches from them any more."""
        if not self._handoff.can_take_over:
            return
        vacant = [log.name for log in self._queues if log.is_remote and self._peers.is_local(log.name)]
        if not vacant:
            self._on_settled()
            return
        epoch = self._peers.members.epoch

        def on_read(states: list[LogState]) -> None:
            if self._peers.members.epoch == epoch and self._handoff.can_take_over:
                for state in states:
                    log = self._queues.get(state.name)
                    if log is not None and log.is_remote:
                        self._take_over_log(log, state)
                self._on_settled()

        self._commits.read_with(lambda store: store.logs.recover_logs(vacant), on_read)

    def _on_settled(self) -> None:
        if not self.is_settled:
            self._settled_epoch = self._peers.members.epoch
            for session in self._peers.other_sessions:
                self.announce_taken_over(session)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def _take_over_log(self, log: MessageLog, state: LogState) -> None:
        """Dispatch a log's messages here from now on; consumers of this node and of others hold some."""
        account = self._outbound_handoff.on_taken_over(log)
        log.is_remote, log.shared = False, bool(self._peers.other_sessions)
        log.handoff_count += 1
        held = self._unacked.seqs(log.name) | set(account.unacked)
        requeued, dispatched = self._handoff.take(log.name)
        dropped = {number: deliveries for number, deliveries in dispatched.items() if number not in held}
        returned = {**dropped, **state.returned, **requeued}
        alive = {self._peers.session, *self._peers.other_sessions}
        suspect = maybe_delivered_up_to(state.mark, state.last_seq, alive)
        log.take_over(state.depth, suspect, returned, held, state.last_seq)
        self._consumer_handoff.restore(log, account, state.mark)
        self._counters.mark_changed(log.counts)
        self._on_taken_over(log)
