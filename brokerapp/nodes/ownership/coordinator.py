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

    def tell(self, session: str, word: PeerMessageType, *facts: Any) -> None: ...

    def is_up(self, session: str) -> bool: ...

    def waiting(self, session: str) -> int: ...

    def renew(self, session: str) -> None: ...


class Homes:
    """Ears of the links, see links.py."""

    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self.me = broker.session
        self.members = NodeMembers(0, (), self.me)
        self.others: list[str] = []  #: sessions of the other members
        self.is_joining = False  #: nothing is known of the broker's logs yet
        self.known, self.inbound_consumers, self.abroad = (
            Propagation(broker, self),
            InboundConsumers(broker, self),
            OutboundConsumers(broker, self),
        )
        self.wanted, self.claims, self.depth_recount = (
            SelectorInterest(broker, self),
            ClientIdClaims(broker, self),
            DepthRecount(broker),
        )
        self.past, self.remote_appends = RetainedSync(broker, self), RemoteAppends(broker)
        self.handoff_out, self.coming, self.shares = (
            HandoffOut(broker, self),
            HandoffIn(broker, self),
            StatsAggregation(broker, self),
        )
        self.dropping, self.contending, self.waits = (
            SubscriptionRemoval(broker, self),
            SubscriptionTakeover(broker, self),
            PendingConfirmations(broker),
        )
        self._transport: PeerTransport | None = None
        self.pump: Callable[[], None] = lambda: None  #: asked to give out, soon, what follows from what is heard
        self.is_sure: Callable[[], bool] = lambda: True  #: whether anything may be given out, see Membership.is_sure
        self.append_notices, self.remote_deliveries = AppendNotices(self), RemoteDeliveries(broker, self)
        self._inbox = PeerInbox(
            self,
            {
                PeerMessageType.EPOCH_DONE: self._on_epoch_done,
                PeerMessageType.LOGS: self._on_logs,
                PeerMessageType.LISTENERS: self.known.on_listeners,
                PeerMessageType.STATS: self.shares.heard,
                PeerMessageType.WANTED: self.wanted.heard,
                PeerMessageType.CLAIM: self.claims.heard,
                PeerMessageType.BRIDGE_BIDS: lambda session, id, anew, rows: self._broker.duplicates.heard(
                    session, id, anew, rows
                ),
                PeerMessageType.CONFIRMED: self.known.answered,
                PeerMessageType.APPENDED: self.remote_appends.heard,
                PeerMessageType.ATTACH: self.inbound_consumers.consume,
                PeerMessageType.DETACH: self.inbound_consumers.remove,
                PeerMessageType.CREDIT: self.inbound_consumers.credit,
                PeerMessageType.HELD: self.inbound_consumers.hold,
                PeerMessageType.DISPATCHED: self.coming.sent_out,
                PeerMessageType.SETTLED: self.inbound_consumers.settled,
                PeerMessageType.REMOVE_SUBSCRIPTION: self.dropping.heard,
                PeerMessageType.IS_CONSUMED: self.contending.heard,
                PeerMessageType.RETURNED: lambda session, log, numbers, seen: self.inbound_consumers.returned(
                    session, log, numbers, seen=seen
                ),
                PeerMessageType.DELIVER: self.remote_deliveries.given,
                PeerMessageType.WANT_ENTRIES: self.append_notices.on_wish,
                PeerMessageType.TOPIC: self.known.on_topic_message,
                PeerMessageType.GET_RETAINED: self.past.wanted,
                PeerMessageType.RETAINED: self.past.heard,
                PeerMessageType.GET_CONSUMERS: lambda session, id: self._remote_advisories.wanted(session, id),
                PeerMessageType.CONSUMERS: lambda session, rows, last: self._remote_advisories.heard_all(
                    session, rows, last=last
                ),
            },
        )

    @property
    def _remote_advisories(self) -> Any:
        return self._broker.advisories.elsewhere

    # -- where things are

    def home(self, log: str) -> str:
        """The session of the node that dispatches from a log, or is to."""
        return self.members.home(log)

    def is_here(self, log: str) -> bool:
        """Whether that is this node."""
        return not self.others or self.members.is_here(log)

    def place(self, log: MessageLog) -> None:
        """A log came to be known: it is at home here or elsewhere."""
        log.shared = bool(self.others)
        log.away = self.is_joining or not self.is_here(log.name)
        self.handoff_out.suspend_if_leaving(log)

    def lost(self, log: str) -> None:
        """A log is no more."""
        self.wanted.gone(log)
        self.coming.lost(log)
        self.handoff_out.forget_log(log)
        self.append_notices.lost(log)

    def is_other_member(self, session: str) -> bool:
        """Whether this is another live member."""
        return bool(session) and session in self.others

    # -- telling others

    def when_propagated(self, then: Callable[[], None]) -> None:
        """Go on when all that our clients asked so far is known to the nodes that must know of it."""
        if self.others:
            self._broker.commits.submit(PendingWrite(callback=lambda *_: self.known.when_propagated(then)))
        else:
            then()

    def tell(self, session: str, word: PeerMessageType, *facts: Any) -> None:
        """Say something to a node, if it hears us."""
        if self._transport is not None:
            self._transport.tell(session, word, *facts)

    def is_linked(self, session: str) -> bool:
        """Whether a node hears what it is told."""
        return self._transport is not None and self._transport.is_up(session)

    def waiting(self, session: str) -> int:
        """Bytes that a node was told and did not take yet."""
        return self._transport.waiting(session) if self._transport is not None else 0

    def reconnect(self, session: str) -> None:
        """Let a node and this one say all again that concerns both, as after a lost link."""
        if self._transport is not None:
            self._transport.renew(session)

    def send_to_owner(self, log: str, word: PeerMessageType, *facts: Any) -> None:
        """Say something to the home of a log."""
        self.tell(self.home(log), word, *facts)

    # -- members come and go

    def open(self, wire: PeerTransport) -> None:
        """Others may say something from now on: what they say of logs waits until these are known, see `joined`."""
        self._transport, self.is_joining = wire, True

    def join(self, members: NodeMembers) -> None:
        """Be one of these; without others all logs are at home here."""
        self.is_joining = bool(members.others)
        self._set_members(members)

    def joined(self) -> None:
        """The logs of the broker are known here."""
        self.is_joining = False
        self._inbox.handle_deferred()
        self.coming.take()

    async def follow(self, members: NodeMembers) -> None:
        """These are the members from now on: logs go and come. Returns when what had to go is gone."""
        await self.handoff_out.stop(members)
        self.append_notices.tell()  # what was stored until now concerns the homes of until now
        gone = [session for session in self.others if session not in members]
        known = set(self.others)
        self._set_members(members)
        self.handoff_out.release()
        for session in gone:
            self._on_member_removed(session)
        for session in [each for each in self.others if each not in known]:  # it may be linked for a while already
            self._send_interest(session)
        for log in self._broker.queues:
            self._reassign_log(log)
        for session in self.others:
            self.handoff_out.announce_done(session)
        self._broker.scheduled_jobs.start()  # those of a node that is gone, too
        self.shares.report_all()
        self._broker.temporaries.strangers.adopt_orphans()
        self._inbox.handle_deferred()
        self.coming.take()

    def _reassign_log(self, log: MessageLog) -> None:
        """The members are others: who is to know of a log?"""
        if not self.others:
            self._make_exclusive(log)
        elif log.away and not self.is_here(log.name):
            self.inbound_consumers.forget(log)
            log.consumers.clear()
            self.abroad.say_all(log)

    def _set_members(self, members: NodeMembers) -> None:
        self.members, self.others = members, [each.session for each in members.others]
        self.coming.moved()
        self.append_notices.moved()
        self.remote_deliveries.moved()
        for session in self.others:
            self.tell(session, PeerMessageType.EPOCH, members.epoch)
            if self.is_joining:
                self.tell(session, PeerMessageType.EPOCH_DONE, members.epoch)

    def _on_member_removed(self, session: str) -> None:
        """A node is no member any more."""
        self._remote_advisories.gone(session)
        self.inbound_consumers.gone(session)
        self.known.forget(session)
        self.past.forget(session)
        self.remote_appends.forget(session)
        self.wanted.forget(session)
        self._broker.duplicates.forget(session)
        self.shares.gone(session)
        self._inbox.forget(session)
        self.coming.forget(session)
        self.handoff_out.forget(session)

    def _make_exclusive(self, log: MessageLog) -> None:
        """Nobody else writes any more; what others wrote and could not tell of is read."""
        log.shared = False
        self._reload_unreported(log)

    def _reload_unreported(self, log: MessageLog) -> None:
        """Others may have stored something in it and not reached us."""
        if not log.away:
            log.recheck_store()
            self.depth_recount.note(log)
            self._broker.dispatcher.touch(log)

    # -- what is heard

    def linked(self, session: str) -> None:
        """A node hears us: it is told all that concerns it."""
        self._inbox.begins(session)
        self.tell(session, PeerMessageType.EPOCH, self.members.epoch)
        self.known.linked(session)
        self._send_interest(session)
        self.shares.report_all()
        if self.is_joining:
            self.tell(session, PeerMessageType.EPOCH_DONE, self.members.epoch)
            return
        for log in self._broker.queues:
            if log.away and self.home(log.name) == session:
                self.abroad.say_all(log)
        self.handoff_out.announce_done(session)

    def _send_interest(self, session: str) -> None:
        """Let a node know what is listened to and wanted here, and ask it the same of consumers."""
        self.known.send_listeners(session)
        self.wanted.say_all(session)
        self._broker.duplicates.send_all_bids(session)
        self._remote_advisories.ask(session)

    def unlinked(self, session: str) -> None:
        """A node hears us no longer: what it says next is said anew."""
        self.coming.forget(session)
        self.handoff_out.forget(session)
        self._inbox.ends(session)
        self.known.unlinked(session)
        self.remote_deliveries.unlinked(session)
        self.contending.unlinked(session)
        self.inbound_consumers.unlinked(session)

    def heard(self, session: str, word: PeerMessageType, facts: list[Any]) -> None:
        """A node says something."""
        self._inbox.heard(session, word, facts)
        self.pump()

    def _on_epoch_done(self, session: str, epoch: int) -> None:
        self.coming.reached(session, epoch)
        if epoch == self.members.epoch:  # else it has not told in this one yet what its clients hold
            self.inbound_consumers.reached(session)
        for log in self._broker.queues:  # its link may have been lost before
            self._reload_unreported(log)
        self.coming.take()

    def _on_logs(self, session: str, id: int, rows: Iterable[tuple[str, str | None]]) -> None:
        for name, attributes in rows:
            self._broker.store_recovery.learn(name, attributes)
        self.tell(session, PeerMessageType.CONFIRMED, id, "")
