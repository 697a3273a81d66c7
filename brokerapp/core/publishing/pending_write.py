"""ClientUnit: what a client asked of the store in one piece, and whom to tell when that is done or refused.

It knows its client and its messages' ways, because a full place may let it wait and try again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from brokerapp.core.publishing.concurrent_dispatch import NOTHING, Given
from brokerapp.engine.clients.client import Client, RoutedMessage
from brokerapp.engine.dispatch.subscription import Subscription
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.store import PendingWrite

if TYPE_CHECKING:
    from brokerapp.core.flow_control.wait_queue import BlockedSend
    from brokerapp.core.publishing.message_writer import MessageWriter


class ClientWrite(PendingWrite):
    """A unit with the client that waits for it. A class of its own because there is one for every message."""

    __slots__ = ("client", "given", "is_commit", "placed", "receipt", "settled", "size", "storing", "undo", "waiting")

    def __init__(
        self,
        storing: MessageWriter,
        client: Client,
        placed: Sequence[RoutedMessage],
        appends: list[tuple[bytes, list[tuple[str, str, str]]]],
        settled: Sequence[tuple[Subscription, str, LogEntry]],
        settles: Sequence[LogEntry],
        receipt: str | None,
        undo: Callable[[], None] | None,
        given: Given = NOTHING,
        *,
        is_commit: bool = False,
    ) -> None:
        self.settled, self.given = settled, given
        self.is_commit = is_commit  #: of a transaction: that its messages were sent is recorded when it is done
        self.appends, self.settles, self.moves = appends, settles, False
        self.storing, self.client, self.placed, self.receipt, self.undo = storing, client, placed, receipt, undo
        self.size = sum([len(each.stored) or each.message.size for each in placed])
        self.droppable, self.dropped = (), ()
        self.waiting: BlockedSend | None = None  #: its turn at a full place
        for each in placed:
            if each.route.dropping:
                self.droppable = _droppable(placed)
                break

    def done(self, seq: int, refused: str) -> None:
        self.storing.finish(self, seq, refused)


class ScheduledWrite(ClientWrite):
    """A client's unit with messages to be delivered later."""

    __slots__ = ("jobs",)

    def done(self, seq: int, refused: str) -> None:
        super().done(seq, refused)
        if not refused:
            self.storing.kept(self.jobs)


class BridgedWrite(ClientWrite):
    """What the bridge of another broker passes on, and may pass on again."""

    __slots__ = ("handover", "repeated")


def appends_of(placed: Sequence[RoutedMessage]) -> list[tuple[bytes, list[tuple[str, str, str]]]]:
    """The copies as a unit asks the store for them, see Unit."""
    return [(each.stored, group.rows) for each in placed for group in each.route.groups]


def _droppable(placed: Sequence[RoutedMessage]) -> list[tuple[int, int, int]]:
    """The copies that are rather dropped than refused, see Unit."""
    groups = [group for each in placed for group in each.route.groups]
    return [(number, *each) for number, group in enumerate(groups, start=1) for each in group.droppable]
