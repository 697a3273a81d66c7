"""Builds the journey of a message from trace events and operator actions, and the state of its copies. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from analytics.model.failure_patterns import without_policy
from analytics.readers.message_trace import TraceEvent
from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from console.access import redaction
from console.access.roles import Sees, everything

#: How long a page waits for trace events of an action; they are usually written within a second.
TRACE_DELAY = timedelta(seconds=30)
#: An operator action is recorded after the step of its job, so trace events of the step may be this much older.
ACTION_DURATION = timedelta(seconds=10)
#: Kinds of trace events that operator actions cause.
_EVENTS_OF_ACTIONS = frozenset({"enqueue", "forward", "drop", "move", "remove"})


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """An action of an operator on a message."""

    time: datetime
    user: str
    label: str  #: for example `Resubmitted`
    queue: str  #: native form; the queue that held the message
    detail: str = ""
    reason: str = ""
    job: str = ""  #: id
    leaves: bool = False  #: whether it removed the message from the queue
    new_id: str = ""  #: of the message that replaced it
    old_id: str = ""  #: of the message that it replaced


@dataclass(frozen=True, slots=True)
class JourneyStep:
    """An event or operator action in the journey of a message."""

    time: datetime
    kind: str  #: of the event, or `deed`
    label: str
    destination: Destination | None = None
    detail: str = ""
    after_ms: float = 0.0  #: since the journey began
    action: OperatorAction | None = None

    @property
    def icon(self) -> str:
        """Return the name of the icon of this kind of step."""
        return _STEP_ICONS.get(self.kind, "user")


_STEP_ICONS = {
    "ack": "check", "dead_letter": "dlq", "enqueue": "up", "forward": "arrow", "dispatch": "connection",
    "redeliver": "back", "rollback": "back", "expire": "clock", "delay": "clock", "move": "arrow", "drop": "trash",
    "remove": "trash",
}  # fmt: skip


@dataclass(slots=True)
class CopyLocation:
    """The recorded state of one copy of the message in one destination."""

    destination: Destination
    state: str  #: dead (a dead letter), waiting, held, processed, failed, expired, dropped, taken
    since: datetime
    detail: str = ""
    seq: int | None = None  #: its number in the queue, if found
    latency_ms: float | None = None  #: from enqueue to acknowledgement

    @property
    def state_label(self) -> str:
        """Return the label of its state."""
        return COPY_STATES[self.state]

    @property
    def badge(self) -> str:
        """Return the class of the badge that shows its state."""
        return _COPY_BADGES.get(self.state, "")


_COPY_BADGES = {
    "processed": "badge-good", "failed": "badge-act", "dropped": "badge-act", "expired": "badge-look",
    "taken": "badge-look", "dead": "badge-look",
}  # fmt: skip

#: Labels of the states of a copy.
COPY_STATES = {
    "dead": "Dead letter", "waiting": "Stored", "held": "In flight", "processed": "Processed", "failed": "Failed",
    "expired": "Expired", "dropped": "Dropped", "taken": "Removed by an operator",
}  # fmt: skip
#: Labels of event kinds, followed by a destination; and the state of the copy after the event.
EVENT_LABELS: dict[str, tuple[str, str]] = {
    "enqueue": ("Sent to", ""),
    "forward": ("Copied to", "waiting"),
    "dispatch": ("Dispatched to consumer of", "held"),
    "ack": ("Acknowledged in", "processed"),
    "bridge_receive": ("Received from another broker in", ""),
    "bridge_forward": ("Forwarded to another broker from", "held"),
    "bridge_refuse": ("Rejected by another broker, kept in", "waiting"),
    "redeliver": ("Returned for redelivery to", "waiting"),
    "expire": ("Expired in", "expired"),
    "dead_letter": ("Failed in", "failed"),
    "drop": ("Dropped from", "dropped"),
    "rollback": ("Rolled back, sent to", ""),
    "move": ("Moved from", "taken"),
    "remove": ("Deleted from", "dropped"),
    "delay": ("Redelivery delayed in", "waiting"),
    "return": ("Returned to", "waiting"),
}


@dataclass(slots=True)
class Journey:
    """The steps of one message and the state of its copies."""

    id: str
    steps: list[JourneyStep] = field(default_factory=list)
    copies: list[CopyLocation] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)  #: as recorded when it was sent
    size: int = 0
    sent_to: Destination | None = None
    complete: bool = True

    @property
    def summary(self) -> str:
        """Return the outcome in one sentence."""
        if not self.steps:
            return "No trace recorded." if self.complete else "No trace found within the time limit."
        states = self._copy_states()
        if all(each.kind == "deed" for each in self.steps):  # the trace follows some seconds later, if enabled
            return "No trace events recorded yet."
        if not states and any(each.kind == "rollback" for each in self.steps):
            return "Sent in a transaction that was rolled back."
        if not states:
            return "Sent, but not stored by any destination."
        parts = [f"{states.count(state)} {label.lower()}" for state, label in COPY_STATES.items() if state in states]
        if len(states) == 1:
            return f"The message {_STATE_SENTENCES[states[0]]}."
        if len(parts) == 1:
            return f"All {len(states)} copies: {COPY_STATES[states[0]].lower()}."
        return f"{len(states)} copies: " + ", ".join(parts) + "."

    def _copy_states(self) -> list[str]:
        """Return the states of the copies; a dead letter, or its removal, replaces the failed copy."""
        states = [each.state for each in self.copies]
        heirs = states.count("dead") or states.count("taken")
        for _ in range(min(heirs, states.count("failed"))):
            states.remove("failed")
        return states

    def visible_to(self, sees: Sees) -> Journey:
        """Return the journey limited to visible destinations, without the names of others."""
        if sees is everything:
            return self
        return replace(
            self,
            steps=[
                replace(each, detail=redaction.redact_list(each.detail, sees) if each.kind == "deed" else each.detail)
                for each in self.steps
                if each.destination is None or sees(each.destination)
            ],
            copies=[
                replace(each, detail=redaction.redact_list(each.detail, sees)) if each.state == "taken" else each
                for each in self.copies
                if sees(each.destination)
            ],
            sent_to=self.sent_to if self.sent_to and sees(self.sent_to) else None,
        )

    def awaits_trace(self, now: datetime) -> bool:
        """Return whether an operator action just happened whose trace events are not recorded yet."""
        done = next((each for each in reversed(self.steps) if each.kind == "deed"), None)
        if done is None or now - done.time > TRACE_DELAY:
            return False
        return not any(each.time > done.time or each.kind in _EVENTS_OF_ACTIONS for each in self._since(done))

    def _since(self, done: JourneyStep) -> list[JourneyStep]:
        """Return the events since the message arrived where an action found it, but none long before the action.

        For a message that the action itself created: all events since its beginning.
        """
        recorded = [each for each in self.steps if each.kind != "deed" and each.time > done.time - ACTION_DURATION]
        if done.action is not None and done.action.old_id:
            return recorded
        came = [number for number, each in enumerate(recorded) if _arrived_at(each, done)]
        return recorded[came[-1] + 1 :] if came else recorded

    @property
    def is_stored(self) -> bool:
        """Return whether a queue still stores a copy."""
        return any(each.state in ("dead", "waiting", "held") for each in self.copies)


_STATE_SENTENCES = {
    "dead": "is a dead letter", "waiting": "is stored", "held": "is in flight", "processed": "was processed",
    "failed": "failed",
    "expired": "expired", "dropped": "was dropped", "taken": "was removed by an operator",
}  # fmt: skip


def build_journey(
    id: str, events: Sequence[TraceEvent], actions: Iterable[OperatorAction], rules: dict[str, str], complete: bool
) -> Journey:
    """Build the journey of a message. `rules`: by target, the definition that routes a copy there."""
    found = Journey(id, complete=complete)
    for event in events:
        if event.kind == "enqueue" and found.sent_to is None:
            found.sent_to = _parse_destination(event.destination)
            found.properties, found.size = event.properties, event.size
    found.size = found.size or (events[0].size if events else 0)
    steps = [_step(event, rules) for event in events]
    steps += [
        JourneyStep(action.time, "deed", action.label, _parse_destination(action.queue), action.detail, action=action)
        for action in actions
    ]
    steps.sort(key=lambda each: each.time)
    if steps:
        began = steps[0].time
        found.steps = [replace(each, after_ms=_milliseconds_between(began, each.time)) for each in steps]
    found.copies = list(_copies(found.steps).values())
    return found


def _arrived_at(step: JourneyStep, done: JourneyStep) -> bool:
    return step.kind == "forward" and step.destination == done.destination and step.time <= done.time


def _step(event: TraceEvent, rules: dict[str, str]) -> JourneyStep:
    words, _ = EVENT_LABELS.get(event.kind, (event.kind.capitalize(), ""))
    if event.kind == "forward" and event.destination == event.original:
        words = "Stored in"
    if event.kind == "drop" and (event.reason or "").startswith("removed by"):
        words = "Deleted from"
    detail = without_policy(event.reason or "") or event.consumer or ""
    if event.kind == "forward" and event.destination != event.original:
        detail = f"by {rules[event.destination]}" if event.destination in rules else ""
    return JourneyStep(_to_datetime(event.ts_us), event.kind, words, _parse_destination(event.destination), detail)


def _copies(steps: Sequence[JourneyStep]) -> dict[Destination, CopyLocation]:
    copies: dict[Destination, CopyLocation] = {}
    came: dict[Destination, datetime] = {}
    for step in steps:
        if step.destination is None or not step.destination.is_queue:
            continue
        state = EVENT_LABELS.get(step.kind, ("", "taken" if step.action and step.action.leaves else ""))[1]
        if not state:
            continue
        if step.kind == "forward":
            came[step.destination] = step.time
        copy = copies[step.destination] = CopyLocation(step.destination, state, step.time, step.detail)
        if state == "processed" and step.destination in came:
            copy.latency_ms = _milliseconds_between(came[step.destination], step.time)
    return copies


def _parse_destination(name: str) -> Destination | None:
    try:
        return Destination.parse(name)
    except InvalidDestination:
        return None


def _to_datetime(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, UTC)


def _milliseconds_between(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds() * 1000
