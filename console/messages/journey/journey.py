"""A message's journey: what the trace recorded of it and what operators did to it, in order and in words; and where its
copies stand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from analytics.readers.message_trace import TraceEvent
from brokerapp.errors import InvalidDestination
from brokerapp.model.destination import Destination
from console.access import redaction
from console.access.roles import Sees, everything

#: What happens to a message is in the trace a second later, or some more where much happens; a page that waits for it
#: asks for so long.
RECORDED_WITHIN = timedelta(seconds=30)
#: An operator's deed is noted when the broker has done it, for all messages of a job's step: so long before, at most,
#: the trace may tell of it.
STEP = timedelta(seconds=10)
#: What the trace tells of a deed: the message came somewhere, or went.
_LEFT_BY_DEEDS = frozenset({"enqueue", "forward", "drop", "move", "remove"})


@dataclass(frozen=True, slots=True)
class Deed:
    """Something an operator did to a message."""

    time: datetime
    who: str
    words: str  #: e.g. `Retried`
    queue: str  #: native form; where the message was
    detail: str = ""
    reason: str = ""
    job: str = ""  #: id
    leaves: bool = False  #: whether the message left the queue by it
    new_id: str = ""  #: of the message that took its place
    old_id: str = ""  #: of the message whose place it took


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the journey."""

    time: datetime
    kind: str  #: of the event, or `deed`
    words: str
    place: Destination | None = None
    detail: str = ""
    after_ms: float = 0.0  #: since the journey began
    deed: Deed | None = None


@dataclass(slots=True)
class Copy:
    """Where one copy of the message stands, as far as it was recorded."""

    place: Destination
    state: str  #: dead (waiting among dead letters), waiting, held, processed, failed, expired, dropped, taken
    since: datetime
    detail: str = ""
    seq: int | None = None  #: its number there, when it was found
    took_ms: float | None = None  #: from its coming until it was acknowledged


#: Event kinds in words: with a place, and what they leave a copy there as.
WORDS: dict[str, tuple[str, str]] = {
    "enqueue": ("Sent to", ""),
    "forward": ("Copied to", "waiting"),
    "dispatch": ("Given to a consumer of", "held"),
    "ack": ("Acknowledged in", "processed"),
    "bridge_receive": ("Came from another broker to", ""),
    "bridge_forward": ("Given to another broker from", "held"),
    "bridge_refuse": ("Refused by another broker, from", "waiting"),
    "redeliver": ("Came back to", "waiting"),
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
    """All that is known of one message."""

    id: str
    steps: list[Step] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)  #: as they were recorded when it was sent
    size: int = 0
    sent_to: Destination | None = None
    complete: bool = True

    @property
    def fate(self) -> str:
        """The journey in one sentence."""
        if not self.steps:
            return "Nothing was recorded of it." if self.complete else "Nothing of it was found in time."
        states = self._standing()
        if all(each.kind == "deed" for each in self.steps):  # the trace comes some seconds later, where it is kept
            return "What became of it is not recorded, or not yet."
        if not states and any(each.kind == "rollback" for each in self.steps):
            return "It was sent in a transaction that was rolled back."
        if not states:
            return "It was sent, and nothing kept it."
        parts = [f"{states.count(state)} {words}" for state, words in _STATES.items() if state in states]
        if len(states) == 1:
            return f"It {_ONE[states[0]]}."
        if len(parts) == 1:
            return f"Each of its {len(states)} copies {_ONE[states[0]]}."
        return f"It has {len(states)} copies: " + ", ".join(parts) + "."

    def _standing(self) -> list[str]:
        """The states of its copies. A dead letter is the copy that failed: where it is told, or who took it away, its
        failure is not told as one more."""
        states = [each.state for each in self.copies]
        heirs = states.count("dead") or states.count("taken")
        for _ in range(min(heirs, states.count("failed"))):
            states.remove("failed")
        return states

    def seen_by(self, sees: Sees) -> Journey:
        """What of it somebody may know of: the steps at places they see, without the names of others."""
        if sees is everything:
            return self
        return replace(
            self,
            steps=[
                replace(each, detail=redaction.redact_list(each.detail, sees) if each.kind == "deed" else each.detail)
                for each in self.steps
                if each.place is None or sees(each.place)
            ],
            copies=[
                replace(each, detail=redaction.redact_list(each.detail, sees)) if each.state == "taken" else each
                for each in self.copies
                if sees(each.place)
            ],
            sent_to=self.sent_to if self.sent_to and sees(self.sent_to) else None,
        )

    def is_awaited(self, now: datetime) -> bool:
        """Whether something was just done to it of which the trace, which comes a moment later, does not tell yet."""
        done = next((each for each in reversed(self.steps) if each.kind == "deed"), None)
        if done is None or now - done.time > RECORDED_WITHIN:
            return False
        return not any(each.time > done.time or each.kind in _LEFT_BY_DEEDS for each in self._since(done))

    def _since(self, done: Step) -> list[Step]:
        """What was recorded since the message stood where a deed found it; of one that a deed made, from its beginning,
        but nothing that was long before the deed."""
        recorded = [each for each in self.steps if each.kind != "deed" and each.time > done.time - STEP]
        if done.deed is not None and done.deed.old_id:
            return recorded
        came = [number for number, each in enumerate(recorded) if _came_to(each, done)]
        return recorded[came[-1] + 1 :] if came else recorded

    @property
    def waits(self) -> bool:
        """Whether a copy of it is still somewhere."""
        return any(each.state in ("dead", "waiting", "held") for each in self.copies)


