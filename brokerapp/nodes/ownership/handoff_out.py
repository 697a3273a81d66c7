"""Leaving: the logs that are about to be at home on another node, until that is told to take them. A part of Homes.

A log that leaves is stopped first; what this node has under way of it is waited for; then it is let go, and its new
home is told who consumes it and what is held. That may take it when the store has, too, what our clients acknowledged
and gave back meanwhile: what it reads there is true then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.nodes.links.protocol import Word
from brokerapp.nodes.membership.ownership import Members
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.core.broker import Broker
    from brokerapp.nodes.ownership.coordinator import Homes

#: Why a log gives out nothing for a moment: its home is about to be another node.
MOVING = "its home moves"


class Leaving:
    """Those of one node."""

    def __init__(self, broker: Broker, homes: Homes) -> None:
        self._broker, self._homes = broker, homes
        self._coming: Members | None = None  # who the members are to be, while what leaves is stopped
        self._logs: list[MessageLog] = []
        self._telling: dict[str, PendingWrite] = {}  # session -> what the store does before that node is told
        #: Log -> (number, deliveries) of what was sent to consumers at other nodes when it left: some of that may have
        #: come too late to be delivered there.
        self._sent_out: dict[str, list[tuple[int, int]]] = {}

    async def stop(self, members: Members) -> None:
        """Give out nothing more of what leaves with these members; returns when nothing of it is under way."""
        self._coming, self._logs = members, []
        for log in self._broker.queues:
            self.stop_if_it_goes(log)
            if log.consumers:
                self._broker.consumers.mark(log)
        await self._broker.commits.barrier()

    def stop_if_it_goes(self, log: MessageLog) -> None:
        """The same of one log, which may have come to be just now."""
        if self._coming is None or not self._coming.others:
            return
        log.shared = True
        if not log.away and not self._coming.is_here(log.name):
            log.stopped.add(MOVING)
            self._logs.append(log)

    def let_go(self) -> None:
        """The members are those: what was stopped is at home elsewhere from now on."""
        self._coming = None
        for log in filter(self._broker.queues.holds, self._logs):
            self._let_go(log)

    def _let_go(self, log: MessageLog) -> None:
        self._sent_out[log.name] = [(entry.seq, entry.deliveries) for entry in self._homes.guests.sent_out(log.name)]
        self._broker.dispatcher.consumers.forget(log.name)
        self._homes.guests.forget(log)
        self._homes.abroad.move_out(log)
        log.away = True
        log.tenure += 1
        log.vacate()
        log.stopped.discard(MOVING)
        self._broker.durables.moved(log)

    def say_reached(self, session: str) -> None:
        """Let a node take what left us, once the store has what our clients acknowledged and gave back until now."""
        epoch = self._homes.members.epoch

        def say(*_: Any) -> None:
            if self._telling.get(session) is unit and self._homes.members.epoch == epoch:
                self._say_sent_out(session)
                self._homes.tell(session, Word.REACHED, epoch)

        unit = self._telling[session] = PendingWrite(then=say)
        self._broker.commits.submit(unit)

    def _say_sent_out(self, session: str) -> None:
        """Tell the next owner of logs what their consumers at other nodes may never have got."""
        if not self._homes.members.knows(session, Word.SENT_OUT):
            return
        for log, sent in self._sent_out.items():
            if sent and self._homes.home(log) == session:
                self._homes.tell(session, Word.SENT_OUT, log, sent)

    def owned_again(self, log: str) -> None:
        """Forget what was said of a log that this node owns again, or that is gone."""
        self._sent_out.pop(log, None)

    def forget(self, session: str) -> None:
        """A node hears us no longer: what it is to be told is told anew when it does."""
        self._telling.pop(session, None)
