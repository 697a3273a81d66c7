"""Steps: what operators do to messages named by their numbers, a few at a time, with an outcome for each.

A step is done whole, in one unit of the store: what leaves one place is in the other in the same moment, so that who
asks again, not knowing how the first time ended, finds what was done gone and does nothing twice. A copy, edited or
not, leaves nothing behind that would tell: who does not know whether a step of copying was done must not repeat it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from brokerapp.admin.handlers.bulk_moves import NOTHING, BulkMoves, check_here
from brokerapp.core.broker import Broker
from brokerapp.core.redelivery.dead_lettering import DAMAGED
from brokerapp.engine.clients.client import RoutedMessage
from brokerapp.engine.dispatch.dispatch_window import PAGE_SIZE
from brokerapp.engine.dispatch.message_log import MessageLog
from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.engine.editing.message_properties import BROKER_ONLY, check_properties
from brokerapp.engine.editing.operator_message import OperatorMessage
from brokerapp.engine.editing.resubmit_target import edit_target
from brokerapp.engine.entries.entry_factory import log_entry_of
from brokerapp.engine.entries.log_entry import LogEntry
from brokerapp.engine.policy.broker_headers import (
    FAILURE,
    ORIGIN,
    RESUBMIT_COUNT,
    RESUBMITTED_BY,
    RESUBMITTED_FROM,
    RESUBMITTED_TIME,
    broker_headers,
    failure_history,
)
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, DestinationKind
from brokerapp.model.message import Message
from brokerapp.store import STORE, StoredLogEntry
from brokerapp.system import clock
from brokerapp.tracing.schema import MOVE as MOVED
from brokerapp.tracing.schema import REMOVE as REMOVED

#: Messages of one step: bounds how long who asks for it waits.
MAX_STEP = 500
#: What can be done to messages.
MOVE, COPY, RETRY, REMOVE, EDIT = ACTIONS = ("move", "copy", "retry", "remove", "edit")
#: How it ended for a message. Held: a consumer has it. Gone: it is in the queue no more. Refused: the detail says why.
DONE, HELD, GONE, REFUSED = "done", "held", "gone", "refused"


#: What takes the place of a message that goes there.
EditMessage = Callable[[LogEntry, Destination], OperatorMessage]


@dataclass
class StepPlan:
    """What becomes of the messages of one step."""

    log: MessageLog
    action: str
    target: Callable[[LogEntry], Destination | None] | None
    actor: str
    anew: EditMessage | None = None  #: of an edit
    takes: bool = True  #: whether messages leave the queue
    page: int = PAGE_SIZE  #: messages that are dealt with in one unit of the store, at most
    outcomes: dict[int, tuple[str, str]] = field(default_factory=dict)  #: by number: how it ended, and a detail
    ids: dict[int, str] = field(default_factory=dict)  #: by number: message-ids of those that were found
    edited: dict[int, RoutedMessage] = field(default_factory=dict)  #: by number: what edited ones became
    used: dict[str, int] = field(default_factory=dict)  #: of an edit: bytes that each log holds

    def new_id(self, seq: int) -> str:
        """The message-id of what an edited one became; "" for any other."""
        return self.edited[seq].message.id if seq in self.edited else ""


class MessageOperations:
    """What operators do to messages whose numbers they know."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._transfers = broker, BulkMoves(broker)

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
        log, wanted = self._transfers.log_of(queue), _edit(action, edit)
        deal = StepPlan(log, action, self._target(log, action, target), actor, takes=action != COPY)
        if wanted is not None:
            deal.anew, deal.takes, deal.page = _edited_by(wanted), not wanted.keeps, wanted.batch_size(PAGE_SIZE)
        await self._carry_out(deal, sorted(set(seqs)))
        return [[seq, *deal.outcomes.get(seq, (GONE, "")), deal.ids.get(seq, ""), deal.new_id(seq)] for seq in seqs]

    async def edit(self, queue: str, seq: int, message: dict[str, Any], actor: str) -> dict[str, Any]:
        """Send a message in place of this one, which is gone in the same moment; id and places of the new one.

        Raises RequestRefused when it is not there to be replaced.
        """
        wanted = OperatorMessage.from_json(message)
        check_properties(wanted.properties)
        log = self._transfers.log_of(queue)
        deal = StepPlan(log, EDIT, self._edited_target(log, wanted.destination), actor, lambda *_: wanted)
        await self._carry_out(deal, [seq])
        outcome, why = deal.outcomes.get(seq, (GONE, ""))
        if outcome == GONE:
            raise RequestRefused(f"message {seq} is in {log.destination} no more")
        if outcome != DONE:
            raise RequestRefused(f"message {seq} stays in {log.destination}: {why}")
        return {"id": deal.new_id(seq), "places": _places(deal.edited[seq])}

    async def _carry_out(self, deal: StepPlan, seqs: list[int]) -> None:
        if deal.anew is not None and deal.takes:
            answer = asyncio.get_running_loop().create_future()
            self._broker.commits.read_with(lambda store: store.logs.used_bytes(), answer.set_result)
            _, deal.used = await answer
        await self._each_page(deal, seqs)
        await self._broker.commits.barrier()
        self._broker.dispatcher.touch(deal.log)

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

    def _edited_target(self, log: MessageLog, target: str | None) -> Callable[[LogEntry], Destination]:
        """Where edited messages go, which may be the queue they are in. Raises RequestRefused."""
        check = self._broker.publisher.check
        to = Destination.parse(target) if target else None
        if to is not None and to.kind is DestinationKind.SUBSCRIPTION:
            raise RequestRefused(f"{to} is a subscription. Choose a queue or topic as the target.")
        if to is not None:
            self._broker.creation.check_named(to)

        def of(entry: LogEntry) -> Destination:
            headers = entry.message.headers
            goal = to or edit_target(headers, headers.get(ORIGIN), log.destination)
            check(goal)
            return goal

        return of

    # -- pages: what is found is dealt with in the very moment in which the store's answer comes

    async def _each_page(self, deal: StepPlan, left: list[int]) -> None:
        """Deal with what is found of these numbers. As they may be far apart, a short page follows one with few."""
        count = min(len(left), deal.page)
        while left:
            wanted = set(left)
            found, work = await self._page(deal, wanted, left[0] - 1, count)
            if work is not None:
                await work
            if not found:
                return
            last = found[-1].seq
            hits = sum(each.seq in wanted for each in found)
            left = [seq for seq in left if seq > last]
            count = min(len(left), deal.page, max(1, 2 * hits))

    async def _page(self, deal: StepPlan, wanted: set[int], after: int, count: int):
        log = deal.log
        while True:
            window, answer = log.window, asyncio.get_running_loop().create_future()

            def read(found: list[StoredLogEntry], window=window, answer=answer) -> None:
                if window != log.window:  # some of it may be settled meanwhile
                    answer.set_result(None)
                    return
                try:
                    answer.set_result((found, self._apply(deal, [each for each in found if each.seq in wanted])))
                except Exception as error:  # whoever reads must not fail; who asked is told
                    answer.set_exception(error)

            self._broker.commits.read(log.name, after, count, read)
            if (page := await answer) is not None:
                return page

    # -- one page

    def _apply(self, deal: StepPlan, found: Iterable[StoredLogEntry]) -> asyncio.Future | None:
        """Take what can be taken, and let it be stored where it goes."""
        entries = [log_entry_of(deal.log.name, each) for each in found]
        deal.ids |= {entry.seq: entry.message.id for entry in entries}
        if deal.takes:  # before a way is looked for: what stays where it is lets no queue exist
            check_here(deal.log)
            free = deal.log.free(entries)
            deal.outcomes |= {each.seq: (HELD, "a consumer holds it") for each in entries if each.seq not in free}
            entries = [each for each in entries if each.seq in free]
        ways = self._routes(deal, entries)
        taken = [entry for entry in entries if entry.seq in ways]
        if not taken:
            return None
        if deal.anew is not None and deal.takes and (full := self._limit_reached(deal, taken, ways)):
            deal.outcomes |= dict.fromkeys(ways, (REFUSED, full))
            return None
        if deal.takes:
            deal.log.reserve(taken)
            kind, done = (REMOVED, "removed") if deal.action == REMOVE else (MOVED, "moved")
            self._transfers.leave(deal.log, taken, kind, f"{done} by {deal.actor or 'an operator'}")
        if deal.action == REMOVE:
            self._remove(deal, taken)
            return None
        placed = {seq: place for seq, place in ways.items() if place is not None}
        return asyncio.ensure_future(self._stored(deal, placed, taken if deal.takes else ()))

    def _routes(self, deal: StepPlan, entries: Iterable[LogEntry]) -> dict[int, RoutedMessage | None]:
        """By number, the way each takes; what has none is refused."""
        ways: dict[int, RoutedMessage | None] = {}
        for entry in entries:
            try:
                ways[entry.seq] = self._route(deal, entry)
            except RequestRefused as error:
                deal.outcomes[entry.seq] = REFUSED, str(error)
        return ways

    def _route(self, deal: StepPlan, entry: LogEntry) -> RoutedMessage | None:
        """The way a message takes; raises RequestRefused when it has none."""
        if deal.target is None:
            return None
        target = deal.target(entry)
        if entry.message.is_damaged:
            raise RequestRefused(DAMAGED)
        if target is None:
            raise RequestRefused("it does not say where it failed: name a target")
        if deal.anew is not None:
            return self._transfers.on_its_way(self._edited(entry, deal.anew(entry, target), deal.actor), target)
        headers = self._resubmitted(entry, deal.actor) if deal.action == RETRY else NOTHING
        return self._transfers.placed(deal.log, entry, target, headers)

    def _limit_reached(
        self, deal: StepPlan, taken: Sequence[LogEntry], ways: Mapping[int, RoutedMessage | None]
    ) -> str:
        """Why these cannot be stored in the place of what they are made of, which no limit stands in the way of; "".

        What is moved takes the room that it had. What is edited may take more: of the store, and of each queue that its
        policy bounds, as a client's send would find it. A queue that holds nothing else takes any one message.
        """
        committer, bounds = self._broker.commits, self._broker.limits
        placed, freed = [way for way in ways.values() if way is not None], sum(each.size for each in taken)
        more, limit = sum(len(way.stored) for way in placed) - freed, committer.limits.total
        if limit and 0 < more > limit - committer.used:
            return bounds.describe(STORE)
        coming = [(log.name, len(way.stored)) for way in placed for group in way.route.groups for log in group.logs]
        counts, added = Counter(name for name, _ in coming), Counter({deal.log.name: -freed})
        for name, size in coming:
            added[name] += size
        for name, size in added.items():
            left, limit = deal.used.get(name, 0) - (freed if name == deal.log.name else 0), bounds.of_log(name)
            if limit and 0 < size > limit - deal.used.get(name, 0) and (left > 0 or counts[name] > 1):
                return f"what comes of it does not fit: {bounds.describe(name)}"
        for name, size in added.items():
            deal.used[name] = deal.used.get(name, 0) + size
        return ""

    def _edited(self, entry: LogEntry, wanted: OperatorMessage, actor: str) -> Message:
        """The edited message, under an id of its own: it says of which one it was made, and who sent that."""
        said = {name: value for name, value in entry.message.headers.items() if name in BROKER_ONLY}
        marks = {**said, **self._resubmitted(entry, actor), RESUBMITTED_FROM: entry.message.id}
        return self._broker.publisher.message(
            wanted.send({name: text for name, text in marks.items() if text is not None})
        )

    @staticmethod
    def _resubmitted(entry: LogEntry, actor: str) -> Mapping[str, str | None]:
        headers = entry.message.headers
        times = int(broker_headers(headers).get(RESUBMIT_COUNT, "0")) + 1
        marks = {RESUBMIT_COUNT: str(times), RESUBMITTED_BY: actor or None, RESUBMITTED_TIME: str(clock.now_ms())}
        return {**dict.fromkeys(FAILURE), **failure_history(headers), **marks}

    def _remove(self, deal: StepPlan, entries: list[LogEntry]) -> None:
        self._broker.commits.remove_settled(entries)
        for entry in entries:
            deal.outcomes[entry.seq] = DONE, ""

    async def _stored(
        self, deal: StepPlan, placed: dict[int, RoutedMessage], settles: list[LogEntry] | tuple[()]
    ) -> None:
        is_edit = deal.anew is not None
        refused = await self._transfers.submit(list(placed.values()), settles, are_new=is_edit)
        for seq, place in placed.items():
            deal.outcomes[seq] = (REFUSED, f"{refused} is full") if refused else (DONE, ", ".join(_places(place)))
        if is_edit and not refused:
            deal.edited |= placed


def _edited_by(edit: MessageEdit) -> EditMessage:
    """What this edit makes of messages."""

    def anew(entry: LogEntry, target: Destination) -> OperatorMessage:
        return edit.applied(entry.message.headers, entry.message.body, target.stomp, clock.now_ms())

    return anew


def _edit(action: str, edit: dict[str, Any] | None) -> MessageEdit | None:
    """What is to be changed. Raises RequestRefused."""
    if (action == EDIT) != (edit is not None):
        raise RequestRefused("to edit messages needs an edit, and nothing else takes one")
    found = MessageEdit.from_json(edit) if edit is not None else None
    if found is not None:
        found.check()
    return found


def _places(placed: RoutedMessage) -> list[str]:
    """Where a message came to: the logs that keep it, and topics."""
    logs = [log.name for group in placed.route.groups for log in group.logs]
    return logs + [str(copy.destination) for copy in placed.route.topics]