_ONE = {
    "dead": "is a dead letter", "waiting": "waits", "held": "is with a consumer", "processed": "was processed",
    "failed": "failed",
    "expired": "expired", "dropped": "was dropped", "taken": "was taken away by an operator",
}  # fmt: skip
_STATES = {
    "dead": "in dead letters", "waiting": "waiting", "held": "with a consumer", "processed": "processed",
    "failed": "failed",
    "expired": "expired", "dropped": "dropped", "taken": "taken away by an operator",
}  # fmt: skip


def journey(
    id: str, events: Sequence[TraceEvent], deeds: Iterable[Deed], rules: dict[str, str], complete: bool
) -> Journey:
    """The journey of this message. `rules`: by place, the definition that copies there what is sent to its topic."""
    found = Journey(id, complete=complete)
    for event in events:
        if event.kind == "enqueue" and found.sent_to is None:
            found.sent_to, found.properties, found.size = _place(event.destination), event.properties, event.size
    found.size = found.size or (events[0].size if events else 0)
    steps = [_step(event, rules) for event in events]
    steps += [Step(deed.time, "deed", deed.words, _place(deed.queue), deed.detail, deed=deed) for deed in deeds]
    steps.sort(key=lambda each: each.time)
    if steps:
        began = steps[0].time
        found.steps = [
            Step(each.time, each.kind, each.words, each.place, each.detail, _ms(began, each.time), each.deed)
            for each in steps
        ]
    found.copies = list(_copies(found.steps).values())
    return found


def _came_to(step: Step, done: Step) -> bool:
    return step.kind == "forward" and step.place == done.place and step.time <= done.time


def _step(event: TraceEvent, rules: dict[str, str]) -> Step:
    words, _ = WORDS.get(event.kind, (event.kind.capitalize(), ""))
    if event.kind == "forward" and event.destination == event.original:
        words = "Stored in"
    if event.kind == "drop" and (event.reason or "").startswith("removed by"):
        words = "Deleted from"
    detail = event.reason or event.consumer or ""
    if event.kind == "forward" and event.destination != event.original:
        detail = f"by {rules[event.destination]}" if event.destination in rules else ""
    return Step(_moment(event.ts_us), event.kind, words, _place(event.destination), detail)


def _copies(steps: Sequence[Step]) -> dict[Destination, Copy]:
    copies: dict[Destination, Copy] = {}
    came: dict[Destination, datetime] = {}
    for step in steps:
        if step.place is None or not step.place.is_queue:
            continue
        state = WORDS[step.kind][1] if step.kind in WORDS else "taken" if step.deed and step.deed.leaves else ""
        if not state:
            continue
        if step.kind == "forward":
            came[step.place] = step.time
        copy = copies[step.place] = Copy(step.place, state, step.time, step.detail)
        if state == "processed" and step.place in came:
            copy.took_ms = _ms(came[step.place], step.time)
    return copies


def _place(name: str) -> Destination | None:
    try:
        return Destination.parse(name)
    except InvalidDestination:
        return None


def _moment(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, UTC)


def _ms(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds() * 1000
