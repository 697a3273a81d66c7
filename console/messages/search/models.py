"""Models of background searches: query, user, progress and results."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from brokerapp.model.destination import Destination


class MessageSearch(models.Model):
    """A search through queues and the recorded trace, with the rights of the user who started it."""

    class State(models.TextChoices):
        """State of a search; the last three are final."""

        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    FINAL = frozenset({State.DONE, State.FAILED, State.CANCELLED})

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    text = models.CharField(max_length=300)
    limit = models.JSONField(null=True)  #: limits of the API token that started the search
    queues = models.JSONField(default=list)  #: native form and whether it is a DLQ, in the order of search
    position = models.PositiveIntegerField(default=0)  #: index of the current queue
    before = models.BigIntegerField(
        default=0
    )  #: in the current queue, messages from this number on are searched; 0: none yet
    expected = models.PositiveBigIntegerField(default=0)  #: messages in the queues at the start
    scanned = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    note = models.TextField(blank=True)  #: what the result does not cover, or the error
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True)
    lease = models.DateTimeField(null=True)  #: until when one worker owns it exclusively

    class Meta:
        ordering = ["-created"]
        indexes = [models.Index(fields=["state"]), models.Index(fields=["user", "-created"])]

    @property
    def is_final(self) -> bool:
        """Return whether the state is final."""
        return self.state in self.FINAL

    @property
    def progress(self) -> float:
        """Return the progress from 0 to 1."""
        if self.state == self.State.DONE:
            return 1.0
        if not self.expected:
            return self.position / len(self.queues) if self.queues else 0.0
        return min(0.99, self.scanned / self.expected)


class SearchHit(models.Model):
    """A result of a search: a message in one destination."""

    search = models.ForeignKey(MessageSearch, models.CASCADE, related_name="hits")
    message_id = models.TextField()
    place = models.CharField(max_length=500)  #: native form
    state = models.CharField(max_length=16)
    seq = models.BigIntegerField(null=True)  #: number of the message in its queue
    moment = models.DateTimeField(null=True)
    why = models.CharField(max_length=200)  #: property or header that matched
    origin = models.CharField(max_length=500, blank=True)
    cause = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint("search", "message_id", "place", name="search_hit_once")]

    @property
    def destination(self) -> Destination:
        """Return the destination in which it was found."""
        return Destination.parse(self.place)
