"""Decides which logs this node dispatches from as members of the broker join and leave.

Decision 14 says why a log never has two nodes that dispatch from it. A node that is alone has all logs, and pays
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.delivery.append_notices import AppendNotices
from brokerapp.nodes.delivery.inbound_consumers import InboundConsumers
from brokerapp.nodes.delivery.outbound_consumers import OutboundConsumers
from brokerapp.nodes.delivery.remote_appends import RemoteAppends
from brokerapp.nodes.delivery.remote_deliveries import RemoteDeliveries
from brokerapp.nodes.delivery.retained_sync import RetainedSync
from brokerapp.nodes.delivery.selector_interest import SelectorInterest
from brokerapp.nodes.links.inbox import PeerInbox
from brokerapp.nodes.links.members import NodeMembers
from brokerapp.nodes.links.pending_confirmations import PendingConfirmations
from brokerapp.nodes.links.propagation import Propagation
from brokerapp.nodes.links.protocol import PeerMessageType
from brokerapp.nodes.membership.client_id_claims import ClientIdClaims
from brokerapp.nodes.membership.stats_aggregation import StatsAggregation
from brokerapp.nodes.ownership.depth_recount import DepthRecount
from brokerapp.nodes.ownership.handoff_in import HandoffIn
from brokerapp.nodes.ownership.handoff_out import HandoffOut
from brokerapp.nodes.ownership.subscription_removal import SubscriptionRemoval
from brokerapp.nodes.ownership.subscription_takeover import SubscriptionTakeover
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.nodes.ports import LocalBroker


class PeerTransport(Protocol):
    """How other nodes are told things."""

    def send(self, session: str, word: PeerMessageType, *facts: Any) -> None: ...

    def is_linked(self, session: str) -> bool: ...

    def unsent_bytes(self, session: str) -> int: ...

    def reconnect(self, session: str) -> None: ...


class OwnershipCoordinator:
    """Ears of the links, see links.py."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self.session = broker.session
        self.members = NodeMembers(0, (), self.session)
        self.other_sessions: list[str] = []  #: sessions of the other members
        self.is_joining = False  #: nothing is known of the broker's logs yet
        self.propagation, self.inbound_consumers, self.outbound_consumers = (
            Propagation(broker, self),
            InboundConsumers(broker, self),
            OutboundConsumers(broker, self),
        )
        self.selector_interest, self.client_id_claims, self.depth_recount = (
            SelectorInterest(broker, self),
            ClientIdClaims(broker, self),
            DepthRecount(broker),
        )
        self.retained_sync, self.remote_appends = RetainedSync(broker, self), RemoteAppends(broker)
        self.handoff_out, self.handoff_in, self.stats_aggregation = (
            HandoffOut(broker, self),
            HandoffIn(broker, self),
            StatsAggregation(broker, self),
        )
        self.subscription_removal, self.subscription_takeover, self.pending_confirmations = (
            SubscriptionRemoval(broker, self),
            SubscriptionTakeover(broker, self),
            PendingConfirmations(broker),
        )
        self._transport: PeerTransport | None = None
        self.request_dispatch: Callable[[], None] = lambda: (
            None
        )  #: asked to give out, soon, what follows from what is heard
        self.can_dispatch: Callable[[], bool] = lambda: (
            True
        )  #: whether anything may be given out, see Membership.is_sure
        self.append_notices, self.remote_deliveries = AppendNotices(self), RemoteDeliveries(broker, self)
        self._inbox = PeerInbox(
            self,
            {
                PeerMessageType.EPOCH_DONE: self._on_epoch_done,
                PeerMessageType.LOGS: self._on_logs,
                PeerMessageType.LISTENERS: self.propagation.on_listeners,
                PeerMessageType.STATS: self.stats_aggregation.on_stats,
                PeerMessageType.SELECTORS: self.selector_interest.on_selectors,
                PeerMessageType.CLAIM: self.client_id_claims.on_claim,
                PeerMessageType.BRIDGE_BIDS: lambda session, id, anew, rows: self._broker.duplicates.heard(
                    session, id, anew, rows
                ),
                PeerMessageType.CONFIRMED: self.propagation.on_confirmed,
                PeerMessageType.APPENDED: self.remote_appends.on_appended,
                PeerMessageType.ATTACH: self.inbound_consumers.on_attach,
                PeerMessageType.DETACH: self.inbound_consumers.on_detach,
                PeerMessageType.CREDIT: self.inbound_consumers.on_credit,
                PeerMessageType.UNACKED: self.inbound_consumers.on_unacked,
                PeerMessageType.DISPATCHED: self.handoff_in.on_dispatched,
                PeerMessageType.SETTLED: self.inbound_consumers.on_settled,
                PeerMessageType.REMOVE_SUBSCRIPTION: self.subscription_removal.on_remove,
                PeerMessageType.IS_CONSUMED: self.subscription_takeover.on_query,
                PeerMessageType.REQUEUED: lambda session, log, numbers, seen: self.inbound_consumers.on_requeued(
                    session, log, numbers, seen=seen
                ),
                PeerMessageType.DELIVER: self.remote_deliveries.on_delivery,
                PeerMessageType.WANT_ENTRIES: self.append_notices.on_wish,
                PeerMessageType.PUBLISH: self.propagation.on_topic_message,
                PeerMessageType.GET_RETAINED: self.retained_sync.on_page_requested,
                PeerMessageType.RETAINED: self.retained_sync.on_page,
                PeerMessageType.GET_CONSUMERS: lambda session, id: self._remote_advisories.wanted(session, id),
                PeerMessageType.CONSUMERS: lambda session, rows, last: self._remote_advisories.heard_all(
                    session, rows, last=last
                ),
            },
        )

    @property
    def _remote_advisories(self) -> Any:
        return self._broker.remote_advisories

    # -- where things are

    def owner_of(self, log: str) -> str:
        """The session of the node that dispatches from a log, or is to."""
        return self.members.owner_of(log)

    def is_local(self, log: str) -> bool:
        """Whether that is this node."""
        return not self.other_sessions or self.members.is_local(log)

    def on_log_added(self, log: MessageLog) -> None:
        """A log came to be known: it is at home here or elsewhere."""
        log.shared = bool(self.other_sessions)
        log.is_remote = self.is_joining or not self.is_local(log.name)
        self.handoff_out.suspend_if_leaving(log)

    def on_log_removed(self, log: str) -> None:
        """A log is no more."""
        self.selector_interest.on_log_removed(log)
        self.handoff_in.on_log_removed(log)
        self.handoff_out.forget_log(log)
        self.append_notices.on_log_removed(log)

    def is_other_member(self, session: str) -> bool:
        """Whether this is another live member."""
        return bool(session) and session in self.other_sessions

    # -- telling others

    def when_propagated(self, then: Callable[[], None]) -> None:
        """Go on when all that our clients asked so far is known to the nodes that must know of it."""
        if self.other_sessions:
            self._broker.commits.submit(PendingWrite(callback=lambda *_: self.propagation.when_propagated(then)))
        else:
            then()

    def send(self, session: str, word: PeerMessageType, *facts: Any) -> None:
        """Say something to a node, if it hears us."""
        if self._transport is not None:
            self._transport.send(session, word, *facts)

    def is_linked(self, session: str) -> bool:
        """Whether a node hears what it is told."""
        return self._transport is not None and self._transport.is_linked(session)

    def unsent_bytes(self, session: str) -> int:
        """Bytes that a node was told and did not take yet."""
        return self._transport.unsent_bytes(session) if self._transport is not None else 0

    def reconnect(self, session: str) -> None:
        """Let a node and this one say all again that concerns both, as after a lost link."""
        if self._transport is not None:
            self._transport.reconnect(session)

    def send_to_owner(self, log: str, word: PeerMessageType, *facts: Any) -> None:
        """Say something to the home of a log."""
        self.send(self.owner_of(log), word, *facts)

    # -- members come and go

    def attach_transport(self, wire: PeerTransport) -> None:
        """Others may say something from now on: what they say of logs waits until these are known, see `joined`."""
        self._transport, self.is_joining = wire, True

    def join(self, members: NodeMembers) -> None:
        """Be one of these; without others all logs are at home here."""
        self.is_joining = bool(members.others)
        self._set_members(members)

    def on_logs_loaded(self) -> None:
        """The logs of the broker are known here."""
        self.is_joining = False
        self._inbox.handle_deferred()
        self.handoff_in.take_over()

    async def on_members_changed(self, members: NodeMembers) -> None:
        """These are the members from now on: logs go and come. Returns when what had to go is gone."""
        await self.handoff_out.suspend_leaving(members)
        self.append_notices.send()  # what was stored until now concerns the homes of until now
        gone = [session for session in self.other_sessions if session not in members]
        known = set(self.other_sessions)
        self._set_members(members)
        self.handoff_out.release_suspended()
        for session in gone:
            self._on_member_removed(session)
        for session in [
            each for each in self.other_sessions if each not in known
        ]:  # it may be linked for a while already
            self._send_interest(session)
        for log in self._broker.queues:
            self._reassign_log(log)
        for session in self.other_sessions:
            self.handoff_out.announce_done(session)
        self._broker.scheduled_jobs.start()  # those of a node that is gone, too
        self.stats_aggregation.report_all()
        self._broker.temporaries.strangers.adopt_orphans()
        self._inbox.handle_deferred()
        self.handoff_in.take_over()

    def _reassign_log(self, log: MessageLog) -> None:
        """The members are others: who is to know of a log?"""
        if not self.other_sessions:
            self._make_exclusive(log)
        elif log.is_remote and not self.is_local(log.name):
            self.inbound_consumers.release_log(log)
            log.consumers.clear()
            self.outbound_consumers.announce_all(log)

    def _set_members(self, members: NodeMembers) -> None:
        self.members, self.other_sessions = members, [each.session for each in members.others]
        self.handoff_in.on_members_changed()
        self.append_notices.on_members_changed()
        self.remote_deliveries.on_members_changed()
        for session in self.other_sessions:
            self.send(session, PeerMessageType.EPOCH, members.epoch)
            if self.is_joining:
                self.send(session, PeerMessageType.EPOCH_DONE, members.epoch)

    def _on_member_removed(self, session: str) -> None:
        """A node is no member any more."""
        self._remote_advisories.gone(session)
        self.inbound_consumers.on_member_removed(session)
        self.propagation.forget(session)
        self.retained_sync.forget(session)
        self.remote_appends.forget(session)
        self.selector_interest.forget(session)
        self._broker.duplicates.forget(session)
        self.stats_aggregation.on_member_removed(session)
        self._inbox.forget(session)
        self.handoff_in.forget(session)
        self.handoff_out.forget(session)

    def _make_exclusive(self, log: MessageLog) -> None:
        """Nobody else writes any more; what others wrote and could not tell of is read."""
        log.shared = False
        self._reload_unreported(log)

    def _reload_unreported(self, log: MessageLog) -> None:
        """Others may have stored something in it and not reached us."""
        if not log.is_remote:
            log.recheck_store()
            self.depth_recount.mark_stale(log)
            self._broker.dispatcher.touch(log)

    # -- what is heard

    def on_link_up(self, session: str) -> None:
        """A node hears us: it is told all that concerns it."""
        self._inbox.on_link_up(session)
        self.send(session, PeerMessageType.EPOCH, self.members.epoch)
        self.propagation.on_link_up(session)
        self._send_interest(session)
        self.stats_aggregation.report_all()
        if self.is_joining:
            self.send(session, PeerMessageType.EPOCH_DONE, self.members.epoch)
            return
        for log in self._broker.queues:
            if log.is_remote and self.owner_of(log.name) == session:
                self.outbound_consumers.announce_all(log)
        self.handoff_out.announce_done(session)

    def _send_interest(self, session: str) -> None:
        """Let a node know what is listened to and wanted here, and ask it the same of consumers."""
        self.propagation.send_listeners(session)
        self.selector_interest.send_all(session)
        self._broker.duplicates.send_all_bids(session)
        self._remote_advisories.ask(session)

    def on_link_down(self, session: str) -> None:
        """A node hears us no longer: what it says next is said anew."""
        self.handoff_in.forget(session)
        self.handoff_out.forget(session)
        self._inbox.on_link_down(session)
        self.propagation.on_link_down(session)
        self.remote_deliveries.on_link_down(session)
        self.subscription_takeover.on_link_down(session)
        self.inbound_consumers.on_link_down(session)

    def on_message(self, session: str, word: PeerMessageType, facts: list[Any]) -> None:
        """A node says something."""
        self._inbox.on_message(session, word, facts)
        self.request_dispatch()

    def _on_epoch_done(self, session: str, epoch: int) -> None:
        self.handoff_in.on_epoch_done(session, epoch)
        if epoch == self.members.epoch:  # else it has not told in this one yet what its clients hold
            self.inbound_consumers.on_epoch_done(session)
        for log in self._broker.queues:  # its link may have been lost before
            self._reload_unreported(log)
        self.handoff_in.take_over()

    def _on_logs(self, session: str, id: int, rows: Iterable[tuple[str, str | None]]) -> None:
        for name, attributes in rows:
            self._broker.store_recovery.learn(name, attributes)
        self.send(session, PeerMessageType.CONFIRMED, id, "")
