"""Carries out steps: operations on a few messages named by their numbers, with an outcome for each.

A step is one unit of the store: a message leaves one destination in the moment it reaches the other. A caller that
repeats a step because it does not know the outcome finds the messages gone, and nothing is done twice. That does not
hold for copies, which leave no trace in the queue: a step that copies must not be repeated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from brokerapp.admin.handlers.log_pages import apply_to_page, require_local
from brokerapp.admin.handlers.message_transfer import UNCHANGED, MessageTransfer, TargetOf
from brokerapp.core.flow_control.limits import DestinationLimits
from brokerapp.core.ports import BrokerContext, DispatchQueue, MessageFactoryPort, SendAdmissionPort
from brokerapp.core.redelivery.dead_lettering import DAMAGED
from brokerapp.engine.clients.client import RoutedBatch
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
from brokerapp.model import JsonObject, JsonValue
from brokerapp.model.destination import Destination
from brokerapp.model.message import Message
from brokerapp.store import STORE, StoredLogEntry
from brokerapp.system import clock
from brokerapp.tracing.schema import MOVE as MOVED

#: Messages of one step: bounds how long its caller waits.
MAX_STEP = 500
#: Operations on messages.
MOVE, COPY, RETRY, REMOVE, EDIT = ACTIONS = ("move", "copy", "retry", "remove", "edit")
#: Outcomes for a message. Held: a consumer has it. Gone: it is not in the queue. Refused: the detail says why.
DONE, HELD, GONE, REFUSED = "done", "held", "gone", "refused"

#: Returns the message that replaces one that would go to this destination.
EditMessage = Callable[[LogEntry, Destination], OperatorMessage]


@dataclass
class StepPlan:
    """Plan of one step, and the outcomes so far by number of the message."""

    log: MessageLog
    action: str
    target_of: TargetOf | None
    actor: str
    edit: EditMessage | None = None
    removes: bool = True  #: whether messages leave the queue
    page_size: int = PAGE_SIZE  #: messages in one unit of the store, at most
    outcomes: dict[int, tuple[str, str]] = field(default_factory=dict)  #: outcome and detail
    ids: dict[int, str] = field(default_factory=dict)  #: message-ids of those that were found
    edited: dict[int, RoutedBatch] = field(default_factory=dict)  #: what replaced edited ones
    used_bytes: dict[str, int] = field(default_factory=dict)  #: of an edit: size of each log

    def new_id(self, seq: int) -> str:
        """Return the message-id of what replaced an edited message; "" for any other."""
        return self.edited[seq].message.id if seq in self.edited else ""


class MessageOperations:
    """Carries out steps, one page of messages after the other."""

    def __init__(
        self,
        *,
        context: BrokerContext,
        transfer: MessageTransfer,
        admission: SendAdmissionPort,
        messages: MessageFactoryPort,
        limits: DestinationLimits,
        dispatcher: DispatchQueue,
    ) -> None:
        self._commits, self._transfer = context.commits, transfer
        self._admission, self._messages = admission, messages
        self._limits, self._dispatcher = limits, dispatcher

    async def step(
        self,
        action: str,
        queue: str,
        seqs: list[int],
        target: str | None = None,
        actor: str = "",
        edit: JsonObject | None = None,
    ) -> list[list[JsonValue]]:
        """Carry out a step; return number, outcome, detail, message-id and new message-id for each message."""
        if action not in ACTIONS:
            raise RequestRefused(f"unknown action {action!r}; use one of {', '.join(ACTIONS)}")
        if len(seqs) > MAX_STEP:
            raise RequestRefused(f"Too many messages ({len(seqs)}): one step can process up to {MAX_STEP}.")
        log, wanted = self._transfer.find_log(queue), _parse_edit(action, edit)
        plan = StepPlan(log, action, self._target_of(log, action, target), actor, removes=action != COPY)
        if wanted is not None:
            plan.edit, plan.removes, plan.page_size = _editor(wanted), not wanted.keeps, wanted.batch_size(PAGE_SIZE)
        await self._carry_out(plan, sorted(set(seqs)))
        return [[seq, *plan.outcomes.get(seq, (GONE, "")), plan.ids.get(seq, ""), plan.new_id(seq)] for seq in seqs]

    async def edit(self, queue: str, seq: int, message: JsonObject, actor: str) -> JsonObject:
        """Replace a message by another one in one unit of the store; return the new id and its destinations.

        Raises RequestRefused when the message is not there or cannot be replaced.
        """
        wanted = OperatorMessage.from_json(message)
        check_properties(wanted.properties)
        log = self._transfer.find_log(queue)
        plan = StepPlan(log, EDIT, self._edit_target_of(log, wanted.destination), actor, lambda *_: wanted)
        await self._carry_out(plan, [seq])
        outcome, reason = plan.outcomes.get(seq, (GONE, ""))
        if outcome == GONE:
            raise RequestRefused(f"message {seq} is no longer in {log.destination}")
        if outcome != DONE:
            raise RequestRefused(f"message {seq} stays in {log.destination}: {reason}")
        return {"id": plan.new_id(seq), "places": _stored_in(plan.edited[seq])}

    async def _carry_out(self, plan: StepPlan, seqs: list[int]) -> None:
        if plan.edit is not None and plan.removes:
            answer: asyncio.Future[tuple[int, dict[str, int]]] = asyncio.get_running_loop().create_future()
            self._commits.read_with(lambda store: store.logs.used_bytes(), answer.set_result)
            _, plan.used_bytes = await answer
        await self._each_page(plan, seqs)
        await self._commits.barrier()
        self._dispatcher.touch(plan.log)

    def _target_of(self, log: MessageLog, action: str, target: str | None) -> TargetOf | None:
        if action == REMOVE:
            return None
        if action == RETRY and not target:
            return self._transfer.original_destination
        if action == EDIT:
            return self._edit_target_of(log, target)
        if not target:
            raise RequestRefused(f"{action} requires a target")
        return self._transfer.fixed_target(log, target)

    def _edit_target_of(self, log: MessageLog, target: str | None) -> TargetOf:
        """Return where edited messages go, which may be the queue they are in. Raises RequestRefused."""
        to = self._transfer.parse_target(target) if target else None

        def target_of(entry: LogEntry) -> Destination:
            headers = entry.message.headers
            destination = to or edit_target(headers, headers.get(ORIGIN), log.destination)
            self._admission.check(destination)
            return destination

        return target_of

    # -- pages

    async def _each_page(self, plan: StepPlan, left: list[int]) -> None:
        """Process the messages with these numbers. They may be far apart: a page with few of them is followed by a
        short one.
        """
        count = min(len(left), plan.page_size)
        while left:
            wanted = set(left)

            def apply(found: list[StoredLogEntry], wanted: set[int] = wanted) -> asyncio.Future[None] | None:
                return self._apply(plan, [each for each in found if each.seq in wanted])

            found, work = await apply_to_page(self._commits, plan.log, left[0] - 1, count, apply)
            if work is not None:
                await work
            if not found:
                return
            last = found[-1].seq
            hits = sum(each.seq in wanted for each in found)
            left = [seq for seq in left if seq > last]
            count = min(len(left), plan.page_size, max(1, 2 * hits))

    def _apply(self, plan: StepPlan, found: Iterable[StoredLogEntry]) -> asyncio.Future[None] | None:
        """Process those messages of a page that no consumer holds; return what completes when they are stored."""
        entries = [log_entry_of(plan.log.name, each) for each in found]
        plan.ids |= {entry.seq: entry.message.id for entry in entries}
        if plan.removes:  # before routing: a message that stays must not create a queue
            require_local(plan.log)
            free = plan.log.seqs_not_in_flight(entries)
            plan.outcomes |= {each.seq: (HELD, "a consumer holds it") for each in entries if each.seq not in free}
            entries = [each for each in entries if each.seq in free]
        routed = self._route_all(plan, entries)
        taken = [entry for entry in entries if entry.seq in routed]
        if not taken:
            return None
        if plan.edit is not None and plan.removes and (full := self._limit_reached(plan, taken, routed)):
            plan.outcomes |= dict.fromkeys(routed, (REFUSED, full))
            return None
        if plan.removes:
            plan.log.reserve(taken)
        actor = plan.actor or "an operator"
        if plan.action == REMOVE:
            self._transfer.remove(plan.log, taken, f"removed by {actor}")
            plan.outcomes |= dict.fromkeys((entry.seq for entry in taken), (DONE, ""))
            return None
        if plan.removes:
            self._transfer.leave(plan.log, taken, MOVED, f"moved by {actor}")
        stored = {seq: each for seq, each in routed.items() if each is not None}
        return asyncio.ensure_future(self._store(plan, stored, taken if plan.removes else ()))

    def _route_all(self, plan: StepPlan, entries: Iterable[LogEntry]) -> dict[int, RoutedBatch | None]:
        """Return by number what each message becomes; None: nothing. Those that cannot be routed are refused."""
        routed: dict[int, RoutedBatch | None] = {}
        for entry in entries:
            try:
                routed[entry.seq] = self._route(plan, entry)
            except RequestRefused as error:
                plan.outcomes[entry.seq] = REFUSED, str(error)
        return routed

    def _route(self, plan: StepPlan, entry: LogEntry) -> RoutedBatch | None:
        if plan.target_of is None:
            return None
        target = plan.target_of(entry)
        if entry.message.is_damaged:
            raise RequestRefused(DAMAGED)
        if target is None:
            raise RequestRefused("its original destination is unknown: choose a target")
        if plan.edit is not None:
            return self._transfer.route(self._edited(entry, plan.edit(entry, target), plan.actor), target)
        headers = self._resubmission(entry, plan.actor) if plan.action == RETRY else UNCHANGED
        return self._transfer.route_entry(plan.log, entry, target, headers)

    def _limit_reached(
        self, plan: StepPlan, taken: Sequence[LogEntry], routed: Mapping[int, RoutedBatch | None]
    ) -> str:
        """Return why edited messages cannot take the place of the originals, which are moved whatever the limits; "".

        A moved message needs the space that it had. An edited one may need more: of the store, and of each queue with a
        limit, as a client's SEND would. A queue that holds nothing else accepts one message of any size.
        """
        messages, freed = [each for each in routed.values() if each is not None], sum(each.size for each in taken)
        growth, limit = sum(each.size for each in messages) - freed, self._commits.limits.total
        if limit and 0 < growth > limit - self._commits.used:
            return self._limits.describe(STORE)
        appended = [(log.name, each.size) for each in messages for group in each.route.groups for log in group.logs]
        counts, added = Counter(name for name, _ in appended), Counter({plan.log.name: -freed})
        for name, size in appended:
            added[name] += size
        for name, size in added.items():
            used, limit = plan.used_bytes.get(name, 0), self._limits.of_log(name)
            others = used - (freed if name == plan.log.name else 0)
            if limit and 0 < size > limit - used and (others > 0 or counts[name] > 1):
                return f"the edited message does not fit: {self._limits.describe(name)}"
        for name, size in added.items():
            plan.used_bytes[name] = plan.used_bytes.get(name, 0) + size
        return ""

    def _edited(self, entry: LogEntry, wanted: OperatorMessage, actor: str) -> Message:
        """Return the edited message with an id of its own; headers name the original and the actor."""
        kept = {name: value for name, value in entry.message.headers.items() if name in BROKER_ONLY}
        marks = {**kept, **self._resubmission(entry, actor), RESUBMITTED_FROM: entry.message.id}
        return self._messages.message(wanted.send({name: text for name, text in marks.items() if text is not None}))

    @staticmethod
    def _resubmission(entry: LogEntry, actor: str) -> Mapping[str, str | None]:
        """Return the headers of a message that is resubmitted; None: removed."""
        headers = entry.message.headers
        count = int(broker_headers(headers).get(RESUBMIT_COUNT, "0")) + 1
        marks = {RESUBMIT_COUNT: str(count), RESUBMITTED_BY: actor or None, RESUBMITTED_TIME: str(clock.now_ms())}
        return {**dict.fromkeys(FAILURE), **failure_history(headers), **marks}

    async def _store(self, plan: StepPlan, routed: dict[int, RoutedBatch], settles: Sequence[LogEntry]) -> None:
        is_edit = plan.edit is not None
        refused = await self._transfer.submit(list(routed.values()), settles, are_new=is_edit)
        for seq, each in routed.items():
            plan.outcomes[seq] = (REFUSED, f"{refused} is full") if refused else (DONE, ", ".join(_stored_in(each)))
        if is_edit and not refused:
            plan.edited |= routed


def _editor(edit: MessageEdit) -> EditMessage:
    """Return the function that applies an edit to messages."""

    def apply(entry: LogEntry, target: Destination) -> OperatorMessage:
        return edit.applied(entry.message.headers, entry.message.body, target.stomp, clock.now_ms())

    return apply


def _parse_edit(action: str, edit: JsonObject | None) -> MessageEdit | None:
    """Return the changes of an edit. Raises RequestRefused."""
    if (action == EDIT) != (edit is not None):
        raise RequestRefused("edit requires changes; other actions take none")
    found = MessageEdit.from_json(edit) if edit is not None else None
    if found is not None:
        found.check()
    return found


def _stored_in(routed: RoutedBatch) -> list[str]:
    """Return the logs and topics that a message reached."""
    logs = [log.name for group in routed.route.groups for log in group.logs]
    return logs + [str(copy.destination) for copy in routed.route.topics]
