"""Steps: what operators do to messages named by their numbers, a few at a time, with an outcome for each.

A step is done whole, in one unit of the store: what leaves one place is in the other in the same moment, so that who
asks again, not knowing how the first time ended, finds what was done gone and does nothing twice. A copy, edited or
not, leaves nothing behind that would tell: who does not know whether a step of copying was done must not repeat it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokerapp import clock
from brokerapp.broker import Broker
from brokerapp.client import Placed
from brokerapp.destination import Destination, Kind
from brokerapp.edit import Edit, home_of
from brokerapp.engine.dead_letters import CAUSE
from brokerapp.engine.entry import Entry
from brokerapp.engine.message_log import MessageLog
from brokerapp.engine.window import PAGE
from brokerapp.entries import entry_of
from brokerapp.errors import RequestRefused
from brokerapp.handwritten import TestSend
from brokerapp.message import Message
from brokerapp.recording.schema import DROP
from brokerapp.store import StoredEntry
from brokerapp.transfers import NOTHING, Transfers, check_here

#: Messages of one step: bounds how long one call of the store takes.
MAX_STEP = 500
#: What can be done to messages.
MOVE, COPY, RETRY, REMOVE, EDIT = ACTIONS = ("move", "copy", "retry", "remove", "edit")
#: How it ended for a message. Held: a consumer has it. Gone: it is in the queue no more. Refused: the detail says why.
DONE, HELD, GONE, REFUSED = "done", "held", "gone", "refused"

#: Headers that say who sent a message again, when (milliseconds since the epoch) and how often; and of which message,
#: which has another id, an edited one was made.
COUNT, ACTOR, TIME, EDITED_FROM = "resubmitCount", "resubmittedBy", "resubmittedTime", "resubmittedFrom"
#: What a dead letter says of its failure: not true any more when it is tried again. Its way (`dlqRoute`) stays.
FAILURE = dict.fromkeys((CAUSE, "dlqDeliveryCount", "dlqConsumer", "dlqTime"))


@dataclass
class Deal:
    """What becomes of the messages of one step."""

    log: MessageLog
    action: str
    target: Callable[[Entry], Destination | None] | None
    actor: str
    edit: Edit | None = None  #: of the action of that name
    outcomes: dict[int, tuple[str, str]] = field(default_factory=dict)  #: by number: how it ended, and a detail
    ids: dict[int, str] = field(default_factory=dict)  #: by number: message-ids of those that were found
    new_ids: dict[int, str] = field(default_factory=dict)  #: by number: message-ids of what edited ones became

    @property
    def takes(self) -> bool:
        """Whether messages leave the queue."""
        return self.action != COPY and not (self.edit is not None and self.edit.keeps)


class Steps:
    """What operators do to messages whose numbers they know."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._transfers = broker, Transfers(broker)

    async def step(
        self,
        action: str,
        queue: str,
        seqs: list[int],
        target: str | None = None,
        actor: str = "",
        edit: dict[str, Any] | None = None,
    ) -> list[list[Any]]:
        """Do this to these messages: number, outcome, detail, message-id and the new one of each, in their order."""
        if action not in ACTIONS:
            raise RequestRefused(f"{action!r} is none of {', '.join(ACTIONS)}")
        if len(seqs) > MAX_STEP:
            raise RequestRefused(f"{len(seqs)} messages are more than the {MAX_STEP} of one step")
        log = self._transfers.log_of(queue)
        deal = Deal(log, action, self._target(log, action, target), actor, _edit(action, edit))
        await self._each_page(log, sorted(set(seqs)), lambda found: self._done_with(deal, found))
        await self._broker.committer.barrier()
        self._broker.delivery.touched[log] = None
        return [
            [seq, *deal.outcomes.get(seq, (GONE, "")), deal.ids.get(seq, ""), deal.new_ids.get(seq, "")] for seq in seqs
        ]

    async def edit(self, queue: str, seq: int, message: dict[str, Any], actor: str) -> dict[str, Any]:
        """Send a message in place of this one, which is gone in the same moment; id and places of the new one.

        Raises RequestRefused when it is not there to be replaced.
        """
        wanted = TestSend.from_json(message)
        log, answer = self._transfers.log_of(queue), {}

        def replace(found: list[StoredEntry]) -> asyncio.Future[str] | None:
            [entry] = [entry_of(log.name, each) for each in found if each.seq == seq] or [None]
            if entry is None:
                raise RequestRefused(f"message {seq} is in {log.destination} no more")
            target = Destination.parse(wanted.destination)
            self._broker.publishing.check(target)
            new = self._anew(entry, wanted, actor)
            placed = self._broker.publishing.on_its_way(new, target)
            check_here(log)
            if not log.seize([entry]):
                raise RequestRefused(f"message {seq} is held by a consumer")
            answer.update(id=new.id, places=_places(placed))
            self._transfers.leave(log, [entry])
            return self._transfers.submit([placed], [entry])

        await self._each_page(log, [seq], replace, must_find=True)
        await self._broker.committer.barrier()
        return answer

    def _target(self, log: MessageLog, action: str, target: str | None):
        if action == REMOVE:
            return None
        if action == RETRY and not target:
            return self._transfers.came_from
        if action == EDIT:
            return self._edited_target(log, target)
        if not target:
            raise RequestRefused(f"to {action} messages needs a target")
        return self._transfers.checked(log, target)

    def _edited_target(self, log: MessageLog, target: str | None) -> Callable[[Entry], Destination]:
        """Where edited messages go, which may be the queue they are in. Raises RequestRefused."""
        check = self._broker.publishing.check
        to = Destination.parse(target) if target else None
        if to is not None and (to.is_pattern or to.kind is Kind.SUBSCRIPTION):
            raise RequestRefused(f"{to} is not one destination")

        def of(entry: Entry) -> Destination:
            headers = entry.message.headers
            goal = to or home_of(headers, headers.get("original-destination"), log.destination)
            check(goal)
            return goal

        return of

    # -- pages: what is found is dealt with in the very moment in which the store's answer comes

    async def _each_page(
        self, log: MessageLog, left: list[int], deal: Callable[[list[StoredEntry]], Any], must_find: bool = False
    ) -> None:
        """Hand over what is found of these numbers. As they may be far apart, a short page follows one with few."""
        count = min(len(left), PAGE)
        while left:
            wanted, last = set(left), 0

            def of_page(found: list[StoredEntry], wanted: set[int] = wanted) -> list[StoredEntry]:
                return [each for each in found if each.seq in wanted]

            found, work = await self._page(log, left[0] - 1, count, lambda found: deal(of_page(found)), must_find)
            if work is not None:
                await work
            if not found:
                return
            last = found[-1].seq
            hits = len(of_page(found))
            left = [seq for seq in left if seq > last]
            count = min(len(left), PAGE, max(1, 2 * hits))

    async def _page(self, log: MessageLog, after: int, count: int, deal: Callable, must_find: bool):
        while True:
            window, answer = log.window, asyncio.get_running_loop().create_future()

            def read(found: list[StoredEntry], window=window, answer=answer) -> None:
                if window != log.window:  # some of it may be settled meanwhile
                    answer.set_result(None)
                    return
                try:
                    answer.set_result((found, deal(found) if found or must_find else None))
                except Exception as error:  # whoever reads must not fail; who asked is told
                    answer.set_exception(error)

            self._broker.committer.read(log.name, after, count, read)
            if (page := await answer) is not None:
                return page

    # -- one page

    def _done_with(self, deal: Deal, found: Iterable[StoredEntry]) -> asyncio.Future | None:
        """Take what can be taken, and let it be stored where it goes."""
        ways: dict[int, tuple[Entry, Placed | None]] = {}
        for entry in [entry_of(deal.log.name, each) for each in found]:
            deal.ids[entry.seq] = entry.message.id
            try:
                ways[entry.seq] = entry, self._way(deal, entry)
            except RequestRefused as error:
                deal.outcomes[entry.seq] = REFUSED, str(error)
        if deal.takes:
            check_here(deal.log)
            seized = deal.log.seize([entry for entry, _ in ways.values()])
            deal.outcomes |= dict.fromkeys(ways.keys() - seized, (HELD, "a consumer holds it"))
            ways = {seq: ways[seq] for seq in ways if seq in seized}
        if not ways:
            return None
        entries = [entry for entry, _ in ways.values()]
        if deal.action == REMOVE:
            self._remove(deal, entries)
            return None
        if deal.takes:
            self._transfers.leave(deal.log, entries)
        placed = {seq: place for seq, (_, place) in ways.items() if place is not None}
        return asyncio.ensure_future(self._stored(deal, placed, entries if deal.takes else ()))

    def _way(self, deal: Deal, entry: Entry) -> Placed | None:
        """The way a message takes; raises RequestRefused when it has none."""
        if deal.target is None:
            return None
        target = deal.target(entry)
        if target is None:
            raise RequestRefused("it does not say where it failed: name a target")
        if deal.edit is not None:
            message = entry.message
            wanted = deal.edit.applied(message.headers, message.body, target.stomp, clock.now_ms())
            return self._transfers.on_its_way(self._anew(entry, wanted, deal.actor), target)
        headers = self._resubmitted(entry, deal.actor) if deal.action == RETRY else NOTHING
        return self._transfers.placed(deal.log, entry, target, headers)

    def _anew(self, entry: Entry, wanted: TestSend, actor: str) -> Message:
        """The edited message, under an id of its own: it says of which one it was made."""
        marks = {**self._resubmitted(entry, actor), EDITED_FROM: entry.message.id}
        return self._broker.publishing.message(
            wanted.send({name: text for name, text in marks.items() if text is not None})
        )

    @staticmethod
    def _resubmitted(entry: Entry, actor: str) -> Mapping[str, str | None]:
        before = entry.message.headers.get(COUNT, "0")
        times = int(before) + 1 if before.isdecimal() and len(before) < 10 else 1
        return {**FAILURE, COUNT: str(times), ACTOR: actor or None, TIME: str(clock.now_ms())}

    def _remove(self, deal: Deal, entries: list[Entry]) -> None:
        self._transfers.leave(deal.log, entries)
        self._broker.committer.settle(entries)
        now_us = time.time_ns() // 1000
        for entry in entries:
            self._broker.failures.record(DROP, now_us, entry, None, f"removed by {deal.actor or 'an operator'}")
            deal.outcomes[entry.seq] = DONE, ""

    async def _stored(self, deal: Deal, placed: dict[int, Placed], settles: list[Entry] | tuple[()]) -> None:
        if deal.edit is not None:
            for place in placed.values():
                self._broker.recorder.enqueue(place.message.born_us, (place.message,), str(place.destination), None)
        refused = await self._transfers.submit(list(placed.values()), settles)
        for seq, place in placed.items():
            deal.outcomes[seq] = (REFUSED, f"{refused} is full") if refused else (DONE, ", ".join(_places(place)))
            if deal.edit is not None and not refused:
                deal.new_ids[seq] = place.message.id


def _edit(action: str, edit: dict[str, Any] | None) -> Edit | None:
    """What is to be changed. Raises RequestRefused."""
    if (action == EDIT) != (edit is not None):
        raise RequestRefused("to edit messages needs an edit, and nothing else takes one")
    found = Edit.from_json(edit) if edit is not None else None
    if found is not None:
        found.check()
    return found


def _places(placed: Placed) -> list[str]:
    """Where a message came to: the logs that keep it, and topics."""
    logs = [log.name for group in placed.route.groups for log in group.logs]
    return logs + [str(copy.destination) for copy in placed.route.topics]
