"""Models of jobs with an outcome for each message, of replaced messages, templates and saved selectors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.engine.editing.message_edit import MessageEdit


class Job(models.Model):
    """A bulk operation on messages of one queue, requested by a user and run by a worker in steps."""

    class Action(models.TextChoices):
        """The operation on each message; the values are those of BrokerAdmin.step."""

        MOVE = "move", "Move"
        COPY = "copy", "Copy"
        RETRY = "retry", "Resubmit"
        REMOVE = "remove", "Delete"
        EDIT = "edit", "Edit"

    class State(models.TextChoices):
        """State of a job; the last three are final."""

        ASKED = "asked", "Awaiting approval"
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    FINAL = frozenset({State.DONE, State.FAILED, State.CANCELLED})

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    action = models.CharField(max_length=16, choices=Action)
    queue = models.CharField(max_length=500)  #: native form
    target = models.CharField(
        max_length=500, blank=True
    )  #: native form; "": original destination or, for an edit, the queue itself
    edit = models.JSONField(null=True)  #: the edit of each message, as `Edit.to_json` writes it
    selector = models.TextField(blank=True)  #: which messages, unless they were selected individually
    is_selection = models.BooleanField(
        default=False
    )  #: messages were selected individually; outcomes exist from the start
    after = models.BigIntegerField(default=0)  #: number of the last message scanned
    upto = models.BigIntegerField(default=0)  #: number of the newest message when the job was created: later ones stay
    rate = models.PositiveIntegerField(default=0)  #: messages/s; 0: no limit
    reason = models.TextField(blank=True)  #: given by the user
    asked_by = models.CharField(max_length=150)
    approved_by = models.CharField(max_length=150, blank=True)
    part_of = models.ForeignKey(
        "self", models.SET_NULL, null=True, related_name="parts"
    )  #: the job whose failed messages this one retries
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    note = models.TextField(blank=True)  #: why it paused, failed or was cancelled
    expected = models.PositiveIntegerField(default=0)  #: messages to scan, as far as known when the job was created
    scanned = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    #: Highest number of resubmitted messages seen to have failed again; None: never counted.
    returned = models.PositiveIntegerField(null=True)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    lease = models.DateTimeField(null=True)  #: until when one worker owns it exclusively

    class Meta:
        ordering = ["-created"]
        indexes = [models.Index(fields=["-created"]), models.Index(fields=["state"])]

    @property
    def is_final(self) -> bool:
        """Return whether the state is final."""
        return self.state in self.FINAL

    @property
    def source(self) -> Destination:
        """Return the queue that holds the messages."""
        return Destination.parse(self.queue)

    @property
    def goal(self) -> Destination | None:
        """Return the target; None: each message's own, or none at all."""
        return Destination.parse(self.target) if self.target else None

    @property
    def change(self) -> MessageEdit | None:
        """Return the edit of each message; None for other actions."""
        # Importing it loads the whole broker, which doubles the start time of commands that only need Django.
        from brokerapp.engine.editing.message_edit import MessageEdit

        return MessageEdit.from_json(self.edit) if self.edit is not None else None

    @property
    def leaves_no_trace(self) -> bool:
        """Return whether the message stays in its queue, so that the queue does not show whether a step was done."""
        return self.action == self.Action.COPY or bool(self.edit and self.edit["keeps"])


class JobOutcome(models.Model):
    """The outcome of a job for one message."""

    class Outcome(models.TextChoices):
        """State of one message; the first two are not final."""

        PLANNED = "planned", "Planned"
        UNDER_WAY = "under way", "Running"
        DONE = "done", "Done"
        HELD = "held", "In flight"
        GONE = "gone", "Not found"
        REFUSED = "refused", "Refused"
        UNKNOWN = "unknown", "Unknown"

    #: Outcomes that are not final, and those that can be retried.
    WAITING = frozenset({Outcome.PLANNED, Outcome.UNDER_WAY})
    FAILED = frozenset({Outcome.HELD, Outcome.GONE, Outcome.REFUSED, Outcome.UNKNOWN})

    job = models.ForeignKey(Job, models.CASCADE, related_name="outcomes")
    seq = models.BigIntegerField()  #: number of the message in its queue
    message_id = models.CharField(max_length=300, blank=True, db_index=True)
    new_id = models.CharField(max_length=300, blank=True, default="", db_index=True)  #: of the edited message
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.PLANNED)
    detail = models.TextField(blank=True)  #: target, or error
    time = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["job", "seq"], name="one_outcome_for_each_message")]
        indexes = [models.Index(fields=["job", "outcome", "seq"])]

    @property
    def badge(self) -> str:
        """Return the class of the badge that shows the outcome."""
        return {"done": "badge-good", "held": "badge-look", "gone": "badge-look", "refused": "badge-act",
                "unknown": "badge-act"}.get(self.outcome, "")  # fmt: skip

    @property
    def is_over(self) -> bool:
        """Return whether the outcome is final."""
        return self.outcome not in self.WAITING


class Replacement(models.Model):
    """A message that a user edited individually, and the message that replaced it."""

    time = models.DateTimeField(auto_now_add=True)
    queue = models.CharField(max_length=500)
    message_id = models.CharField(max_length=300, db_index=True)
    new_id = models.CharField(max_length=300, db_index=True)
    places = models.TextField()
    edited_by = models.CharField(max_length=150)
    reason = models.TextField(blank=True)


class Template(models.Model):
    """A message template: the saved values of the send form."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="templates")
    name = models.CharField(max_length=100)
    shared = models.BooleanField(default=False)  #: whether all users who may send see it
    form = models.JSONField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_template_of_a_name")]


class SavedSelector(models.Model):
    """A selector saved by a user, for one queue or for all."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="selectors")
    name = models.CharField(max_length=100)
    text = models.TextField()
    queue = models.CharField(max_length=500, blank=True)  #: name of the queue it is for; "": of all
    shared = models.BooleanField(default=False)  #: whether other users see it

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_selector_of_a_name")]
