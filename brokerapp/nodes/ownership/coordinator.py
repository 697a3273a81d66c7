"""Homes: which logs this node dispatches from, as the members of the broker come and go. A part of the broker.

Decision 14 says why a log never has two nodes that dispatch from it. A node that is alone has all logs, and pays
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.delivery.append_notices import Deposits
from brokerapp.nodes.delivery.inbound_consumers import Guests
from brokerapp.nodes.delivery.outbound_consumers import Abroad
from brokerapp.nodes.delivery.remote_appends import Arrivals
from brokerapp.nodes.delivery.remote_deliveries import Gifts
from brokerapp.nodes.delivery.retained_sync import Past
from brokerapp.nodes.delivery.selector_interest import Wanted
from brokerapp.nodes.links.inbox import Hearing
from brokerapp.nodes.links.pending_confirmations import Waits
from brokerapp.nodes.links.propagation import Known
from brokerapp.nodes.links.protocol import Word
from brokerapp.nodes.membership.client_id_claims import Claims
from brokerapp.nodes.membership.ownership import Members
from brokerapp.nodes.membership.stats_aggregation import Shares
from brokerapp.nodes.ownership.depth_recount import Doubts
from brokerapp.nodes.ownership.handoff_in import Coming
from brokerapp.nodes.ownership.handoff_out import Leaving
from brokerapp.nodes.ownership.subscription_removal import Dropping
from brokerapp.nodes.ownership.subscription_takeover import Contending
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.core.advisories.remote_advisories import RemoteAdvisories
    from brokerapp.core.broker import Broker


class Wire(Protocol):
    """How other nodes are told things."""

    def tell(self, session: str, word: Word, *facts: Any) -> None: ...

    def is_up(self, session: str) -> bool: ...

    def waiting(self, session: str) -> int: ...

    def renew(self, session: str) -> None: ...


class Homes:
    """Ears of the links, see links.py."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.me = broker.session
        self.members = Members(0, (), self.me)
        self.others: list[str] = []  #: sessions of the other members
        self.joining = False  #: nothing is known of the broker's logs yet
        self.known, self.guests, self.abroad = Known(broker, self), Guests(broker, self), Abroad(broker, self)
        self.wanted, self.claims, self.doubts = Wanted(broker, self), Claims(broker, self), Doubts(broker)
        self.past, self.arrivals = Past(broker, self), Arrivals(broker)
        self.leaving, self.coming, self.shares = Leaving(broker, self), Coming(broker, self), Shares(broker, self)
        self.dropping, self.contending, self.waits = Dropping(broker, self), Contending(broker, self), Waits(broker)
        self._wire: Wire | None = None
        self.pump: Callable[[], None] = lambda: None  #: asked to give out, soon, what follows from what is heard
        self.is_sure: Callable[[], bool] = lambda: True  #: whether anything may be given out, see Membership.is_sure
        self.deposits, self.gifts = Deposits(self), Gifts(broker, self)
        self._hearing = Hearing(self, {
            Word.REACHED: self._heard_reached, Word.LOGS: self._heard_logs, Word.LISTENERS: self.known.heard_listeners,
            Word.SHARES: self.shares.heard, Word.WANTED: self.wanted.heard, Word.CLAIM: self.claims.heard,
            Word.RIVALS: lambda session, id, anew, rows: self._broker.duplicates.heard(session, id, anew, rows),
            Word.KNOWN: self.known.answered,
            Word.ARRIVED: self.arrivals.heard,
            Word.CONSUME: self.guests.consume, Word.CEASE: self.guests.cease, Word.CREDIT: self.guests.credit,
            Word.HELD: self.guests.hold, Word.SENT_OUT: self.coming.sent_out, Word.SETTLED: self.guests.settled,
            Word.DROP: self.dropping.heard, Word.CONSUMED: self.contending.heard,
            Word.RETURNED: lambda session, log, numbers, seen: self.guests.returned(session, log, numbers, seen=seen),
            Word.GIVEN: self.gifts.given, Word.WISHED: self.deposits.wished, Word.TOPIC: self.known.heard_topic,
            Word.PAST_WANTED: self.past.wanted, Word.PAST: self.past.heard,
            Word.CONSUMERS_WANTED: lambda session, id: self._elsewhere.wanted(session, id),
            Word.CONSUMERS: lambda session, rows, last: self._elsewhere.heard_all(session, rows, last=last),
        })  # fmt: skip

    @property
    def _elsewhere(self) -> RemoteAdvisories:
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
        log.away = self.joining or not self.is_here(log.name)
        self.leaving.stop_if_it_goes(log)

    def lost(self, log: str) -> None:
        """A log is no more."""
        self.wanted.gone(log)
        self.coming.lost(log)
        self.leaving.owned_again(log)
        self.deposits.lost(log)

    def lives_elsewhere(self, session: str) -> bool:
        """Whether this is another live member."""
        return bool(session) and session in self.others

    # -- telling others

    def when_sure(self, then: Callable[[], None]) -> None:
        """Go on when all that our clients asked so far is known to the nodes that must know of it."""
        if self.others:
            self._broker.commits.submit(PendingWrite(then=lambda *_: self.known.when_known(then)))
        else:
            then()

    def tell(self, session: str, word: Word, *facts: Any) -> None:
        """Say something to a node, if it hears us."""
        if self._wire is not None:
            self._wire.tell(session, word, *facts)

    def hears(self, session: str) -> bool:
        """Whether a node hears what it is told."""
        return self._wire is not None and self._wire.is_up(session)

    def waiting(self, session: str) -> int:
        """Bytes that a node was told and did not take yet."""
        return self._wire.waiting(session) if self._wire is not None else 0

    def begin_anew(self, session: str) -> None:
        """Let a node and this one say all again that concerns both, as after a lost link."""
        if self._wire is not None:
            self._wire.renew(session)

    def tell_home(self, log: str, word: Word, *facts: Any) -> None:
        """Say something to the home of a log."""
        self.tell(self.home(log), word, *facts)

    # -- members come and go

    def open(self, wire: Wire) -> None:
        """Others may say something from now on: what they say of logs waits until these are known, see `joined`."""
        self._wire, self.joining = wire, True

    def join(self, members: Members) -> None:
        """Be one of these; without others all logs are at home here."""
        self.joining = bool(members.others)
        self._take(members)

    def joined(self) -> None:
        """The logs of the broker are known here."""
        self.joining = False
        self._hearing.hear_early()
        self.coming.take()

    async def follow(self, members: Members) -> None:
        """These are the members from now on: logs go and come. Returns when what had to go is gone."""
        await self.leaving.stop(members)
        self.deposits.tell()  # what was stored until now concerns the homes of until now
        gone = [session for session in self.others if session not in members]
        known = set(self.others)
        self._take(members)
        self.leaving.let_go()
        for session in gone:
            self._forget(session)
        for session in [each for each in self.others if each not in known]:  # it may be linked for a while already
            self._tell_all(session)
        for log in self._broker.queues:
            self._find_home(log)
        for session in self.others:
            self.leaving.say_reached(session)
        self._broker.scheduled_jobs.start()  # those of a node that is gone, too
        self.shares.tell_again()
        self._broker.temporaries.strangers.inherit()
        self._hearing.hear_early()
        self.coming.take()

    def _find_home(self, log: MessageLog) -> None:
        """The members are others: who is to know of a log?"""
        if not self.others:
            self._be_alone(log)
        elif log.away and not self.is_here(log.name):
            self.guests.forget(log)
            log.consumers.clear()
            self.abroad.say_all(log)

    def _take(self, members: Members) -> None:
        self.members, self.others = members, [each.session for each in members.others]
        self.coming.moved()
        self.deposits.moved()
        self.gifts.moved()
        for session in self.others:
            self.tell(session, Word.EPOCH, members.epoch)
            if self.joining:
                self.tell(session, Word.REACHED, members.epoch)

    def _forget(self, session: str) -> None:
        """A node is no member any more."""
        self._elsewhere.gone(session)
        self.guests.gone(session)
        self.known.forget(session)
        self.past.forget(session)
        self.arrivals.forget(session)
        self.wanted.forget(session)
        self._broker.duplicates.forget(session)
        self.shares.gone(session)
        self._hearing.forget(session)
        self.coming.forget(session)
        self.leaving.forget(session)

    def _be_alone(self, log: MessageLog) -> None:
        """Nobody else writes any more; what others wrote and could not tell of is read."""
        log.shared = False
        self._read_what_was_not_told(log)

    def _read_what_was_not_told(self, log: MessageLog) -> None:
        """Others may have stored something in it and not reached us."""
        if not log.away:
            log.look_again()
            self.doubts.note(log)
            self._broker.dispatcher.touched[log] = None

    # -- what is heard

    def linked(self, session: str) -> None:
        """A node hears us: it is told all that concerns it."""
        self._hearing.begins(session)
        self.tell(session, Word.EPOCH, self.members.epoch)
        self.known.linked(session)
        self._tell_all(session)
        self.shares.tell_again()
        if self.joining:
            self.tell(session, Word.REACHED, self.members.epoch)
            return
        for log in self._broker.queues:
            if log.away and self.home(log.name) == session:
                self.abroad.say_all(log)
        self.leaving.say_reached(session)

    def _tell_all(self, session: str) -> None:
        """Let a node know what is listened to and wanted here, and ask it the same of consumers."""
        self.known.say_listeners(session)
        self.wanted.say_all(session)
        self._broker.duplicates.say_all(session)
        self._elsewhere.ask(session)

    def unlinked(self, session: str) -> None:
        """A node hears us no longer: what it says next is said anew."""
        self.coming.forget(session)
        self.leaving.forget(session)
        self._hearing.ends(session)
        self.known.unlinked(session)
        self.gifts.unlinked(session)
        self.contending.unlinked(session)
        self.guests.unlinked(session)

    def heard(self, session: str, word: Word, facts: list[Any]) -> None:
        """A node says something."""
        self._hearing.heard(session, word, facts)
        self.pump()

    def _heard_reached(self, session: str, epoch: int) -> None:
        self.coming.reached(session, epoch)
        if epoch == self.members.epoch:  # else it has not told in this one yet what its clients hold
            self.guests.reached(session)
        for log in self._broker.queues:  # its link may have been lost before
            self._read_what_was_not_told(log)
        self.coming.take()

    def _heard_logs(self, session: str, id: int, rows: Iterable[tuple[str, str | None]]) -> None:
        for name, attributes in rows:
            self._broker.store_recovery.learn(name, attributes)
        self.tell(session, Word.KNOWN, id, "")
