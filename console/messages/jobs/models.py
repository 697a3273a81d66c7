"""What the console keeps of work on messages: jobs with an outcome for each message, templates, saved selectors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from brokerapp.model.destination import Destination

if TYPE_CHECKING:
    from brokerapp.engine.editing.message_edit import MessageEdit


class Job(models.Model):
    """Work on messages of one queue: asked for by a person, done by a worker in steps."""

    class Action(models.TextChoices):
        """What is done to each message; the words of BrokerAdmin.step."""

        MOVE = "move", "Move"
        COPY = "copy", "Copy"
        RETRY = "retry", "Resubmit"
        REMOVE = "remove", "Delete"
        EDIT = "edit", "Edit"

    class State(models.TextChoices):
        """Where a job stands; the last three are final."""

        ASKED = "asked", "Waits for approval"
        QUEUED = "queued", "Waits for a worker"
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
    target = models.CharField(max_length=500, blank=True)  #: native form; "": to where each one failed or, edited, is
    edit = models.JSONField(null=True)  #: what is changed of each message, as `Edit` writes it
    selector = models.TextField(blank=True)  #: which messages, when they were not chosen one by one
    is_selection = models.BooleanField(default=False)  #: its outcomes were planned when it was asked for
    after = models.BigIntegerField(default=0)  #: number of the last message looked at
    upto = models.BigIntegerField(default=0)  #: number of the newest message when it was asked for: later ones stay
    rate = models.PositiveIntegerField(default=0)  #: messages a second; 0: as fast as it goes
    reason = models.TextField(blank=True)  #: why somebody wants it
    asked_by = models.CharField(max_length=150)
    approved_by = models.CharField(max_length=150, blank=True)
    part_of = models.ForeignKey("self", models.SET_NULL, null=True, related_name="parts")  #: whose failed part it is
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    note = models.TextField(blank=True)  #: why it paused, failed or was cancelled
    expected = models.PositiveIntegerField(default=0)  #: messages to look at, as far as known when it was asked for
    scanned = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    #: Of the resubmitted messages, the most that were seen to have failed again; None: nobody looked.
    returned = models.PositiveIntegerField(null=True)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    lease = models.DateTimeField(null=True)  #: until when a worker has it to itself

    class Meta:
        ordering = ["-created"]
        indexes = [models.Index(fields=["-created"]), models.Index(fields=["state"])]

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self.state in self.FINAL

    @property
    def source(self) -> Destination:
        """Where the messages are."""
        return Destination.parse(self.queue)

    @property
    def goal(self) -> Destination | None:
        """Where they go; None: to where each failed or is, or nowhere."""
        return Destination.parse(self.target) if self.target else None

    @property
    def change(self) -> MessageEdit | None:
        """What is changed of each message; None: nothing."""
        # It brings the whole broker, without which commands that only need Django start in half the time.
        from brokerapp.engine.editing.message_edit import MessageEdit

        return MessageEdit.from_json(self.edit) if self.edit is not None else None

    @property
    def leaves_no_trace(self) -> bool:
        """Whether what it did to a message cannot be told from the queue: the message is still there."""
        return self.action == self.Action.COPY or bool(self.edit and self.edit["keeps"])


class JobOutcome(models.Model):
    """What became of one message of a job."""

    class Outcome(models.TextChoices):
        """How it stands: the first two are on the way."""

        PLANNED = "planned", "Planned"
        UNDER_WAY = "under way", "Under way"
        DONE = "done", "Done"
        HELD = "held", "Held by a consumer"
        GONE = "gone", "No longer there"
        REFUSED = "refused", "Refused"
        UNKNOWN = "unknown", "Not known"

    #: What is not over yet; what may be tried again.
    WAITING = frozenset({Outcome.PLANNED, Outcome.UNDER_WAY})
    FAILED = frozenset({Outcome.HELD, Outcome.GONE, Outcome.REFUSED, Outcome.UNKNOWN})

    job = models.ForeignKey(Job, models.CASCADE, related_name="outcomes")
    seq = models.BigIntegerField()  #: number of the message in its queue
    message_id = models.CharField(max_length=300, blank=True, db_index=True)
    new_id = models.CharField(max_length=300, blank=True, default="", db_index=True)  #: of what an edit made of it
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.PLANNED)
    detail = models.TextField(blank=True)  #: where it came to, or why not
    time = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["seq"]
        constraints = [models.UniqueConstraint(fields=["job", "seq"], name="one_outcome_for_each_message")]
        indexes = [models.Index(fields=["job", "outcome", "seq"])]

    @property
    def is_over(self) -> bool:
        """Whether it is known what became of it."""
        return self.outcome not in self.WAITING


class Replacement(models.Model):
    """One message in the place of which somebody sent another one that they wrote: edited, one by one."""

    time = models.DateTimeField(auto_now_add=True)
    queue = models.CharField(max_length=500)
    message_id = models.CharField(max_length=300, db_index=True)
    new_id = models.CharField(max_length=300, db_index=True)
    places = models.TextField()
    edited_by = models.CharField(max_length=150)
    reason = models.TextField(blank=True)


class Template(models.Model):
    """A test message to send again: what the form of the send page held."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="templates")
    name = models.CharField(max_length=100)
    shared = models.BooleanField(default=False)  #: whether everybody who may send sees it
    form = models.JSONField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_template_of_a_name")]


class SavedSelector(models.Model):
    """A selector somebody will want again; of one queue, or of all."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="selectors")
    name = models.CharField(max_length=100)
    text = models.TextField()
    queue = models.CharField(max_length=500, blank=True)  #: name of the queue it is for; "": of all
    shared = models.BooleanField(default=False)  #: whether others see it

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_selector_of_a_name")]
