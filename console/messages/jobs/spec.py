"""Specifications of jobs on messages of a queue, and the permissions they require. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from brokerapp.engine.editing.message_edit import MessageEdit
from brokerapp.errors import RequestRefused
from brokerapp.model.destination import Destination, is_pattern
from brokerapp.selectors import compile_selector
from console.access.roles import Permission
from console.messages.jobs.models import Job

Action = Job.Action

#: Messages of a job that requires no bulk permission.
SMALL_JOB = 10
#: Messages that can be selected individually for one job.
MAX_SELECTION = 5_000
#: Highest rate in messages/s; without a rate a job runs at full speed.
MAX_RATE = 10_000

#: Permissions of each action, required at the source and the target; the first is the most specific.
PERMISSIONS: dict[str, tuple[Permission, ...]] = {
    Action.MOVE: (Permission.BULK,),
    Action.COPY: (Permission.BULK,),
    Action.RETRY: (Permission.BULK,),
    Action.REMOVE: (Permission.REMOVE,),
    Action.EDIT: (Permission.EDIT, Permission.BULK),
}
#: Permissions for small jobs; larger ones can be requested with them and need approval.
SMALL_JOB_PERMISSIONS: dict[str, Permission] = {Action.RETRY: Permission.RESUBMIT, Action.EDIT: Permission.EDIT}
#: Actions that resend messages; they require a reason.
RESENDING = frozenset({Action.RETRY, Action.EDIT})


def permissions_for(action: str, is_few: bool) -> tuple[Permission, ...]:
    """Return the permissions that an action on few or many messages requires."""
    return (SMALL_JOB_PERMISSIONS[action],) if is_few and action in SMALL_JOB_PERMISSIONS else PERMISSIONS[action]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """An action on the messages of `seqs`, or on all that match the selector ("": all)."""

    action: str
    queue: Destination
    target: Destination | None = None
    seqs: tuple[int, ...] = ()
    selector: str = ""
    rate: int = 0
    reason: str = ""
    name: str = ""
    edit: MessageEdit | None = None  #: of the action `edit`
    upto: int = 0  #: number of the newest message that was counted for the user; 0: the newest when the job is created

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Return the required permissions, the most specific first."""
        return permissions_for(self.action, 0 < len(self.seqs) <= SMALL_JOB)

    @property
    def permission(self) -> Permission:
        """Return the most specific of the required permissions."""
        return self.permissions[0]

    @property
    def varies_by_message(self) -> bool:
        """Return whether each message determines its own target, its original destination."""
        return self.action == Action.RETRY or (self.action == Action.EDIT and self.target is None)

    def check(self) -> None:
        """Raise RequestRefused or SelectorSyntaxError if the specification is invalid."""
        if self.action not in PERMISSIONS:
            raise RequestRefused(f"action {self.action!r} must be one of {', '.join(PERMISSIONS)}")
        self._check_target()
        if self.action == Action.EDIT:
            self._check_edit()
        if self.action in RESENDING and not self.reason.strip():
            raise RequestRefused("Enter a reason. It is recorded in the audit log and the journey.")
        if len(self.seqs) > MAX_SELECTION:
            raise RequestRefused(
                f"{len(self.seqs)} messages selected; at most {MAX_SELECTION} are allowed. Use a selector instead"
            )
        if not 0 <= self.rate <= MAX_RATE:
            raise RequestRefused(f"rate must be a whole number from 0 (no limit) to {MAX_RATE} messages/s")
        if self.selector:
            compile_selector(self.selector)

    def _check_target(self) -> None:
        needs_one = self.action in (Action.MOVE, Action.COPY)
        if needs_one and self.target is None:
            raise RequestRefused(f"enter a target to {self.action} messages to")
        if self.target is not None and is_pattern(self.target.name):
            raise RequestRefused(f"{self.target} is a pattern; enter one destination")
        if needs_one and self.target == self.queue:
            raise RequestRefused(f"the messages are already in {self.target}; enter another target")

    def _check_edit(self) -> None:
        if self.edit is None or not (self.edit.changes or self.target):
            raise RequestRefused("enter at least one change or a target")
        self.edit.check()

    @property
    def default_name(self) -> str:
        """Return the default name of the job."""
        which = f"{len(self.seqs)}" if self.seqs else "matching" if self.selector else "all"
        to = f" to {self.target.name}" if self.target else ""
        return f"{Action(self.action).label} {which} messages in {self.queue.name}{to}"[:200]
