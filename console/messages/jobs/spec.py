"""A wish: what somebody wants done to messages of a queue, with the rights it needs. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, is_pattern
from brokerapp.selectors import compile_selector
from console.access.roles import Verb
from console.messages.jobs.models import Job

Action = Job.Action

#: Messages that the right to resubmit is enough for; more need the right to do so in bulk.
FEW = 10
#: Messages that can be chosen one by one for one job.
MAX_SELECTION = 5_000
#: The fastest rate that can be chosen; without one a job goes as fast as it can.
MAX_RATE = 10_000

#: What each action needs, where the messages are and where they go; the first says what it is.
NEEDS: dict[str, tuple[Verb, ...]] = {
    Action.MOVE: (Verb.BULK,),
    Action.COPY: (Verb.BULK,),
    Action.RETRY: (Verb.BULK,),
    Action.REMOVE: (Verb.REMOVE,),
    Action.EDIT: (Verb.EDIT, Verb.BULK),
}
#: What is enough for a few; who has that may ask for more, which somebody with all the rights approves.
NEEDS_FOR_FEW: dict[str, Verb] = {Action.RETRY: Verb.RESUBMIT, Action.EDIT: Verb.EDIT}
#: Actions that send messages again, for which everybody wants to know why.
SENDING_AGAIN = frozenset({Action.RETRY, Action.EDIT})


def verbs_for(action: str, is_few: bool) -> tuple[Verb, ...]:
    """The rights that an action on few, or on many messages needs."""
    return (NEEDS_FOR_FEW[action],) if is_few and action in NEEDS_FOR_FEW else NEEDS[action]


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants done: to the messages of `seqs`, or else to all that match the selector ("": all)."""

    action: str
    queue: Destination
    target: Destination | None = None
    seqs: tuple[int, ...] = ()
    selector: str = ""
    rate: int = 0
    reason: str = ""
    name: str = ""
    edit: MessageEdit | None = None  #: of the action of that name
    upto: int = 0  #: number of the newest message that was counted for the user; 0: the newest when the job is created

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """The rights it needs, the one that says what it is first."""
        return verbs_for(self.action, 0 < len(self.seqs) <= FEW)

    @property
    def verb(self) -> Verb:
        """The right that says what it is."""
        return self.verbs[0]

    @property
    def returns(self) -> bool:
        """Whether each message says itself where it goes: where it failed."""
        return self.action == Action.RETRY or (self.action == Action.EDIT and self.target is None)

    def check(self) -> None:
        """Raise RequestRefused, SelectorSyntaxError when it makes no sense."""
        if self.action not in NEEDS:
            raise RequestRefused(f"{self.action!r} is none of {', '.join(NEEDS)}")
        self._check_target()
        if self.action == Action.EDIT:
            self._check_edit()
        if self.action in SENDING_AGAIN and not self.reason.strip():
            raise RequestRefused("say why: the reason stands in the record of every message that is sent again")
        if len(self.seqs) > MAX_SELECTION:
            raise RequestRefused(f"{len(self.seqs)} messages were chosen, {MAX_SELECTION} can be: use a selector")
        if not 0 <= self.rate <= MAX_RATE:
            raise RequestRefused(f"{self.rate} messages a second is none of 0 (no limit) to {MAX_RATE}")
        if self.selector:
            compile_selector(self.selector)

    def _check_target(self) -> None:
        needs_one = self.action in (Action.MOVE, Action.COPY)
        if needs_one and self.target is None:
            raise RequestRefused(f"to {self.action} messages needs a target")
        if self.target is not None and is_pattern(self.target.name):
            raise RequestRefused(f"{self.target} is a pattern: name one destination")
        if needs_one and self.target == self.queue:
            raise RequestRefused(f"{self.target} is where the messages are already")

    def _check_edit(self) -> None:
        if self.edit is None or not (self.edit.changes or self.target):
            raise RequestRefused("say what is to be changed, or where the messages shall go")
        self.edit.check()

    @property
    def title(self) -> str:
        """A name for who gave it none."""
        what = f"{len(self.seqs)} of" if self.seqs else "messages of" if self.selector else "all of"
        to = f" to {self.target.name}" if self.target else ""
        return f"{Action(self.action).label} {what} {self.queue.name}{to}"[:200]
